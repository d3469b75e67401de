/* The same kernel by its other doors: the 32-bit ABI and x32. */
#include "hostile.h"

static void no_such_door(int signal) {
    (void)signal;
    static const char words[] = "this kernel has no 32-bit ABI\n";
    ssize_t n = write(1, words, sizeof words - 1);
    _exit(n > 0 ? 0 : 1);
}

static int int80(int argc, char **argv) {
    (void)argc, (void)argv;
    signal(SIGSEGV, no_such_door);
    long result;
    /* 20 is getpid there and writev here. */
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20), "b"(0), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
    errno = (int)-result;
    tell("getpid", result < 0 ? -1 : 0);
    return 0;
}

static int x32(int argc, char **argv) {
    (void)argc, (void)argv;
    tell("getpid", syscall(0x40000000 | SYS_getpid));
    tell("ptrace", syscall(0x40000000 | 521, 0, 0, 0, 0));
    return 0;
}

const struct attack abi_attacks[] = {{"int80", int80}, {"x32", x32}, {NULL, NULL}};
