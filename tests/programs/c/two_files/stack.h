#ifndef STACK_H
#define STACK_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    double *items;
    size_t count, capacity;
} Stack;

void stack_init(Stack *stack);
void stack_free(Stack *stack);
bool stack_push(Stack *stack, double item);
bool stack_pop(Stack *stack, double *item);

#endif
