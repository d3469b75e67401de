/* Finds the attack that was asked for and runs it. */
#include "hostile.h"

int main(int argc, char **argv) {
    const struct attack *tables[] = {memory_attacks, process_attacks, disk_attacks,    syscall_attacks,
                                     abi_attacks,    file_attacks,    network_attacks, neighbour_attacks,
                                     hunger_attacks, crowd_attacks,   ending_attacks,  stream_attacks,
                                     witness_attacks};
    if (argc < 2) {
        fprintf(stderr, "usage: hostile NAME [ARGS]\n");
        return 2;
    }
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct attack *a = tables[t]; a->name; a++)
            if (strcmp(a->name, argv[1]) == 0)
                return a->run(argc - 1, argv + 1);
    fprintf(stderr, "hostile: no attack is called %s\n", argv[1]);
    return 2;
}
