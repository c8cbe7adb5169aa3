#include "registry/reuse.h"

#include <stdlib.h>

#include "registry/family.h"

/* ---- Lists ----------------------------------------------------------------------------------- */

static void push(struct weir_stream **list, struct weir_stream *stream, enum wr_stream_stage stage)
{
    stream->stage = (uint8_t)stage;
    stream->next = *list;
    *list = stream;
}

static struct weir_stream *pop(struct weir_stream **list)
{
    struct weir_stream *stream = *list;
    if (stream)
        *list = stream->next;
    return stream;
}

static struct weir_metric *next_of(const struct weir_metric *metric)
{
    return ((const struct wr_view *)atomic_load_explicit(&metric->view, memory_order_relaxed))->next;
}

/* ---- The end of a label set ------------------------------------------------------------------ */

static bool has_ended(const struct weir_stream *stream)
{
    return stream->label_count && !stream->living && !stream->is_derived &&
           !atomic_load_explicit(&stream->is_pinned, memory_order_relaxed);
}

/* acquire: pairs with the release in wr_reuse_let_go */
static bool is_over(const struct weir_stream *stream)
{
    return has_ended(stream) && !atomic_load_explicit(&stream->holders, memory_order_acquire);
}

static void count(struct wr_registry *registry, struct weir_stream *stream)
{
    bool is_asked_for = atomic_load_explicit(&stream->is_pinned, memory_order_relaxed);
    bool counts = stream->living || (is_asked_for && !stream->series);
    if (counts == stream->is_counted || stream->overflow)
        return;
    stream->is_counted = counts;
    atomic_fetch_add_explicit(&registry->count, counts ? 1 : UINT32_MAX, memory_order_relaxed);
}

void wr_reuse_note(struct wr_registry *registry, struct weir_stream *stream)
{
    count(registry, stream);
    if (stream->stage != WR_STREAM_IN_USE || !has_ended(stream))
        return;
    push(&registry->reuse.ended, stream, WR_STREAM_ENDED);
    atomic_fetch_add_explicit(&registry->reuse.ended_count, 1, memory_order_relaxed);
}

static size_t count_series(const struct weir_stream *stream)
{
    size_t count = 0;
    for (const struct weir_metric *metric = stream->series; metric; metric = next_of(metric))
        count += !(metric->flags & WR_METRIC_PART);
    return count;
}

uint32_t *wr_reuse_list_series(struct wr_registry *registry, const struct weir_stream *stream, size_t *count)
{
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    size_t room = count_series(stream);
    wr_registry_unlock(registry, &signals); /* malloc is not called with it */
    uint32_t *series = calloc(room + 1, sizeof *series);
    if (!series)
        return NULL;
    *count = 0;
    wr_registry_lock(registry, &signals);
    for (const struct weir_metric *metric = stream->series; metric && *count < room; metric = next_of(metric))
        if (!(metric->flags & WR_METRIC_PART))
            series[(*count)++] = metric->series;
    wr_registry_unlock(registry, &signals);
    return series;
}

void wr_reuse_unpin(struct wr_registry *registry, struct weir_stream *stream)
{
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    atomic_store_explicit(&stream->is_pinned, false, memory_order_relaxed);
    wr_reuse_note(registry, stream);
    wr_registry_unlock(registry, &signals);
}

/* ---- The steps ------------------------------------------------------------------------------- */

bool wr_reuse_begin(struct wr_registry *registry)
{
    struct weir_stream *stream, *held = NULL;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    while ((stream = pop(&registry->reuse.ended))) {
        if (is_over(stream)) {
            push(&registry->reuse.leaving, stream, WR_STREAM_ENDED);
            atomic_store_explicit(&stream->is_leaving, true, memory_order_relaxed);
        } else if (has_ended(stream)) {
            push(&held, stream, WR_STREAM_ENDED);
        } else {
            stream->stage = WR_STREAM_IN_USE;
        }
    }
    registry->reuse.ended = held;
    atomic_store_explicit(&registry->reuse.ended_count, 0, memory_order_relaxed);
    bool is_any = registry->reuse.leaving;
    wr_registry_unlock(registry, &signals);
    return is_any;
}

bool wr_reuse_check(struct wr_registry *registry, bool (*may_go)(void *ctx, uint32_t series), void *ctx)
{
    bool go = true;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    for (const struct weir_stream *stream = registry->reuse.leaving; go && stream; stream = stream->next)
        for (const struct weir_metric *metric = stream->series; go && metric; metric = next_of(metric))
            go = !wr_reuse_is_leaving(stream) || may_go(ctx, metric->series);
    wr_registry_unlock(registry, &signals);
    return go;
}

/* What an object in a route makes of a series does not end, so its label set stays. */
static bool has_mapped(const struct weir_stream *stream)
{
    const struct weir_metric *metric = stream->series;
    while (metric && !metric->is_derived)
        metric = next_of(metric);
    return metric;
}

/* Who is told of the series. */
struct forgetting {
    void (*forget)(void *ctx, uint32_t series);
    void *ctx;
};

