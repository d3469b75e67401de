/* Against the one who looks: calls that make him wait, names that he can't read, memory that he does not see. */
#include "hostile.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

static int contested;

static void *take_nonblocking_away(void *arg) {
    for (;;)
        fcntl(contested, F_SETFL, O_RDWR);
    return arg;
}

static void *connect_there(void *arg) {
    connect(contested, arg, sizeof(struct sockaddr_un));
    return NULL;
}

/* A connection to a listener without room, on a socket whose mode changes all the time; then it stays. */
static int stall_witness(int argc, char **argv) {
    (void)argc, (void)argv;
    static struct sockaddr_un address = {AF_UNIX, "/tmp/listener"};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), first = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(listener, (void *)&address, sizeof address);
    listen(listener, 0);
    connect(first, (void *)&address, sizeof address);
    contested = socket(AF_UNIX, SOCK_STREAM, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, take_nonblocking_away, NULL);
    pthread_create(&thread, NULL, connect_there, &address);
    for (;;)
        pause();
    return 0;
}

static void *hog_slowly(void *arg) {
    (void)arg;
    for (int i = 0; i < 40; i++) {
        char *p = mmap(NULL, 10 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(p, 1, 10 << 20);
        usleep(50000);
    }
    _exit(0);
}

/* The first thread ends; another one takes 400 MB. */
static int hog_headless(int argc, char **argv) {
    (void)argc, (void)argv;
    pthread_t thread;
    pthread_create(&thread, NULL, hog_slowly, NULL);
    pthread_exit(NULL);
}

const struct attack witness_attacks[] = {
    {"stall-witness", stall_witness}, {"hog-headless", hog_headless}, {NULL, NULL}};
