/* prof: the functions of <weir/weir.h> that measure durations. */

#include <stdio.h>

#include <weir/weir.h>

#include "os/clock.h"
#include "registry/name.h"

weir_prof weir_prof_begin(weir_stream *stream, const char *name)
{
    return (weir_prof){.stream = stream, .name = name, .start_ns = wr_clock_monotonic_ns(), .running = 1};
}

void weir_prof_fail(weir_prof *prof)
{
    prof->failed = 1;
}

void weir_prof_end(weir_prof *prof)
{
    /* room for longer names than allowed: a name that becomes too long by the suffix is refused by weir_emit */
    char duration[WR_NAME_LONGEST + 32], result[WR_NAME_LONGEST + 32];
    if (!prof->running)
        return;
    prof->running = 0;
    double elapsed_ms = (double)(wr_clock_monotonic_ns() - prof->start_ns) / 1e6;
    snprintf(duration, sizeof duration, "%s.duration.ms", prof->name);
    snprintf(result, sizeof result, "%s.%s", prof->name, prof->failed ? "failure" : "success");
    const weir_value values[] = {{duration, elapsed_ms}, {result, 1}};
    weir_emit(prof->stream, values, 2);
}
