/* Calls that no honest program makes. */
#include "hostile.h"

static int ptrace_me(int argc, char **argv) {
    (void)argc, (void)argv;
    return syscall(SYS_ptrace, 0, 0, 0, 0) == -1 ? 0 : 1;
}

const struct attack syscall_attacks[] = {{"ptrace", ptrace_me}, {NULL, NULL}};
