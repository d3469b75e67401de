/* One static binary of small hostile programs, each chosen by its name. */
#ifndef HOSTILE_H
#define HOSTILE_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct attack {
    const char *name;
    int (*run)(int argc, char **argv);
};

/* One line for each thing that was tried: its name, and `done` or the name of the errno. */
static inline void tell(const char *what, long result) {
    printf("%s %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
    fflush(stdout);
}

/* Each file of attacks ends in a table; main.c lists the tables. */
extern const struct attack memory_attacks[], process_attacks[], disk_attacks[], syscall_attacks[], abi_attacks[],
    file_attacks[], network_attacks[], neighbour_attacks[], hunger_attacks[], crowd_attacks[], ending_attacks[],
    stream_attacks[], witness_attacks[];
#endif
