#include "stack.h"

#include <stdlib.h>

void stack_init(Stack *stack)
{
    stack->items = NULL;
    stack->count = stack->capacity = 0;
}

void stack_free(Stack *stack)
{
    free(stack->items);
    stack_init(stack);
}

bool stack_push(Stack *stack, double item)
{
    if (stack->count == stack->capacity) {
        size_t capacity = stack->capacity ? 2 * stack->capacity : 4;
        double *items = realloc(stack->items, capacity * sizeof *items);
        if (items == NULL)
            return false;
        stack->items = items;
        stack->capacity = capacity;
    }
    stack->items[stack->count++] = item;
    return true;
}

bool stack_pop(Stack *stack, double *item)
{
    if (stack->count == 0)
        return false;
    *item = stack->items[--stack->count];
    return true;
}
