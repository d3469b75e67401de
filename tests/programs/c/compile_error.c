/* Does not compile: a field that does not exist, and a function with too few arguments. */
#include <stdio.h>

struct point {
    double x, y;
};

static double dot(struct point a, struct point b)
{
    return a.x * b.x + a.y * b.y;
}

int main(void)
{
    struct point p = {3.0, 4.0};
    p.z = 5.0;
    printf("this line is never reached: %f\n", dot(p));
    return 0;
}
