/* Ways to end, and ways not to. */
#include "hostile.h"

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0)
        _exit(9);
}

static int stay(void) {
    while (pause())
        ;
    return 0;
}

static int exit_with(int argc, char **argv) {
    (void)argc;
    return atoi(argv[1]);
}

/* die-of N: by its own hand */
static int die_of(int argc, char **argv) {
    (void)argc;
    signal(atoi(argv[1]), SIG_DFL);
    kill(getpid(), atoi(argv[1]));
    return 99;
}

static int segfault(int argc, char **argv) {
    (void)argc, (void)argv;
    *(volatile int *)8 = 1;
    return 99;
}

static int divide(int argc, char **argv) {
    (void)argc, (void)argv;
    volatile int some = 100, none = 0;
    return some / none;
}

static int illegal(int argc, char **argv) {
    (void)argc, (void)argv;
    __builtin_trap();
}

static int abort_now(int argc, char **argv) {
    (void)argc, (void)argv;
    abort();
}

static int deeper(volatile char *above, long more) {
    volatile char here[4096];
    here[0] = above[0];
    return more == 0 ? 0 : deeper(here, more - 1) + here[0];
}

static int overflow(int argc, char **argv) {
    (void)argc;
    return deeper(argv[0], 1L << 40);
}

static void said_term(int signal) {
    (void)signal;
    say("term\n");
}

/* hears-term EXIT: says so and goes on; with EXIT, ends well */
static void said_term_and_end(int signal) {
    (void)signal;
    say("term\n");
    _exit(0);
}

static int hears_term(int argc, char **argv) {
    (void)argv;
    signal(SIGTERM, argc > 1 ? said_term_and_end : said_term);
    say("ready\n");
    return stay();
}

static int ignores_term(int argc, char **argv) {
    (void)argc, (void)argv;
    signal(SIGTERM, SIG_IGN);
    say("ready\n");
    return stay();
}

static int stops_itself(int argc, char **argv) {
    (void)argc, (void)argv;
    say("ready\n");
    kill(getpid(), SIGSTOP);
    say("continued\n");
    return stay();
}

/* Twice forked, its own session; the first ends well. With an argument it keeps the streams open. */
static int daemonise(int argc, char **argv) {
    (void)argv;
    if (fork() != 0)
        return 0;
    setsid();
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    if (fork() != 0)
        _exit(0);
    if (argc < 2)
        for (int fd = 0; fd < 3; fd++)
            close(fd);
    return stay();
}

/* First a refused call, then no end. */
static int ptrace_then_stay(int argc, char **argv) {
    (void)argc, (void)argv;
    syscall(SYS_ptrace, 0, 0, 0, 0);
    say("ready\n");
    return stay();
}

static void ptrace_and_end(int signal) {
    (void)signal;
    syscall(SYS_ptrace, 0, 0, 0, 0);
    _exit(0);
}

static int stay_then_ptrace(int argc, char **argv) {
    (void)argc, (void)argv;
    signal(SIGTERM, ptrace_and_end);
    say("ready\n");
    return stay();
}

const struct attack ending_attacks[] = {
    {"exit", exit_with},
    {"die-of", die_of},
    {"segfault", segfault},
    {"divide", divide},
    {"illegal", illegal},
    {"abort", abort_now},
    {"overflow", overflow},
    {"hears-term", hears_term},
    {"ignores-term", ignores_term},
    {"stops-itself", stops_itself},
    {"daemonise", daemonise},
    {"ptrace-then-stay", ptrace_then_stay},
    {"stay-then-ptrace", stay_then_ptrace},
    {NULL, NULL},
};
