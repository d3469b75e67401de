/* Processes and threads: as many as were asked for, all there at one time, and gone with the first. */
#include "hostile.h"
#include <pthread.h>

/* fork-crowd N: N processes with this one; says how many there were */
static int fork_crowd(int argc, char **argv) {
    (void)argc;
    int want = atoi(argv[1]), have = 1;
    for (; have < want; have++) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                pause();
        if (pid < 0)
            break;
    }
    printf("%d %s\n", have, have == want ? "all" : errno == EAGAIN ? "EAGAIN" : strerror(errno));
    return 0;
}

static void *stay(void *arg) {
    while (pause())
        ;
    return arg;
}

/* thread-crowd N: N threads with the first */
static int thread_crowd(int argc, char **argv) {
    (void)argc;
    int want = atoi(argv[1]), have = 1, error = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (pthread_t thread; have < want; have++)
        if ((error = pthread_create(&thread, &small, stay, NULL)) != 0)
            break;
    printf("%d %s\n", have, error == 0 ? "all" : error == EAGAIN ? "EAGAIN" : strerror(error));
    return 0;
}

static void *leave(void *arg) {
    return arg;
}

/* thread-queue N: N threads, each when the one before it has ended */
static int thread_queue(int argc, char **argv) {
    (void)argc;
    int want = atoi(argv[1]), had = 0;
    for (pthread_t thread; had < want; had++)
        if (pthread_create(&thread, NULL, leave, NULL) != 0 || pthread_join(thread, NULL) != 0)
            break;
    printf("%d\n", had);
    return 0;
}

const struct attack crowd_attacks[] = {
    {"fork-crowd", fork_crowd},
    {"thread-crowd", thread_crowd},
    {"thread-queue", thread_queue},
    {NULL, NULL},
};
