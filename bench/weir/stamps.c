/* stamps: measures the error of the times of values relative to the wall clock.
 *
 *     stamps CLOCK COUNT
 *
 * The wall clock is read before and after each call, for either value of settings.clock; the error is the
 * distance of the value's time from this interval. Calls are made in bursts with pauses between them, from none
 * to long enough that all threads sleep. */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/measure.h"

enum { BURST = 50 };

struct stamp {
    int64_t before_ns, time_ns, after_ns;
};

static struct stamp *stamps;
static long count;

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    return (void *)host;
}

static void store_times(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self, (void)outcome;
    for (uint32_t i = 0; i < batch->count; i++)
        stamps[batch->samples[i].value.i64].time_ns = batch->samples[i].time_ns;
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {.size = sizeof type,
                                       .abi = WEIR_ABI,
                                       .name = "stamps",
                                       .summary = "stores the times of values",
                                       .create = create,
                                       .emit = store_times,
                                       .destroy = destroy};

static int64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void add_all(weir_stream *stream)
{
    static const long pauses_ns[] = {0, 50000, 300000, 2000000, 30000000};
    for (long i = 0; i < count; i++) {
        stamps[i].before_ns = wall_ns();
        weir_add_int(stream, "number", i);
        stamps[i].after_ns = wall_ns();
        long pause_ns = i % BURST ? 0 : pauses_ns[i / BURST % 5];
        if (pause_ns)
            nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    }
    if (weir_flush(-1) != 0)
        measure_fail("not everything was delivered: %s", weir_last_error());
}

static int64_t *list_errors(void)
{
    int64_t *errors = calloc((size_t)count, sizeof *errors);
    if (!errors)
        measure_fail("out of memory");
    for (long i = 0; i < count; i++) {
        const struct stamp *stamp = &stamps[i];
        if (stamp->time_ns < stamp->before_ns)
            errors[i] = stamp->before_ns - stamp->time_ns;
        else if (stamp->time_ns > stamp->after_ns)
            errors[i] = stamp->time_ns - stamp->after_ns;
        if (i && stamp->time_ns < stamps[i - 1].time_ns)
            measure_fail("time went backwards");
    }
    qsort(errors, (size_t)count, sizeof *errors, compare);
    return errors;
}

int main(int argc, char **argv)
{
    char config[200];
    count = argc == 3 ? atol(argv[2]) : 0;
    if (count < 1)
        measure_fail("usage: stamps CLOCK COUNT");
    stamps = calloc((size_t)count, sizeof *stamps);
    snprintf(config, sizeof config, "{\"settings\":{\"clock\":\"%s\"},\"groups\":{\"*\":\"stamps\"}}", argv[1]);
    if (!stamps || weir_register_handler_type(&type, NULL) != 0 ||
        weir_configure_text(config, strlen(config)) != 0)
        measure_fail("%s", weir_last_error());
    add_all(weir_get_stream("my_app"));
    const int64_t *errors = list_errors();
    printf("{\"median_ns\":%" PRId64 ",\"p99_ns\":%" PRId64 ",\"max_ns\":%" PRId64 "}\n", errors[count / 2],
           errors[count - 1 - count / 100], errors[count - 1]);
    return 0;
}
