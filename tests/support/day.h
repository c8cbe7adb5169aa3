/* day: for tests with intervals of a day, which end only by a flush. */
#ifndef WEIR_TESTS_DAY_H
#define WEIR_TESTS_DAY_H

#include <time.h>
#include <unistd.h>

/* Waits if the day, UTC, is about to end: the interval would end in the middle of the test. */
static inline void await_day(void)
{
    while (time(NULL) % 86400 > 86400 - 60)
        usleep(100000);
}

#endif
