#include "handler/window.h"

#include <stdlib.h>
#include <string.h>

#include "text/array.h"

enum { STEPS = 4, SKETCHES = STEPS + 1 /* the one that is not complete */ };

/* Of one series. */
struct wr_window {
    uint32_t series;                     /* its id */
    uint64_t serial;                     /* and its serial */
    int64_t step;                        /* the number of the latest, since 1970 */
    struct wr_sample_id since;           /* the summary before which it was empty */
    struct wr_sketch sketches[SKETCHES]; /* of a step: at its number modulo SKETCHES */
};

static void fini(struct wr_window *window)
{
    for (int i = 0; i < SKETCHES; i++)
        wr_sketch_fini(&window->sketches[i]);
}

void wr_windows_fini(struct wr_windows *windows)
{
    for (uint32_t i = 0; i < windows->count; i++)
        fini(&windows->items[i]);
    free(windows->items);
    free(windows->by_series);
    wr_sketch_fini(&windows->all);
    *windows = (struct wr_windows){.length_ns = windows->length_ns};
}

/* ---- Series ---------------------------------------------------------------------------------- */

static struct wr_window *find(const struct wr_windows *windows, uint32_t series)
{
    uint32_t place = series < windows->by_series_room ? windows->by_series[series] : 0;
    return place ? &windows->items[place - 1] : NULL;
}

/* NULL: out of memory. */
static struct wr_window *add(struct wr_windows *windows, const weir_series *series, int64_t step)
{
    if (!WR_ARRAY_HAS_ROOM(&windows->by_series, &windows->by_series_room, series->id + 1) ||
        !WR_ARRAY_HAS_ROOM(&windows->items, &windows->room, windows->count + 1))
        return NULL;
    windows->items[windows->count] =
        (struct wr_window){.series = series->id, .serial = series->serial, .step = step};
    windows->by_series[series->id] = ++windows->count;
    return &windows->items[windows->count - 1];
}

void wr_windows_forget(struct wr_windows *windows, uint32_t series)
{
    struct wr_window *window = find(windows, series);
    if (!window)
        return;
    fini(window);
    windows->by_series[series] = 0;
    struct wr_window *last = &windows->items[--windows->count];
    if (window == last)
        return;
    *window = *last;
    windows->by_series[window->series] = (uint32_t)(window - windows->items) + 1;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static int64_t step_of(const struct wr_windows *windows, int64_t time_ns)
{
    int64_t length_ns = windows->length_ns / STEPS;
    return time_ns > 0 ? time_ns / (length_ns ? length_ns : 1) : 0;
}

/* Removes what is older than the window. A clock that was set back by more than the window begins it anew; by
 * less, and the latest step goes on. */
static void advance(struct wr_window *window, int64_t step)
{
    bool is_far = step - window->step > STEPS || window->step - step > STEPS;
    int64_t cleared = is_far ? SKETCHES : step - window->step;
    for (int64_t i = 0; i < cleared; i++)
        wr_sketch_clear(&window->sketches[(step + SKETCHES - i) % SKETCHES]);
    if (cleared > 0)
        window->step = step;
}

/* A window of another series that had the id before is forgotten: its last summary was lost. */
static struct wr_window *find_own(struct wr_windows *windows, const weir_series *series)
{
    struct wr_window *window = find(windows, series->id);
    if (!window || window->serial == series->serial)
        return window;
    wr_windows_forget(windows, series->id);
    return NULL;
}

/* Once in a window: frees those that hold nothing any more, as their series have no summaries. */
static void sweep(struct wr_windows *windows, int64_t step)
{
    if (step >= windows->swept && step - windows->swept < STEPS)
        return;
    windows->swept = step;
    for (uint32_t i = windows->count; i-- > 0;)
        if (step - windows->items[i].step > STEPS)
            wr_windows_forget(windows, windows->items[i].series);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static bool is_before(const struct wr_sample_id *id, const struct wr_sample_id *other)
{
    return wr_origin_equal(&id->origin, &other->origin) && id->sequence < other->sequence;
}

/* Summaries of an earlier process, which come from a spool, and those of a parent have ended: what follows is
 * of another process. */
static void follow_origin(struct wr_windows *windows, const struct wr_origin *origin)
{
    if (!wr_origin_equal(&windows->next.origin, origin))
        wr_windows_fini(windows);
    windows->next.origin = *origin;
}

static bool was_added(const struct wr_windows *windows, const struct wr_sample_id *id)
{
    return is_before(id, &windows->next);
}

static const struct wr_sketch *merge(struct wr_windows *windows, const struct wr_window *window)
{
    wr_sketch_clear(&windows->all);
    for (int i = 0; i < SKETCHES; i++)
        if (window->sketches[i].count && !wr_sketch_merge(&windows->all, &window->sketches[i]))
            return NULL;
    return &windows->all;
}

const struct wr_sketch *wr_windows_add(struct wr_windows *windows, const weir_series *series,
                                       const struct wr_sample_id *id, int64_t end_ns,
                                       const struct wr_sketch *interval)
{
    if (!windows->length_ns)
        return interval;
    follow_origin(windows, &id->origin);
    int64_t step = step_of(windows, end_ns);
    sweep(windows, step);
    struct wr_window *window = find_own(windows, series);
    if (was_added(windows, id))
        return window && !is_before(id, &window->since) ? merge(windows, window) : interval;
    if (!window && !interval->count)
        return interval;
    if (!window)
        window = add(windows, series, step);
    if (!window)
        return NULL;
    advance(window, step);
    if (!wr_sketch_merge(&window->sketches[window->step % SKETCHES], interval))
        return NULL;
    windows->next = wr_sample_id_behind(id, 1);
    const struct wr_sketch *all = merge(windows, window);
    if (all && !(all->count - interval->count)) /* else a second try would find what comes later */
        window->since = all->count ? *id : windows->next;
    return all;
}
