/* One cell beside another, and a program beside its own init. */
#include "hostile.h"
#include <stddef.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Leaves a trace in all places that might be shared, and stays until its input ends. */
static int hold(int argc, char **argv) {
    (void)argc, (void)argv;
    close(open("/tmp/held", O_WRONLY | O_CREAT, 0666));
    close(open("/work/held", O_WRONLY | O_CREAT, 0666));
    close(open("/dev/shm/held", O_WRONLY | O_CREAT, 0666));
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0hotcell-held"};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (void *)&name, offsetof(struct sockaddr_un, sun_path) + 13) != 0 || listen(listener, 1) != 0)
        return 1;
    if (flock(open("/src/target", O_RDONLY), LOCK_EX | LOCK_NB) != 0)
        puts("no flock");
    prctl(PR_SET_NAME, "holding");
    char c;
    while (read(0, &c, 1) > 0)
        ;
    puts(accept(listener, NULL, NULL) < 0 ? "alone" : "visited");
    return 0;
}

/* The program and its init have the same id: what may it do to it? `tame-init RESOURCE...` takes limits away. */
static int tame_init(int argc, char **argv) {
    struct rlimit none = {0, 0};
    for (int i = 1; i < argc; i++)
        prlimit(1, atoi(argv[i]), &none, NULL);
    for (int signal = 1; signal < 65; signal++)
        kill(1, signal);
    /* An orphan for it to reap: it has to wake up and go back to sleep. */
    pid_t child = fork();
    if (child == 0) {
        fork();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    /* Until it has reaped the orphan there is a third process. */
    for (int i = 0; i < 1000 && kill(-1, 0) == 0; i++)
        usleep(1000);
    puts("alive");
    return 0;
}

const struct attack neighbour_attacks[] = {{"hold", hold}, {"tame-init", tame_init}, {NULL, NULL}};