static void unlink_stream(struct wr_registry *registry, struct weir_stream *stream, struct forgetting *forgets)
{
    for (const struct weir_metric *metric = stream->series; metric; metric = next_of(metric))
        forgets->forget(forgets->ctx, metric->series);
    wr_hash_table_remove(&registry->streams, &stream->entry);
    push(&registry->reuse.unlinked, stream, WR_STREAM_UNLINKED);
}

/* A stream that was derived goes with the one that it was derived from, unless it is used by itself, too: then
 * it goes on by itself. */
static void release_derived(struct wr_registry *registry, const struct weir_stream *stream,
                            struct forgetting *forgets)
{
    struct weir_stream *derived = wr_registry_label_block(stream)->derived, *next;
    for (; derived; derived = next) {
        next = wr_registry_label_block(derived)->next_derived;
        derived->is_derived = false;
        if (is_over(derived))
            unlink_stream(registry, derived, forgets);
        else
            wr_reuse_note(registry, derived);
    }
}

bool wr_reuse_unlink(struct wr_registry *registry, void (*forget)(void *ctx, uint32_t series), void *ctx)
{
    struct wr_reuse *reuse = &registry->reuse;
    struct forgetting forgets = {forget, ctx};
    struct weir_stream *stream;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    /* release, before the slots change: a search that sees one of them changed sees the odd number */
    atomic_fetch_add_explicit(&reuse->removals, 1, memory_order_acq_rel);
    while ((stream = pop(&reuse->leaving))) {
        bool goes = wr_reuse_is_leaving(stream) && is_over(stream) && !has_mapped(stream);
        wr_reuse_take_back(stream);
        stream->stage = WR_STREAM_IN_USE;
        if (!goes && !has_mapped(stream))
            wr_reuse_note(registry, stream);
        if (!goes)
            continue;
        release_derived(registry, stream, &forgets);
        unlink_stream(registry, stream, &forgets);
    }
    /* release: pairs with the acquire in wr_registry_find_stream */
    atomic_fetch_add_explicit(&reuse->removals, 1, memory_order_release);
    bool is_any = reuse->unlinked;
    wr_registry_unlock(registry, &signals);
    return is_any;
}

/* The list of spare streams for a name, or for programs that ask for a stream. NULL: it is not known. */
static struct weir_stream **find_list(const struct wr_registry *registry, struct wr_group *group,
                                      bool is_foreign, const char *name)
{
    struct wr_family *family = name ? wr_family_find(registry, group, name, strlen(name)) : NULL;
    if (!name)
        return &group->spare[is_foreign];
    return family ? &family->spare[is_foreign] : NULL;
}

/* The name of its first series, for which it was made. NULL: it is for no name, or has no series yet. */
static const char *name_of(const struct weir_stream *stream)
{
    const char *name = NULL;
    for (const struct weir_metric *metric = stream->series; stream->is_for_name && metric;
         metric = next_of(metric))
        name = metric->name;
    return name;
}

void wr_reuse_release(struct wr_registry *registry)
{
    struct weir_stream *stream;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    if (registry->reuse.unlinked) { /* release: as in wr_registry_set_view */
        atomic_fetch_add_explicit(&registry->redefinitions, 1, memory_order_release);
        atomic_fetch_add_explicit(&registry->reuse.releases, 1, memory_order_release);
    }
    while ((stream = pop(&registry->reuse.unlinked))) {
        stream->is_for_name = name_of(stream);
        struct weir_stream **list = find_list(registry, stream->group, stream->is_foreign, name_of(stream));
        if (list)
            push(list, stream, WR_STREAM_SPARE);
    }
    wr_registry_unlock(registry, &signals);
}

struct weir_stream *wr_reuse_take(struct wr_registry *registry, const struct wr_stream_key *key)
{
    struct weir_stream **list = find_list(registry, (struct wr_group *)key->group, key->is_foreign, key->name);
    struct weir_stream *stream = list ? pop(list) : NULL;
    if (!stream)
        return NULL;
    if (!wr_registry_enter_stream(registry, stream, key)) {
        push(list, stream, WR_STREAM_SPARE);
        return NULL;
    }
    stream->stage = WR_STREAM_IN_USE;
    stream->is_for_name = key->name;
    /* as in wr_series_meet: what was declared is there before its first value */
    atomic_fetch_add_explicit(&registry->met, 1, memory_order_release);
    return stream;
}

/* What is unlinked is released with what is unlinked next. */
void wr_reuse_after_fork(struct wr_registry *registry)
{
    struct weir_stream *stream;
    atomic_store_explicit(&registry->reuse.readers, 0, memory_order_relaxed); /* those threads are not here */
    if (atomic_load_explicit(&registry->reuse.removals, memory_order_relaxed) & 1) /* nor is one that removed */
        atomic_fetch_add_explicit(&registry->reuse.removals, 1, memory_order_relaxed);
    while ((stream = pop(&registry->reuse.leaving))) {
        wr_reuse_take_back(stream);
        stream->stage = WR_STREAM_IN_USE;
        wr_reuse_note(registry, stream);
    }
}
