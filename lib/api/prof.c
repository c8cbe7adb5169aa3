/* prof: the functions of <weir/weir.h> that measure durations. */

#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "os/clock.h"
#include "registry/name.h"
#include "registry/prof_names.h"
#include "registry/series.h"
#include "runtime/event.h"
#include "runtime/runtime.h"

/* weir_prof.running. A measurement of a place whose series could not be made keeps the file in `core` and the
 * function in `name`: its name is composed again at the end. */
enum { ENDED, RUNNING, RUNNING_HERE };

/* A name that is cut to a place's room is too long still, and refused. */
enum { PLACE_ROOM = WR_NAME_LONGEST + 2, NAME_ROOM = PLACE_ROOM + 32 };

static weir_prof begin(weir_stream *stream, const char *measured)
{
    struct wr_runtime *runtime = wr_runtime_get();
    const struct wr_prof_names *names =
        runtime && stream && measured ? wr_prof_names_get(&runtime->registry, stream, measured) : NULL;
    return (weir_prof){
        .stream = stream,
        .name = measured,
        .core = names,
        .start_ns = wr_clock_monotonic_ns(),
        .running = RUNNING,
    };
}

weir_prof weir_prof_begin(weir_stream *stream, const char *name)
{
    return begin(stream, name);
}

static void name_place(char *name, const char *file, const char *function)
{
    const char *slash = strrchr(file, '/');
    snprintf(name, PLACE_ROOM, "%s:%s", slash ? slash + 1 : file, function);
}

weir_prof weir_prof_begin_here(weir_stream *stream, const char *file, const char *function)
{
    char name[PLACE_ROOM];
    name_place(name, file, function);
    weir_prof prof = begin(stream, name);
    prof.name = function;
    if (prof.core)
        return prof;
    prof.core = file;
    prof.running = RUNNING_HERE;
    return prof;
}

void weir_prof_fail(weir_prof *prof)
{
    prof->failed = 1;
}

/* The labels of the end. */
struct labels {
    const weir_label *items;
    size_t count;
};

/* Where all handlers only sum, an event is no more than its values, which cost less one by one. */
static void add(weir_stream *stream, const char *const *names, struct weir_metric *const *metrics,
                double elapsed_ms)
{
    const weir_typed_value values[] = {{names[0], WEIR_INT(1)}, {names[1], WEIR_DOUBLE(elapsed_ms)}};
    if (metrics[0] && metrics[1] && wr_fast_add_is_summed(metrics[0]) && wr_fast_add_is_summed(metrics[1])) {
        wr_intake_add(metrics[0], values[0].number);
        wr_intake_add(metrics[1], values[1].number);
        return;
    }
    wr_event_add(stream, &(struct wr_event){.values = values, .metrics = metrics, .count = 2});
}

/* With a bad name both values are refused. */
static void suffix_name(char *out, const char *name, const char *suffix)
{
    if (name && *name)
        snprintf(out, NAME_ROOM, "%s.%s", name, suffix);
    else
        *out = '\0';
}

/* The name has no series of its own: its values are refused, or added to an overflow series. */
static void end_unnamed(const weir_prof *prof, const struct labels *labels, double elapsed_ms)
{
    char place[PLACE_ROOM], result[NAME_ROOM], duration_ms[NAME_ROOM];
    const char *name = prof->running == RUNNING_HERE ? place : prof->name;
    if (prof->running == RUNNING_HERE)
        name_place(place, prof->core, prof->name);
    suffix_name(result, name, prof->failed ? WR_PROF_NAMES_FAILURE : WR_PROF_NAMES_SUCCESS);
    suffix_name(duration_ms, name, WR_PROF_NAMES_DURATION_MS);
    const char *const names[] = {result, duration_ms};
    struct weir_metric *metrics[] = {NULL, NULL};
    for (int i = 0; labels->count && i < 2; i++)
        metrics[i] = wr_intake_find_labeled(prof->stream, names[i], labels->items, labels->count);
    add(prof->stream, names, metrics, elapsed_ms);
}

static void end_named(const weir_prof *prof, const struct labels *labels, double elapsed_ms)
{
    const struct wr_prof_names *series = prof->core;
    struct weir_metric *metrics[] = {prof->failed ? series->failure : series->success, series->duration_ms};
    const char *const names[] = {metrics[0]->name, metrics[1]->name};
    for (int i = 0; labels->count && i < 2; i++)
        metrics[i] = wr_intake_find_labeled(prof->stream, names[i], labels->items, labels->count);
    add(prof->stream, names, metrics, elapsed_ms);
}

void weir_prof_end_labeled(weir_prof *prof, const weir_label *labels, size_t count)
{
    const weir_prof ended = *prof;
    const struct labels given = {labels, count};
    struct wr_reading reading = {NULL, NULL, 0};
    if (!ended.running)
        return;
    prof->running = ENDED;
    if (count)
        reading = wr_intake_begin_reading();
    double elapsed_ms = (double)(wr_clock_monotonic_ns() - ended.start_ns) / 1e6;
    if (!ended.stream)
        weir_emit(NULL, NULL, 2); /* refused */
    else if (ended.running == RUNNING && ended.core)
        end_named(&ended, &given, elapsed_ms);
    else
        end_unnamed(&ended, &given, elapsed_ms);
    wr_intake_end_reading(&reading);
}

void weir_prof_end(weir_prof *prof)
{
    weir_prof_end_labeled(prof, NULL, 0);
}
