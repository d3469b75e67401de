/* The scratch: filled. */
#include "hostile.h"

static int fill_scratch(int argc, char **argv) {
    (void)argc, (void)argv;
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    int fd = open("/work/big", O_WRONLY | O_CREAT, 0644);
    while (write(fd, block, sizeof block) > 0)
        ;
    printf("%s\n", errno == ENOSPC ? "ENOSPC" : strerror(errno));
    return 0;
}

const struct attack disk_attacks[] = {{"fill-scratch", fill_scratch}, {NULL, NULL}};
