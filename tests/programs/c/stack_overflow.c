/* Overflows the stack: the depth of a directory tree whose root is its own child. */
#include <stdio.h>
#include <string.h>

struct directory {
    const char *name;
    struct directory *child;
};

static size_t path_length(const struct directory *directory, char *path)
{
    char longer[512];
    if (directory == NULL)
        return strlen(path);
    snprintf(longer, sizeof longer, "%.200s/%s", path, directory->name);
    size_t length = path_length(directory->child, longer);
    return length > 0 ? length : strlen(longer);
}

int main(void)
{
    char start[] = "";
    struct directory leaf = {"docs", NULL};
    struct directory root = {"home", &leaf};
    printf("length %zu\n", path_length(&root, start));
    fflush(stdout);
    leaf.child = &root;
    printf("length %zu\n", path_length(&root, start));
    return 0;
}
