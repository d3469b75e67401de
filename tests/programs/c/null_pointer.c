/* Looks for a name in a list and forgets that it may be missing. */
#include <stdio.h>
#include <string.h>

struct entry {
    const char *name;
    int extension;
    const struct entry *next;
};

static const struct entry *find(const struct entry *list, const char *name)
{
    while (list != NULL && strcmp(list->name, name) != 0)
        list = list->next;
    return list;
}

int main(int argc, char **argv)
{
    const struct entry carol = {"carol", 303, NULL};
    const struct entry bob = {"bob", 202, &carol};
    const struct entry alice = {"alice", 101, &bob};

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        const volatile struct entry *found = find(&alice, argv[i]);
        printf("%s: %d\n", argv[i], found->extension);
    }
    return 0;
}
