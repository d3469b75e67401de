/* Processor, memory and scratch: used in ways that a limit must see, or must not mistake. Each has a bound. */
#include "hostile.h"
#include <sys/resource.h>
#include <time.h>

#define MIB (1 << 20)
#define MOST (400L * MIB) /* what a hog takes when nothing stops it */

static double cpu_used(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void burn(double seconds) {
    while (cpu_used() < seconds)
        ;
}

/* spin MS: that much processor time in this process */
static int spin(int argc, char **argv) {
    burn(argc > 1 ? atof(argv[1]) / 1000 : 60);
    return 0;
}

/* spin-children N MS: side by side, the parent waits */
static int spin_children(int argc, char **argv) {
    (void)argc;
    for (int i = atoi(argv[1]); i > 0; i--)
        if (fork() == 0)
            burn(atof(argv[2]) / 1000), _exit(0);
    while (wait(NULL) > 0)
        ;
    return 0;
}

/* spin-one-by-one N MS [ignore]: short lives, one after the other; reaped, or not even that */
static int spin_one_by_one(int argc, char **argv) {
    if (argc > 3)
        signal(SIGCHLD, SIG_IGN);
    for (int i = atoi(argv[1]); i > 0; i--) {
        if (fork() == 0)
            burn(atof(argv[2]) / 1000), _exit(0);
        while (wait(NULL) > 0)
            ;
    }
    return 0;
}

/* busy MS: of the clock, not of the processor */
static int busy(int argc, char **argv) {
    (void)argc;
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1e3 + (now.tv_nsec - from.tv_nsec) / 1e6 < atof(argv[1]));
    return 0;
}

static int hog(int flags) {
    for (long taken = 0; taken < MOST; taken += 4 * MIB) {
        char *p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return 1;
        memset(p, 1, 4 * MIB);
    }
    /* still there when the next sample is taken */
    usleep(300000);
    return 0;
}

static int hog_shared(int argc, char **argv) {
    (void)argc, (void)argv;
    return hog(MAP_SHARED);
}

static int hog_in_child(int argc, char **argv) {
    (void)argc, (void)argv;
    if (fork() == 0)
        _exit(hog(MAP_PRIVATE));
    while (wait(NULL) > 0)
        ;
    return 0;
}

static int hog_memfd(int argc, char **argv) {
    (void)argc, (void)argv;
    static char block[MIB];
    memset(block, 'x', sizeof block);
    int fd = syscall(SYS_memfd_create, "hog", 0);
    if (fd < 0)
        return 1;
    for (long taken = 0; taken < MOST; taken += sizeof block)
        if (write(fd, block, sizeof block) < 0)
            return 1;
    usleep(300000);
    return 0;
}

/* Asked for and never touched; and more than there can be, which is an error and no crime. */
static int reserve(int argc, char **argv) {
    (void)argc, (void)argv;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (mmap(NULL, 4L << 30, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
        return 1;
    printf("%s\n", malloc(1L << 46) == NULL ? "ENOMEM" : "given");
    return 0;
}

/* share-pages MIB N: children that see the parent's pages, each, and own none of them */
static int share_pages(int argc, char **argv) {
    (void)argc;
    size_t size = atol(argv[1]) * MIB;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 1;
    memset(p, 1, size);
    for (int i = atoi(argv[2]); i > 0; i--)
        if (fork() == 0) {
            long sum = 0;
            for (size_t at = 0; at < size; at += 4096)
                sum += p[at];
            usleep(300000);
            _exit(sum == 0);
        }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}

/* write-file PATH BYTES [ignore]: as one writes a file; with SIGXFSZ heard or not */
static int write_file(int argc, char **argv) {
    static char block[64 << 10];
    memset(block, 'x', sizeof block);
    if (argc > 3)
        signal(SIGXFSZ, SIG_IGN);
    int fd = open(argv[1], O_WRONLY | O_CREAT, 0644);
    for (long left = atol(argv[2]); left > 0;) {
        ssize_t n = write(fd, block, left < (long)sizeof block ? left : (long)sizeof block);
        if (n < 0) {
            printf("%s\n", errno == ENOSPC ? "ENOSPC" : errno == EFBIG ? "EFBIG" : strerror(errno));
            return 0;
        }
        left -= n;
    }
    puts("written");
    return 0;
}

/* lengthen BYTES truncate|allocate|pwrite|unlinked: a file longer than what was written to it, or one without a name */
static int lengthen(int argc, char **argv) {
    (void)argc;
    static char block[64 << 10];
    long bytes = atol(argv[1]);
    int fd = open("/work/f", O_WRONLY | O_CREAT, 0644);
    if (strcmp(argv[2], "truncate") == 0 && ftruncate(fd, bytes) < 0)
        return 1;
    if (strcmp(argv[2], "allocate") == 0 && fallocate(fd, 0, 0, bytes) < 0)
        return 1;
    if (strcmp(argv[2], "pwrite") == 0 && pwrite(fd, "x", 1, bytes - 1) < 0)
        return 1;
    if (strcmp(argv[2], "unlinked") == 0 && unlink("/work/f") == 0)
        for (ssize_t n; bytes > 0; bytes -= n)
            if ((n = write(fd, block, bytes < (long)sizeof block ? bytes : (long)sizeof block)) < 0)
                return 1;
    puts("long");
    return 0;
}

/* burn MS: so much more than it has used when it begins */
static int burn_more(int argc, char **argv) {
    (void)argc;
    burn(cpu_used() + atof(argv[1]) / 1000);
    return 0;
}

/* churn PATH MIB TIMES: filled and emptied, again and again */
static int churn(int argc, char **argv) {
    (void)argc;
    static char block[MIB];
    memset(block, 'x', sizeof block);
    for (int i = atoi(argv[3]); i > 0; i--) {
        int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
        for (long left = atol(argv[2]); left > 0; left--)
            if (write(fd, block, sizeof block) != sizeof block)
                return 1;
        close(fd);
        unlink(argv[1]);
    }
    return 0;
}

static int sparse(int argc, char **argv) {
    (void)argc, (void)argv;
    int fd = open("/work/sparse", O_WRONLY | O_CREAT, 0644);
    return ftruncate(fd, 64L << 30) == 0 && pwrite(fd, "x", 1, 32L << 30) == 1 ? 0 : 1;
}

/* make-files DIR N: until there is room for no more */
static int make_files(int argc, char **argv) {
    (void)argc;
    long made = 0;
    for (; made < atol(argv[2]); made++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%ld", argv[1], made);
        int fd = open(name, O_WRONLY | O_CREAT, 0644);
        if (fd < 0)
            break;
        close(fd);
    }
    printf("%ld %s\n", made, made == atol(argv[2]) ? "all" : errno == ENOSPC ? "ENOSPC" : strerror(errno));
    return 0;
}

static int open_many(int argc, char **argv) {
    (void)argc, (void)argv;
    int last = -1, fd;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    printf("%d %s\n", last + 1, errno == EMFILE ? "EMFILE" : strerror(errno));
    return 0;
}

const struct attack hunger_attacks[] = {
    {"spin", spin},
    {"spin-children", spin_children},
    {"spin-one-by-one", spin_one_by_one},
    {"busy", busy},
    {"hog-shared", hog_shared},
    {"hog-in-child", hog_in_child},
    {"hog-memfd", hog_memfd},
    {"reserve", reserve},
    {"share-pages", share_pages},
    {"write-file", write_file},
    {"lengthen", lengthen},
    {"burn", burn_more},
    {"churn", churn},
    {"sparse", sparse},
    {"make-files", make_files},
    {"open-many", open_many},
    {NULL, NULL},
};
