/* A program that uses the library in this folder. It does not use weir and is not linked with it, but
 *
 *     WEIR_CONFIG='{"groups":{"lru":"console"}}' host
 *
 * prints the measurements of the library. */

#include <stdio.h>

#include "lru.h"

static long square(struct lru *lru, int number)
{
    char key[16];
    long value;
    snprintf(key, sizeof key, "%d", number);
    if (!lru_get(lru, key, &value)) {
        value = (long)number * number; /* a slow computation in a real program */
        lru_put(lru, key, value);
    }
    return value;
}

int main(void)
{
    long sum = 0;
    struct lru *lru = lru_new("squares", 3);
    if (!lru)
        return 1;
    for (int i = 0; i < 8; i++)
        sum += square(lru, i % 4 == 3 ? i : i % 2);
    lru_free(lru);
    printf("%ld\n", sum);
    return 0;
}
