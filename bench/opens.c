/* Opens files a hundred thousand times and says how many nanoseconds each took. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const int rounds = 100, files = 1000;
    int write = argc > 2 && strcmp(argv[2], "write") == 0;
    char name[4200];
    struct timespec a, b;
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "%s/%d", argv[1], i);
        int fd = open(name, O_WRONLY | O_CREAT, 0644);
        if (fd < 0)
            return 1;
        close(fd);
    }
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < files; i++) {
            snprintf(name, sizeof name, "%s/%d", argv[1], i);
            int fd = open(name, write ? O_WRONLY | O_CREAT : O_RDONLY, 0644);
            if (fd < 0)
                return 1;
            close(fd);
        }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.0f\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / (rounds * files));
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "%s/%d", argv[1], i);
        unlink(name);
    }
    return 0;
}
