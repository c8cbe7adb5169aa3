/* sampling: what sources that measure at an interval share: the times, adding, and counters by difference. All
 * of it is called by the source's thread. */
#ifndef WEIR_PLUGINS_SAMPLING_H
#define WEIR_PLUGINS_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/source.h>

enum { SAMPLING_LABELS_MOST = 3 };

/* A total that was read before. */
struct sampling_total;

struct sampling {
    const weir_host *host;
    const weir_intake *intake;
    int64_t interval_ns;
    int64_t time_ns;    /* of the present sampling, since 1970 */
    int64_t begun_ns;   /* the same, monotonic */
    int64_t elapsed_ns; /* since the previous one; 0: there was none */
    uint64_t number;    /* of the present sampling, from 1 */
    bool counts_first;  /* a total counts whole when it is read first: it began with the source */
    bool keeps_totals;  /* the set of totals is fixed: one that a sampling has not found is only missing */
    bool is_stopping;
    bool is_short; /* the present sampling is the last one, soon after the previous one: levels are left out,
                      since shares of so short a time are mostly rounding */
    int64_t give_up_ns;            /* of the last sampling: until when it waits for room; monotonic */
    struct sampling_total *totals; /* in the order of the last sampling, if that did not change */
    uint32_t total_count, total_room;
    size_t cursor;
    const char **missing; /* figures that were logged as missing */
    uint32_t missing_count, missing_room;
};

/* Something that is measured: the name and unit follow OpenTelemetry's conventions. */
struct sampling_figure {
    const char *name;
    const char *unit;
    const char *help;
};

enum sampling_result {
    SAMPLING_TAKEN,
    SAMPLING_FAILED, /* nothing was read; the next sampling covers the time since the previous one */
    SAMPLING_OVER,   /* there is nothing to measure any more */
};

void sampling_init(struct sampling *sampling, const weir_host *host, int64_t interval_ns);
void sampling_fini(struct sampling *sampling);

/* Calls `sample` at once and then at multiples of the interval after that, until it returns SAMPLING_OVER or a
 * stop is requested: then once more, for the part of an interval since the previous one. A sampling that takes
 * longer than the interval skips what it has missed. */
void sampling_run(struct sampling *sampling, enum sampling_result (*sample)(void *ctx), void *ctx);

/* Adds the value of a gauge. Waits for room; when a stop is requested, for at most a second in all. */
void sampling_level(struct sampling *sampling, const struct sampling_figure *figure, double value,
                    const weir_label *labels, size_t label_count);

/* Adds to a counter what a total has grown by since it was last read, divided by `unit`: what one of the
 * figure's units is in units of the total. Adds 0 the first time, unless counts_first is set, or if the total
 * has fallen: then what it counts has begun anew. Waits for room. Returns what it has added. */
double sampling_total(struct sampling *sampling, const struct sampling_figure *figure, double total,
                      double unit, const weir_label *labels, size_t label_count);

/* Logs, once, that the machine does not have a figure. what: a constant; why: an errno, 0: none. */
void sampling_miss(struct sampling *sampling, const char *what, int why);

#endif
