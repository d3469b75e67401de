/* Output: every byte, too much of it, on both streams. */
#include "hostile.h"

static int put(int fd, const char *bytes, size_t left) {
    while (left > 0) {
        ssize_t n = write(fd, bytes, left);
        if (n < 0)
            return 1;
        bytes += n, left -= n;
    }
    return 0;
}

/* flood FD BYTES */
static int flood(int argc, char **argv) {
    (void)argc;
    static char block[64 << 10];
    memset(block, 'x', sizeof block);
    for (long left = atol(argv[2]); left > 0; left -= sizeof block)
        if (put(atoi(argv[1]), block, left < (long)sizeof block ? left : (long)sizeof block))
            return 1;
    return 0;
}

/* flood-both BYTES: a process for each stream */
static int flood_both(int argc, char **argv) {
    (void)argc;
    pid_t child = fork();
    char *words[] = {"flood", child == 0 ? "2" : "1", argv[1]};
    int failed = flood(3, words);
    if (child == 0)
        _exit(failed);
    while (wait(NULL) > 0)
        ;
    return failed;
}

/* All 256 values, upwards on stdout and downwards on stderr. */
static int every_byte(int argc, char **argv) {
    (void)argc, (void)argv;
    for (int i = 0; i < 256; i++) {
        char up = i, down = 255 - i;
        if (put(1, &up, 1) || put(2, &down, 1))
            return 1;
    }
    return 0;
}

/* alternate N: numbered lines, in turn */
static int alternate(int argc, char **argv) {
    (void)argc;
    for (int i = 0; i < atoi(argv[1]); i++) {
        char line[32];
        int n = snprintf(line, sizeof line, "%d\n", i);
        if (put(1 + i % 2, line, n))
            return 1;
    }
    return 0;
}

const struct attack stream_attacks[] = {
    {"flood", flood},
    {"flood-both", flood_both},
    {"every-byte", every_byte},
    {"alternate", alternate},
    {NULL, NULL},
};
