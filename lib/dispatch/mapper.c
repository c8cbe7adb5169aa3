#include "dispatch/mapper.h"

#include <math.h>
#include <string.h>

#include "os/clock.h"
#include "os/pages.h"
#include "registry/family.h"
#include "registry/labels_walk.h"
#include "registry/name.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "text/common.h"
#include "text/error.h"

enum fate { PASSES, FILTERED, UNREPRESENTABLE, NO_MEMORY };

struct wr_mapper_entry {
    uint32_t series, mapped;
    enum fate fate;
    const weir_series *view; /* of the series, when its meaning was last passed on */
    /* An event passes when this overflows. It begins anywhere, so that of many series with few events each the
     * right part passes, too. */
    uint64_t phase;
};

/* ---- Entries --------------------------------------------------------------------------------- */

void wr_mapper_init(struct wr_mapper *mapper, const struct wr_transform *transform)
{
    *mapper = (struct wr_mapper){.transform = transform};
    mapper->seed = (uint64_t)wr_clock_wall_ns() ^ (uintptr_t)transform;
    if (transform->sample < 1)
        mapper->step = (uint64_t)ldexp(transform->sample, 64);
    if (transform->sample < 1 && !mapper->step)
        mapper->step = 1;
}

void wr_mapper_fini(struct wr_mapper *mapper)
{
    wr_pages_put(mapper->entries);
    wr_pages_put(mapper->by_series);
}

