/* A program that uses the library beside it. It knows nothing of weir and is not linked with it; yet
 *
 *     WEIR_CONFIG='{"groups":{"lru":"console"}}' host
 *
 * shows what the library has measured. */

#include <stdio.h>

#include "lru.h"

static long square(struct lru *lru, int number)
{
    char key[16];
    long value;
    snprintf(key, sizeof key, "%d", number);
    if (!lru_get(lru, key, &value)) {
        value = (long)number * number; /* imagine that this takes long */
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
