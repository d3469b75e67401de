/* Files that are not the program's, by ways that hide what is meant. */
#include "hostile.h"
#include <linux/openat2.h>
#include <pthread.h>
#include <sys/prctl.h>

static long openat2(int dir, const char *path, unsigned long flags, unsigned long resolve) {
    struct open_how how = {.flags = flags, .mode = flags & O_CREAT ? 0644 : 0, .resolve = resolve};
    return syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* openat2 has its flags behind a pointer. */
static int openat2_writes(int argc, char **argv) {
    (void)argc, (void)argv;
    tell("plain", openat2(AT_FDCWD, "/src/target", O_WRONLY, 0));
    tell("create", openat2(AT_FDCWD, "/src/new", O_WRONLY | O_CREAT, 0));
    int src = open("/src", O_PATH | O_DIRECTORY);
    tell("dirfd", openat2(src, "target", O_RDWR, RESOLVE_BENEATH));
    tell("in-root", openat2(src, "/target", O_WRONLY, RESOLVE_IN_ROOT));
    return 0;
}

/* The same call for what is in order. */
static int openat2_harmless(int argc, char **argv) {
    (void)argc, (void)argv;
    tell("read", openat2(AT_FDCWD, "/src/target", O_RDONLY, 0));
    tell("create", openat2(AT_FDCWD, "/work/new", O_WRONLY | O_CREAT, 0));
    int work = open("/work", O_PATH | O_DIRECTORY);
    tell("mkdir", mkdir("/work/src", 0755));
    tell("in-root", openat2(work, "/src/target", O_WRONLY | O_CREAT, RESOLVE_IN_ROOT));
    return 0;
}

/* Others of its own id may not look into it any more. */
static int undumpable(int argc, char **argv) {
    (void)argc, (void)argv;
    tell("hide", prctl(PR_SET_DUMPABLE, 0));
    tell("absolute", open("/src/target", O_WRONLY));
    if (chdir("/src") != 0)
        return 1;
    tell("relative", open("target", O_WRONLY));
    return 0;
}

/* The same with nothing but harmless calls. */
static int undumpable_harmless(int argc, char **argv) {
    (void)argc, (void)argv;
    tell("hide", prctl(PR_SET_DUMPABLE, 0));
    tell("absolute", open("/work/file", O_WRONLY | O_CREAT, 0644));
    tell("relative", open("other", O_WRONLY | O_CREAT, 0644));
    return 0;
}

static int plain_write(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        tell(argv[i], open(argv[i], O_WRONLY));
    return 0;
}

static char path[] = "/tmp/changing";
static volatile int stop;

static void *change(void *unused) {
    (void)unused;
    while (!stop) {
        memcpy(path + 1, "src", 3);
        __asm__ volatile("" ::: "memory");
        memcpy(path + 1, "tmp", 3);
        __asm__ volatile("" ::: "memory");
    }
    return NULL;
}

/* The name is in order when the supervisor looks, and another when the kernel does. */
static int change_under_eyes(int argc, char **argv) {
    (void)argc, (void)argv;
    pthread_t thread;
    if (pthread_create(&thread, NULL, change, NULL) != 0)
        return 1;
    for (int i = 0; i < 300; i++) {
        int fd = open(path, O_WRONLY | O_CREAT, 0666);
        if (fd >= 0) {
            if (write(fd, "x", 1) != 1)
                return 1;
            close(fd);
        }
        if (i % 2)
            unlink(path);
    }
    stop = 1;
    pthread_join(thread, NULL);
    tell("/src/changing", access("/src/changing", F_OK));
    /* Whatever the race showed, this is seen. */
    tell("/src/target", open("/src/target", O_WRONLY));
    return 0;
}

/* No stream, no fd at all, and then an attempt. */
static int close_all(int argc, char **argv) {
    (void)argc, (void)argv;
    syscall(SYS_close_range, 0, ~0U, 0);
    return open("/src/target", O_WRONLY) == -1 && errno == EROFS ? 7 : 8;
}

const struct attack file_attacks[] = {{"openat2-writes", openat2_writes},
                                      {"openat2-harmless", openat2_harmless},
                                      {"undumpable", undumpable},
                                      {"undumpable-harmless", undumpable_harmless},
                                      {"plain-write", plain_write},
                                      {"change-under-eyes", change_under_eyes},
                                      {"close-all", close_all},
                                      {NULL, NULL}};
