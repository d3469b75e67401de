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

/* Each file of attacks ends in a table; main.c lists the tables. */
extern const struct attack memory_attacks[], process_attacks[], disk_attacks[], syscall_attacks[];
extern const struct attack hunger_attacks[], crowd_attacks[], ending_attacks[], stream_attacks[];
#endif
