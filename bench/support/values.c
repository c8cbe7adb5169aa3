#include "values.h"

#include <stdint.h>

/* splitmix64: the same numbers on every machine. */
static uint64_t draw(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

void values_fill(double *table, bool random)
{
    uint64_t state = 1;
    for (unsigned i = 0; i < VALUES; i++) {
        unsigned index = i * 7919 % VALUES; /* 7919 is prime: each index occurs once */
        if (random)
            table[i] = (double)(draw(&state) >> 11) * 0x1p-53 * 100;
        else
            table[i] = (index * 10 + 1 + index % 9) / 1000.0;
    }
}
