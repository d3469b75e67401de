/* Processes: too many. */
#include "hostile.h"

static int fork_bomb(int argc, char **argv) {
    (void)argc, (void)argv;
    for (;;)
        if (fork() < 0)
            pause();
    return 0;
}

const struct attack process_attacks[] = {{"fork-bomb", fork_bomb}, {NULL, NULL}};
