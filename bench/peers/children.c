/* children: measures forked children that end at once.
 *
 *     children COUNT */

#include <stdio.h>

#include "../support/children.h"

static void do_nothing(void)
{
}

int main(int argc, char **argv)
{
    int count = argc == 2 ? atoi(argv[1]) : 0;
    if (count < 1)
        measure_fail("usage: children COUNT");
    printf("{\"child_us\":%.1f}\n", children_measure(count, do_nothing));
    return 0;
}
