/* The tracepoint that corresponds to a line. lttng-ust's own header includes this file several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER weir_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_events.h"

#if !defined(BENCH_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(weir_bench, value,
                           LTTNG_UST_TP_ARGS(const char *, group, const char *, name, double, value),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(group, group)
                                                   lttng_ust_field_string(name, name)
                                                       lttng_ust_field_float(double, value, value)))

#endif

#include <lttng/tracepoint-event.h>
