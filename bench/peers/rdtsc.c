/* rdtsc: only reads the processor's cycle counter for each value: the lower bound for any library that
 * timestamps values. */

#include <stdint.h>

#include "../support/measure.h"
#include "../support/ticks.h"

static _Atomic uint64_t sink;

static void open_nothing(const struct task *task)
{
    (void)task;
}

static void *begin(const struct task *task)
{
    (void)task;
    return (void *)&sink;
}

static void read_ticks(void *state, const double *values, size_t count)
{
    uint64_t sum = 0;
    (void)state;
    (void)values;
    for (size_t i = 0; i < count; i++)
        sum += ticks_read();
    sink = sum;
}

int main(int argc, char **argv)
{
    static const struct subject subject = {
        .open = open_nothing, .begin = begin, .add = read_ticks, .close = open_nothing};
    return measure(argc, argv, &subject);
}
