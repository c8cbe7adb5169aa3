/* synced: measures synchronous calls to standard output.
 *
 *     synced CONFIG COUNT RESULT
 *
 * The result goes to the file RESULT. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <weir/weir.h>

#include "../support/measure.h"

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    int count = argc == 4 ? atoi(argv[2]) : 0;
    if (count < 1)
        measure_fail("usage: synced CONFIG COUNT RESULT");
    if (weir_configure_file(argv[1]) != 0)
        measure_fail("%s", weir_last_error());
    weir_metric *metric = weir_get_metric(weir_get_stream("my_app"), "latency");
    double start = now_us();
    for (int i = 0; i < count; i++)
        if (weir_metric_add(metric, (double)(i % 100000) / 1000) != 0)
            measure_fail("%s", weir_last_error());
    double elapsed_us = now_us() - start;
    FILE *result = fopen(argv[3], "w");
    if (!result)
        measure_fail("%s: cannot be written", argv[3]);
    fprintf(result, "{\"event_us\":%.3f}\n", elapsed_us / count);
    return fclose(result) == 0 ? 0 : 1;
}
