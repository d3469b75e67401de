/* Calls that no honest program makes, and some that honest programs only probe for. */
#include "hostile.h"
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>

static int ptrace_me(int argc, char **argv) {
    (void)argc, (void)argv;
    return syscall(SYS_ptrace, 0, 0, 0, 0) == -1 ? 0 : 1;
}

/* Every number that is given, with arguments of zero. */
static int calls(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        tell(argv[i], syscall(strtol(argv[i], NULL, 0), 0, 0, 0, 0, 0, 0));
    return 0;
}

/* A new namespace of each kind, by clone; the child, if there is one, ends at once. */
static int clone_namespaces(int argc, char **argv) {
    (void)argc, (void)argv;
    const struct {
        const char *name;
        unsigned long flag;
    } kinds[] = {{"user", CLONE_NEWUSER}, {"pid", CLONE_NEWPID}, {"mount", CLONE_NEWNS},      {"net", CLONE_NEWNET},
                 {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}, {"high", 0}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        /* The last one has a flag among rubbish in the upper half, which the kernel does not look at. */
        unsigned long flags = kinds[i].flag ? kinds[i].flag : (0xdeadUL << 32 | CLONE_NEWUSER);
        long child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
        if (child == 0)
            _exit(0);
        tell(kinds[i].name, child);
    }
    return 0;
}

/* What runtimes try and can do without. */
static int quiet(int argc, char **argv) {
    (void)argc, (void)argv;
    static char args[128];
#define TRY(name, ...) tell(#name, syscall(SYS_##name, __VA_ARGS__))
    TRY(clone3, args, 88);
    TRY(io_uring_setup, 8, args);
    TRY(io_uring_enter, 0, 0, 0, 0, 0, 0);
    TRY(io_uring_register, 0, 0, 0, 0);
    TRY(io_setup, 8, args);
    TRY(inotify_init1, 0);
    TRY(inotify_init, 0);
    TRY(shmget, 1, 4096, 01600);
    TRY(shmat, 0, 0, 0);
    TRY(shmctl, 0, 0, 0);
    TRY(semget, 1, 1, 01600);
    TRY(semop, 0, 0, 0);
    TRY(msgget, 1, 01600);
    TRY(msgsnd, 0, 0, 0, 0);
    TRY(mq_open, "q", O_RDWR | O_CREAT, 0600, 0);
    TRY(modify_ldt, 0, args, 16);
    TRY(name_to_handle_at, AT_FDCWD, "/", args, args + 64, 0);
    TRY(kcmp, 1, 1, 0, 0, 0);
#undef TRY
    return 0;
}

/* Putting characters into a terminal's input. The kernel looks at the low half of the number only. */
static int tty_ioctls(int argc, char **argv) {
    (void)argc, (void)argv;
    char c = 'x';
    tell("TIOCSTI", syscall(SYS_ioctl, 0, (unsigned long)TIOCSTI, &c));
    tell("TIOCLINUX", syscall(SYS_ioctl, 0, (unsigned long)TIOCLINUX, &c));
    tell("TIOCSETD", syscall(SYS_ioctl, 0, (unsigned long)TIOCSETD, &c));
    tell("high TIOCSTI", syscall(SYS_ioctl, 0, 1UL << 32 | TIOCSTI, &c));
    tell("high TIOCLINUX", syscall(SYS_ioctl, 0, 0xffffffffUL << 32 | TIOCLINUX, &c));
    return 0;
}

static int personalities(int argc, char **argv) {
    (void)argc, (void)argv;
    tell("ask", syscall(SYS_personality, 0xffffffffUL));
    tell("usual", syscall(SYS_personality, 0UL));
    tell("no-randomize", syscall(SYS_personality, 0x0040000UL));
    tell("read-implies-exec", syscall(SYS_personality, 0x0400000UL));
    tell("linux32", syscall(SYS_personality, 8UL));
    return 0;
}

/* What watches, or holds up, others that use the same file. */
static int leases(int argc, char **argv) {
    (void)argc;
    int fd = open(argv[1], O_RDONLY);
    int dir = open("/src", O_RDONLY | O_DIRECTORY);
    tell("lease", fcntl(fd, F_SETLEASE, F_RDLCK));
    tell("high lease", syscall(SYS_fcntl, fd, 1UL << 32 | F_SETLEASE, F_RDLCK));
    tell("notify", fcntl(dir, F_NOTIFY, DN_MODIFY));
    return 0;
}

/* A debugger of its own child. */
static int ptrace_child(int argc, char **argv) {
    (void)argc, (void)argv;
    int hold[2];
    char c;
    if (pipe(hold) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        close(hold[1]);
        _exit(read(hold[0], &c, 1) == 0 ? 0 : 1);
    }
    tell("attach", ptrace(PTRACE_ATTACH, child, 0, 0));
    tell("seize", ptrace(PTRACE_SEIZE, child, 0, 0));
    close(hold[0]);
    close(hold[1]);
    return waitpid(child, NULL, 0) == child ? 0 : 1;
}

const struct attack syscall_attacks[] = {{"ptrace", ptrace_me},
                                         {"calls", calls},
                                         {"clone-namespaces", clone_namespaces},
                                         {"quiet", quiet},
                                         {"tty-ioctls", tty_ioctls},
                                         {"personalities", personalities},
                                         {"leases", leases},
                                         {"ptrace-child", ptrace_child},
                                         {NULL, NULL}};