/* splitmix64 */
static uint64_t first_phase(const struct wr_mapper *mapper, uint32_t series)
{
    uint64_t x = mapper->seed + (series + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void wr_mapper_restart(struct wr_mapper *mapper)
{
    for (uint32_t i = 0; i < mapper->count; i++)
        mapper->entries[i].phase = first_phase(mapper, mapper->entries[i].series);
}

static bool has_room(struct wr_mapper *mapper, uint32_t series)
{
    return WR_PAGES_HAS_ROOM(&mapper->entries, &mapper->room, mapper->count + 1) &&
           WR_PAGES_HAS_ROOM(&mapper->by_series, &mapper->by_series_room, series + 1);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static bool has_label(const struct weir_stream *stream, const weir_label *label)
{
    const char *value = wr_labels_find(stream->labels, stream->label_count, label->key);
    return value && strcmp(value, label->value) == 0;
}

static bool has_labels(const struct weir_stream *stream, const weir_label *labels, size_t count)
{
    bool same = count == stream->label_count;
    for (size_t i = 0; same && i < count; i++)
        same = has_label(stream, &labels[i]);
    return same;
}

static enum fate fate_of(const struct wr_error *error)
{
    return error->code == WEIR_ERR_MEMORY ? NO_MEMORY : UNREPRESENTABLE;
}

/* The stream with the new labels. Beyond settings.max_series it is the group's stream for these cases. */
static enum fate find_stream(const struct wr_mapper *mapper, struct weir_stream *of,
                             struct weir_stream **stream)
{
    weir_label labels[WR_TRANSFORM_LABELS_MAX];
    struct wr_error error = {0};
    int count = wr_transform_relabel(mapper->transform, of->labels, of->label_count, labels);
    *stream = of;
    if (count < 0)
        return UNREPRESENTABLE;
    if (has_labels(of, labels, (size_t)count))
        return PASSES;
    const struct wr_stream_key key = {NULL, labels, (size_t)count, of->is_foreign, NULL};
    *stream = wr_stream_get_for(mapper->registry, of->group->name, &key, &error);
    return (*stream)->refusal ? fate_of(&error) : PASSES;
}

/* Finds or makes the series, within the limits of all series. */
static enum fate find_series(const struct wr_mapper *mapper, const struct weir_metric *of, uint32_t *mapped)
{
    char name[WR_NAME_LONGEST + 1];
    struct weir_stream *stream;
    struct wr_error error = {0};
    if (!wr_transform_rename(mapper->transform, of->name, name))
        return UNREPRESENTABLE;
    enum fate fate = find_stream(mapper, of->stream, &stream);
    if (fate != PASSES)
        return fate;
    struct weir_metric *metric = wr_series_find(mapper->registry, stream, name, of->flags);
    if (!metric) {
        metric = wr_series_get(mapper->registry, stream, name, of->flags, &error);
        if (error.code)
            return fate_of(&error);
        metric->is_derived = true;
    }
    *mapped = metric->series;
    return PASSES;
}

/* Handlers are told what the values mean, unless the new name has a meaning of its own. */
static void pass_meaning_on(const struct wr_mapper *mapper, struct wr_mapper_entry *entry)
{
    const struct weir_metric *of = wr_registry_series(mapper->registry, entry->series);
    entry->view = atomic_load_explicit(&of->view, memory_order_acquire);
    if (entry->fate != PASSES)
        return;
    struct weir_metric *mapped = wr_registry_series(mapper->registry, entry->mapped);
    if (strcmp(mapped->name, of->name) != 0)
        wr_family_learn(mapper->registry, mapped, entry->view);
}

/* Returns NULL if out of memory. */
static struct wr_mapper_entry *make(struct wr_mapper *mapper, uint32_t series)
{
    const struct weir_metric *of = wr_registry_series(mapper->registry, series);
    uint32_t mapped = series;
    enum fate fate = FILTERED;
    if (wr_transform_passes(mapper->transform, of->name))
        fate = find_series(mapper, of, &mapped);
    if (fate == NO_MEMORY || !has_room(mapper, series) || !mapper->entries)
        return NULL;
    struct wr_mapper_entry *entry = &mapper->entries[mapper->count++];
    mapper->by_series[series] = mapper->count;
    *entry = (struct wr_mapper_entry){
        .series = series, .mapped = mapped, .fate = fate, .phase = first_phase(mapper, series)};
    return entry;
}

void wr_mapper_forget(struct wr_mapper *mapper, uint32_t series)
{
    uint32_t place = series < mapper->by_series_room ? mapper->by_series[series] : 0;
    if (!place)
        return;
    mapper->by_series[series] = 0;
    mapper->entries[place - 1] = mapper->entries[--mapper->count];
    if (place <= mapper->count)
        mapper->by_series[mapper->entries[place - 1].series] = place;
}

static struct wr_mapper_entry *find(struct wr_mapper *mapper, uint32_t series)
{
    uint32_t place = series < mapper->by_series_room ? mapper->by_series[series] : 0;
    struct wr_mapper_entry *entry = place ? &mapper->entries[place - 1] : make(mapper, series);
    const struct weir_metric *of = wr_registry_series(mapper->registry, series);
    if (entry && entry->view != atomic_load_explicit(&of->view, memory_order_acquire))
        pass_meaning_on(mapper, entry);
    return entry;
}

bool wr_mapper_series(struct wr_mapper *mapper, uint32_t series, uint32_t *mapped)
{
    const struct wr_mapper_entry *entry = find(mapper, series);
    if (!entry || entry->fate != PASSES)
        return false;
    *mapped = entry->mapped;
    return true;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static bool is_counter(const struct wr_mapper *mapper, uint32_t series)
{
    const struct weir_metric *metric = wr_registry_series(mapper->registry, series);
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    return view->instrument == WEIR_COUNTER && !view->cumulative;
}

/* The series of this process. Returns false if it is invalid, which only a damaged journal can have. */
static bool read_series(const struct wr_mapper_event *event, const weir_sample *sample, uint32_t *series)
{
    *series = sample->series;
    if (!event->ids)
        return true;
    if (*series >= event->id_count || !event->ids[*series])
        return false;
    *series = event->ids[*series] - 1;
    return true;
}

/* Returns whether the sample passes, with its item filled. */
static bool map_sample(struct wr_mapper *mapper, uint32_t series, struct wr_mapping *mapping,
                       struct wr_mapped *item)
{
    const struct wr_mapper_entry *entry = find(mapper, series);
    if (!entry || mapping->passed == WR_MAPPER_EVENT) {
        mapping->lost++;
        return false;
    }
    if (entry->fate != PASSES) {
        mapping->filtered += entry->fate == FILTERED;
        mapping->unrepresentable += entry->fate == UNREPRESENTABLE;
        return false;
    }
    item->series = entry->mapped;
    item->scaled = mapper->step && (is_counter(mapper, series) || is_counter(mapper, entry->mapped));
    return true;
}

/* Whether the event is taken whose first sample that passes the filters is of this series. */
static bool is_taken(struct wr_mapper *mapper, uint32_t series)
{
    struct wr_mapper_entry *entry = mapper->step ? find(mapper, series) : NULL;
    if (!entry)
        return true;
    uint64_t before = entry->phase;
    entry->phase += mapper->step;
    return entry->phase < before;
}

/* What is invalid passes, and is counted as damaged where it is used. */
static void filter(struct wr_mapper *mapper, const struct wr_mapper_event *event, struct wr_mapping *mapping,
                   uint32_t *first)
{
    for (uint64_t at = event->at; at < event->end; at++) {
        const weir_sample *sample = &event->slots[at & event->mask];
        struct wr_mapped item = {.offset = (uint32_t)(at - event->at)};
        bool has_text = sample->flags & WR_RING_TEXT;
        uint32_t series;
        bool valid = read_series(event, sample, &series);
        if (valid ? map_sample(mapper, series, mapping, &item) : mapping->passed < WR_MAPPER_EVENT) {
            *first = valid && *first == UINT32_MAX ? series : *first;
            mapping->text_bytes += has_text ? sample->note + 1 : 0;
            mapping->items[mapping->passed++] = item;
        }
        at += has_text ? wr_ring_text_slots(sample->note) : 0;
    }
}

void wr_mapper_event(struct wr_mapper *mapper, const struct wr_mapper_event *event, struct wr_mapping *mapping)
{
    uint32_t first = UINT32_MAX;
    mapping->passed = mapping->filtered = mapping->unrepresentable = mapping->lost = mapping->text_bytes = 0;
    filter(mapper, event, mapping, &first);
    if (first == UINT32_MAX || is_taken(mapper, first))
        return;
    mapping->filtered += mapping->passed;
    mapping->passed = mapping->text_bytes = 0;
}

/* An integer stays one if that is exact. */
static void scale_int(weir_sample *sample, double factor)
{
    double scaled = (double)sample->value.i64 * factor;
    int64_t whole;
    if (factor < 0x1p62 && factor == (double)(int64_t)factor &&
        !__builtin_mul_overflow(sample->value.i64, (int64_t)factor, &whole)) {
        sample->value.i64 = whole;
        return;
    }
    sample->kind = WEIR_KIND_DOUBLE;
    sample->value.f64 = scaled;
}

void wr_mapper_scale(const struct wr_mapper *mapper, const struct wr_mapped *mapped, weir_sample *sample)
{
    double factor = 1 / mapper->transform->sample;
    if (!mapped->scaled)
        return;
    if (sample->kind == WEIR_KIND_INT)
        scale_int(sample, factor);
    else
        sample->value.f64 *= factor;
}

void wr_mapper_apply(const struct wr_mapper *mapper, const struct wr_mapped *mapped, weir_sample *sample)
{
    sample->series = mapped->series;
    wr_mapper_scale(mapper, mapped, sample);
}
