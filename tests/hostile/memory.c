/* Memory: taken and touched. */
#include "hostile.h"

static int memory_hog(int argc, char **argv) {
    (void)argc, (void)argv;
    for (;;) {
        char *p = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return 1;
        memset(p, 1, 8 << 20);
    }
}

const struct attack memory_attacks[] = {{"memory-hog", memory_hog}, {NULL, NULL}};
