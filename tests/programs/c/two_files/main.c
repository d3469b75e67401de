/* A calculator for reverse Polish notation, line by line from standard input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stack.h"

static bool apply(Stack *stack, char operator)
{
    double right, left;
    if (!stack_pop(stack, &right) || !stack_pop(stack, &left))
        return false;
    switch (operator) {
    case '+': return stack_push(stack, left + right);
    case '-': return stack_push(stack, left - right);
    case '*': return stack_push(stack, left * right);
    case '/': return stack_push(stack, left / right);
    default: return false;
    }
}

static bool evaluate(char *line, double *result)
{
    Stack stack;
    bool ok = true;
    stack_init(&stack);
    for (char *word = strtok(line, " \n"); ok && word != NULL; word = strtok(NULL, " \n")) {
        char *end;
        double value = strtod(word, &end);
        ok = *end == '\0' ? stack_push(&stack, value) : apply(&stack, *word);
    }
    ok = ok && stack.count == 1 && stack_pop(&stack, result);
    stack_free(&stack);
    return ok;
}

int main(void)
{
    char line[256];
    double result;
    for (int number = 1; fgets(line, sizeof line, stdin) != NULL; number++) {
        if (evaluate(line, &result))
            printf("%d: %g\n", number, result);
        else
            printf("%d: error\n", number);
    }
    return 0;
}
