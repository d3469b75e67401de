/* Multiplies matrices and finds the power of one by squaring. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 2 };

typedef struct {
    uint64_t cell[N][N];
} Matrix;

static Matrix multiply(const Matrix *a, const Matrix *b)
{
    Matrix product;
    memset(&product, 0, sizeof product);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                product.cell[i][j] += a->cell[i][k] * b->cell[k][j];
    return product;
}

static Matrix power(Matrix base, unsigned exponent)
{
    Matrix result = {{{1, 0}, {0, 1}}};
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = multiply(&result, &base);
        base = multiply(&base, &base);
    }
    return result;
}

int main(int argc, char **argv)
{
    const Matrix step = {{{1, 1}, {1, 0}}};
    for (int i = 1; i < argc; i++) {
        unsigned n = (unsigned)strtoul(argv[i], NULL, 10);
        printf("fib(%u) = %" PRIu64 "\n", n, power(step, n).cell[0][1]);
    }
    return EXIT_SUCCESS;
}
