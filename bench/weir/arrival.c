/* arrival: measures the time from a call that ends an idle period until the value is in the file.
 *
 *     arrival CONFIG FILE COUNT
 *
 * The end is the inotify event for the write; the wake-up of this thread is included. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../support/measure.h"

enum { IDLE_MS = 30 }; /* a ring becomes idle after 10 ms without values */

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double measure_once(weir_stream *stream, int watch)
{
    char events[4096];
    nanosleep(&(struct timespec){.tv_nsec = IDLE_MS * 1000000L}, NULL);
    double start = now_us();
    weir_add_value(stream, "latency", 0.001);
    if (read(watch, events, sizeof events) <= 0)
        measure_fail("cannot watch the file");
    return now_us() - start;
}

int main(int argc, char **argv)
{
    int count = argc == 4 ? atoi(argv[3]) : 0;
    if (count < 1)
        measure_fail("usage: arrival CONFIG FILE COUNT");
    double *elapsed = malloc((size_t)count * sizeof *elapsed);
    if (!elapsed || weir_configure_file(argv[1]) != 0)
        measure_fail("%s", weir_last_error());
    weir_stream *stream = weir_get_stream("my_app");
    weir_add_value(stream, "latency", 0.001);
    if (weir_flush(-1) != 0)
        measure_fail("the first value was not delivered");
    int watch = inotify_init1(IN_CLOEXEC);
    if (watch < 0 || inotify_add_watch(watch, argv[2], IN_MODIFY) < 0)
        measure_fail("%s: cannot watch the file", argv[2]);
    for (int i = 0; i < count; i++)
        elapsed[i] = measure_once(stream, watch);
    qsort(elapsed, (size_t)count, sizeof *elapsed, compare);
    printf("{\"median_us\":%.1f,\"max_us\":%.1f}\n", elapsed[count / 2], elapsed[count - 1]);
    return 0;
}
