/* A second of arithmetic and memory, and how many nanoseconds it took. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(void) {
    static uint64_t table[1 << 16];
    uint64_t x = 88172645463325252ull;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long i = 0; i < 300000000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        table[x & 0xffff] += x;
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.0f\n", (b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec));
    return table[7] == 42;
}
