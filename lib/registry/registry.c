#include "registry/registry.h"

#include <string.h>

#include "os/signals.h"
#include "registry/family.h"
#include "registry/labels.h"
#include "registry/reuse.h"

/* ---- Finding --------------------------------------------------------------------------------- */

static bool match_group(const struct wr_hash_entry *entry, const void *key)
{
    const struct wr_group *group = (const struct wr_group *)entry;
    const struct wr_group_key *wanted = key;
    return group->length == wanted->length && wr_hash_is_same(group->name, wanted->name, wanted->length);
}

static bool match_stream(const struct wr_hash_entry *entry, const void *key)
{
    const struct weir_stream *stream = (const struct weir_stream *)entry;
    const struct wr_stream_key *wanted = key;
    if (stream->group != wanted->group || stream->label_count != wanted->count ||
        stream->is_foreign != wanted->is_foreign)
        return false;
    for (size_t i = 0; i < wanted->count; i++)
        if (strcmp(stream->labels[i].key, wanted->labels[i].key) != 0 ||
            strcmp(stream->labels[i].value, wanted->labels[i].value) != 0)
            return false;
    return true;
}

static bool match_metric(const struct wr_hash_entry *entry, const void *key)
{
    const struct weir_metric *metric = (const struct weir_metric *)entry;
    const struct wr_metric_key *wanted = key;
    return metric->stream == wanted->stream && metric->flags == wanted->flags &&
           metric->length == wanted->length && wr_hash_is_same(metric->name, wanted->name, wanted->length);
}

static uint64_t hash_group(const struct wr_registry *registry, const struct wr_group_key *key)
{
    return wr_hash_bytes(registry->seed, key->name, key->length);
}

static uint64_t hash_stream(const struct wr_registry *registry, const struct wr_stream_key *key)
{
    uint64_t hash = wr_hash_mix(registry->seed ^ wr_hash_of(&key->group->entry) ^ key->is_foreign,
                                UINT64_C(0x589965cc75374cc3));
    for (size_t i = 0; i < key->count; i++) {
        hash = wr_hash_bytes(hash, key->labels[i].key, strlen(key->labels[i].key));
        hash = wr_hash_bytes(hash, key->labels[i].value, strlen(key->labels[i].value));
    }
    return hash;
}

static uint64_t hash_metric(const struct wr_registry *registry, const struct wr_metric_key *key)
{
    /* by the stream's address: its labels may become others, and its series stay */
    return wr_hash_bytes(registry->seed ^ (uintptr_t)key->stream ^ key->flags, key->name, key->length);
}

struct wr_group *wr_registry_find_group(const struct wr_registry *registry, const struct wr_group_key *key)
{
    return (struct wr_group *)wr_hash_table_find(&registry->groups, hash_group(registry, key), match_group,
                                                 key);
}

/* A search that was beside a removal may have missed the stream. A function of its own, so that the search
 * saves no registers. */
WR_NEVER_INLINE static struct weir_stream *find_again(struct wr_registry *registry,
                                                      const struct wr_stream_key *key, uint64_t hash,
                                                      uint64_t before)
{
    sigset_t signals;
    /* the slots were read with acquire, so this number is read after them */
    if (!(before & 1) && atomic_load_explicit(&registry->reuse.removals, memory_order_relaxed) == before)
        return NULL;
    wr_registry_lock(registry, &signals);
    struct wr_hash_entry *entry = wr_hash_table_find(&registry->streams, hash, match_stream, key);
    wr_registry_unlock(registry, &signals);
    return (struct weir_stream *)entry;
}

struct weir_stream *wr_registry_find_stream(struct wr_registry *registry, const struct wr_stream_key *key)
{
    uint64_t hash = hash_stream(registry, key);
    /* acquire: pairs with the release at the end of wr_reuse_unlink. Under the lock there is no removal. */
    uint64_t before = atomic_load_explicit(&registry->reuse.removals, memory_order_acquire);
    struct wr_hash_entry *entry = wr_hash_table_find(&registry->streams, hash, match_stream, key);
    return WR_LIKELY(entry != NULL) ? (struct weir_stream *)entry : find_again(registry, key, hash, before);
}

struct weir_metric *wr_registry_find_metric(const struct wr_registry *registry, const struct wr_metric_key *key)
{
    return (struct weir_metric *)wr_hash_table_find(&registry->metrics, hash_metric(registry, key),
                                                    match_metric, key);
}

/* ---- Creating -------------------------------------------------------------------------------- */

void wr_registry_lock(struct wr_registry *registry, sigset_t *signals)
{
    wr_signals_block(signals);
    wr_lock_enter(&registry->lock);
}

void wr_registry_unlock(struct wr_registry *registry, const sigset_t *signals)
{
    wr_lock_leave(&registry->lock);
    wr_signals_restore(signals);
}

bool wr_registry_is_full(const struct wr_registry *registry)
{
    return atomic_load_explicit(&registry->count, memory_order_relaxed) >=
           atomic_load_explicit(&registry->max, memory_order_relaxed);
}

bool wr_registry_has_places(const struct wr_registry *registry, const struct weir_stream *stream)
{
    uint32_t count = atomic_load_explicit(&registry->count, memory_order_relaxed);
    bool counts = stream && (stream->is_counted || !stream->label_count);
    return count + (counts ? 1 : 2) <= atomic_load_explicit(&registry->max, memory_order_relaxed);
}

bool wr_registry_count_one(struct wr_registry *registry)
{
    if (wr_registry_is_full(registry))
        return false;
    atomic_fetch_add_explicit(&registry->count, 1, memory_order_relaxed);
    return true;
}

void wr_registry_note_full(struct wr_registry *registry, struct wr_group *group)
{
    struct wr_group *none = NULL;
    atomic_compare_exchange_strong(&registry->first_overflow, &none, group);
}

const char *wr_registry_copy_text(struct wr_registry *registry, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = wr_arena_get(&registry->arena, size, 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

static struct wr_group *make_group(struct wr_registry *registry, const struct wr_group_key *key)
{
    struct wr_group *group = wr_arena_get(&registry->arena, sizeof *group + key->length + 1, WR_LINE);
    if (!group)
        return NULL;
    wr_hash_set(&group->entry, hash_group(registry, key));
    group->length = (uint32_t)key->length;
    memcpy(group->name, key->name, key->length);
    return group;
}

struct wr_group *wr_registry_add_group(struct wr_registry *registry, const struct wr_group_key *key)
{
    struct wr_group *group = make_group(registry, key);
    if (!group || !wr_hash_table_insert(&registry->groups, &registry->arena, &group->entry))
        return NULL;
    group->next = atomic_load_explicit(&registry->last_group, memory_order_relaxed);
    /* release: pairs with the acquire loads of readers of the list, which see each group complete */
    atomic_store_explicit(&registry->last_group, group, memory_order_release);
    return group;
}

/* Returns NULL if out of memory. */
static struct wr_label_block *copy_labels(struct wr_registry *registry, const struct wr_stream_key *key)
{
    size_t bytes = sizeof(struct wr_label_block) + wr_labels_bytes(key->labels, key->count);
    struct wr_label_block *block = wr_slab_get(&registry->reuse.blocks, bytes);
    if (!block)
        return NULL;
    block->bytes = bytes;
    wr_labels_copy(block->labels, key->labels, key->count);
    return block;
}

static void free_labels(struct wr_registry *registry, const struct weir_stream *stream)
{
    struct wr_label_block *block = wr_registry_label_block(stream);
    if (block)
        wr_slab_put(&registry->reuse.blocks, block, block->bytes);
}

/* Handlers get the series by other labels, and as another one. */
static void rename_series(struct wr_registry *registry, const struct weir_stream *stream)
{
    struct wr_view *view;
    for (struct weir_metric *metric = stream->series; metric; metric = view->next) {
        view = (struct wr_view *)atomic_load_explicit(&metric->view, memory_order_relaxed);
        view->series.labels = stream->labels;
        view->series.label_count = stream->label_count;
        view->series.serial = ++registry->serials;
        if (view->level)
            atomic_store_explicit(view->level, WR_LEVEL_UNKNOWN, memory_order_relaxed);
        if (registry->on_series)
            registry->on_series(registry->on_series_ctx, metric);
    }
}

bool wr_registry_enter_stream(struct wr_registry *registry, struct weir_stream *stream,
                              const struct wr_stream_key *key)
{
    struct wr_label_block *block = key->count ? copy_labels(registry, key) : NULL;
    if (key->count && !block)
        return false;
    free_labels(registry, stream);
    stream->labels = block ? block->labels : NULL;
    stream->label_count = (uint32_t)key->count;
    wr_hash_set(&stream->entry, hash_stream(registry, key));
    rename_series(registry, stream);
    return wr_hash_table_insert(&registry->streams, &registry->arena, &stream->entry);
}

struct weir_stream *wr_registry_add_stream(struct wr_registry *registry, const struct wr_stream_key *key)
{
    struct weir_stream *stream = wr_arena_get(&registry->arena, sizeof *stream, WR_LINE);
    if (!stream)
        return NULL;
    stream->group = (struct wr_group *)key->group;
    stream->is_foreign = key->is_foreign;
    stream->is_for_name = key->name;
    return wr_registry_enter_stream(registry, stream, key) ? stream : NULL;
}

static struct weir_stream *find_or_add_stream(struct wr_registry *registry, const struct wr_stream_key *key)
{
    struct weir_stream *stream = wr_registry_find_stream(registry, key);
    return stream ? stream : wr_registry_add_stream(registry, key);
}

struct weir_stream *wr_registry_plain_stream(struct wr_registry *registry, const struct wr_group *group,
                                             bool is_foreign)
{
    const struct wr_stream_key key = {.group = group, .is_foreign = is_foreign};
    return find_or_add_stream(registry, &key);
}

/* Not counted against settings.max_series: there are at most two for each group. */
struct weir_stream *wr_registry_overflow_stream(struct wr_registry *registry, struct wr_group *group,
                                                bool is_foreign)
{
    struct weir_stream *stream =
        atomic_load_explicit(&group->overflow_stream[is_foreign], memory_order_relaxed);
    if (stream)
        return stream;
    const weir_label label = {"weir_overflow", "true"};
    const struct wr_stream_key key = {group, &label, 1, is_foreign, NULL};
    stream = find_or_add_stream(registry, &key);
    if (!stream)
        return NULL;
    stream->overflow = stream->is_pinned = true;
    /* release: pairs with the acquire loads of calls that look for it */
    atomic_store_explicit(&group->overflow_stream[is_foreign], stream, memory_order_release);
    return stream;
}

static struct weir_metric *make_metric(struct wr_registry *registry, const struct wr_metric_key *key)
{
    struct weir_metric *metric = wr_arena_get(&registry->arena, sizeof *metric + key->length + 1, WR_LINE);
    if (!metric)
        return NULL;
    wr_hash_set(&metric->entry, hash_metric(registry, key));
    atomic_store_explicit(&metric->gate, &key->stream->group->gate, memory_order_relaxed);
    metric->stream = (struct weir_stream *)key->stream;
    metric->flags = key->flags;
    metric->length = (uint8_t)key->length;
    memcpy(metric->name, key->name, key->length);
    return metric;
}

/* What a series keeps through changes of the description, such as the level of a gauge. Returns false if out of
 * memory. */
static bool keep_state(struct wr_registry *registry, const struct weir_metric *metric, struct wr_view *view)
{
    const struct wr_view *before =
        (const struct wr_view *)atomic_load_explicit(&metric->view, memory_order_relaxed);
    view->stream = metric->stream;
    view->next = before ? before->next : metric->stream->series;
    view->series.serial = before ? before->series.serial : ++registry->serials;
    if (before && before->level)
        view->level = before->level;
    else if (view->series.instrument == WEIR_GAUGE) {
        view->level = wr_arena_get(&registry->views, sizeof *view->level, sizeof *view->level);
        if (view->level)
            atomic_init(view->level, WR_LEVEL_UNKNOWN); /* published with the view */
    }
    return view->level || view->series.instrument != WEIR_GAUGE;
}

static _Atomic uint32_t *gate_of(struct wr_group *group, enum weir_instrument instrument)
{
    switch (instrument) {
    case WEIR_VALUE: return &group->gate;
    case WEIR_HISTOGRAM: return &group->histogram_gate;
    default: return &group->instrument_gate;
    }
}

/* How calls treat the series from now on; a call that is running may still treat it as before. */
static void set_instrument(struct weir_metric *metric, enum weir_instrument instrument)
{
    if (metric->flags & WEIR_SAMPLE_CUMULATIVE)
        instrument = WEIR_VALUE; /* a total is not an increment */
    /* release: a call that sees the instrument finds the level in the view */
    atomic_store_explicit(&metric->instrument, (uint8_t)instrument, memory_order_release);
    /* release: a call that finds this gate finds the instrument */
    atomic_store_explicit(&metric->gate, gate_of(metric->stream->group, instrument), memory_order_release);
}

bool wr_registry_set_view(struct wr_registry *registry, struct weir_metric *metric,
                          const struct wr_meaning *meaning, int enforced)
{
    struct wr_view *view = wr_arena_get(&registry->views, sizeof *view, _Alignof(struct wr_view));
    if (!view)
        return false;
    const struct weir_stream *stream = metric->stream;
    view->series = (weir_series){
        .size = sizeof view->series,
        .id = metric->series,
        .group = stream->group->name,
        .name = metric->name,
        .labels = stream->labels,
        .label_count = stream->label_count,
        .unit = meaning->unit,
        .help = meaning->help,
        .cumulative = metric->flags & WEIR_SAMPLE_CUMULATIVE,
        .instrument = (int32_t)meaning->instrument,
        .buckets = meaning->buckets,
        .bucket_count = meaning->bucket_count,
        .foreign = stream->is_foreign,
    };
    if (!keep_state(registry, metric, view))
        return false;
    view->merge = view->level ? meaning->merge : WR_MERGE_LAST;
    if (view->merge != WR_MERGE_LAST)
        atomic_store_explicit(&registry->merges, true, memory_order_relaxed);
    /* release: pairs with the acquire loads of threads that pass the view to a handler */
    if (atomic_exchange_explicit(&metric->view, &view->series, memory_order_acq_rel))
        /* release: who sees the number (wr_batch_of) sees the view that it counts */
        atomic_fetch_add_explicit(&registry->redefinitions, 1, memory_order_release);
    set_instrument(metric, (enum weir_instrument)enforced);
    if (registry->on_series)
        registry->on_series(registry->on_series_ctx, metric);
    return true;
}

/* Assigns the next id to the metric, and enters it in the table of ids. */
static bool set_id(struct wr_registry *registry, struct weir_metric *metric)
{
    uint32_t id = atomic_load_explicit(&registry->series, memory_order_relaxed);
    unsigned chunk = 31u - (unsigned)__builtin_clz(id / WR_REGISTRY_FIRST_CHUNK + 1);
    uint32_t room = (uint32_t)WR_REGISTRY_FIRST_CHUNK << chunk;
    uint32_t first = room - WR_REGISTRY_FIRST_CHUNK;
    struct weir_metric **metrics = atomic_load_explicit(&registry->chunks[chunk], memory_order_relaxed);
    if (!metrics) {
        metrics = wr_arena_get(&registry->arena, room * sizeof *metrics, WR_LINE);
        if (!metrics)
            return false;
        atomic_store_explicit(&registry->chunks[chunk], metrics, memory_order_release);
    }
    metric->series = id;
    metrics[id - first] = metric;
    return true;
}

struct weir_metric *wr_registry_add_metric(struct wr_registry *registry, const struct wr_metric_key *key)
{
    struct wr_family *family = wr_family_make(registry, key->stream->group, key->name, key->length);
    if (!family || !wr_family_reserve(registry, family))
        return NULL;
    struct weir_metric *metric = make_metric(registry, key);
    if (!metric || !set_id(registry, metric) ||
        !wr_registry_set_view(registry, metric, &family->meaning, (int)family->enforced) ||
        !wr_hash_table_insert(&registry->metrics, &registry->arena, &metric->entry))
        return NULL;
    wr_family_add(family, metric);
    metric->stream->series = metric;
    /* release: the table entry of the id is stored before the id counts */
    atomic_store_explicit(&registry->series, metric->series + 1, memory_order_release);
    return metric;
}

/* ---- The registry ---------------------------------------------------------------------------- */

static struct weir_metric *make_refusing(struct wr_registry *registry, struct weir_stream *stream, int refusal)
{
    *stream = (struct weir_stream){.group = registry->refusing_group, .refusal = refusal};
    struct wr_metric_key key = {stream, "", 0, 0};
    struct weir_metric *metric = make_metric(registry, &key);
    if (metric)
        atomic_store_explicit(&metric->instrument, WR_INSTRUMENT_REFUSES, memory_order_relaxed);
    return metric;
}

bool wr_registry_init(struct wr_registry *registry)
{
    registry->seed = wr_hash_table_seed();
    atomic_store_explicit(&registry->max, WR_REGISTRY_DEFAULT_MAX, memory_order_relaxed);
    struct wr_group_key key = {"", 0};
    registry->refusing_group = make_group(registry, &key);
    if (!registry->refusing_group)
        return false;
    atomic_store_explicit(&registry->refusing_group->gate, WR_GATE_REFUSE, memory_order_relaxed);
    registry->bad_name_metric = make_refusing(registry, &registry->bad_name, WEIR_ERR_NAME);
    registry->no_memory_metric = make_refusing(registry, &registry->no_memory, WEIR_ERR_MEMORY);
    registry->over_limit_metric = make_refusing(registry, &registry->over_limit, WEIR_ERR_LIMIT);
    registry->conflict_metric = make_refusing(registry, &registry->conflict, WEIR_ERR_ARGUMENT);
    return registry->bad_name_metric && registry->no_memory_metric && registry->over_limit_metric &&
           registry->conflict_metric;
}

struct wr_registry *wr_registry_refusing(void)
{
    static struct wr_group group = {.gate = WR_GATE_REFUSE};
    static struct weir_stream stream = {.group = &group, .refusal = WEIR_ERR_MEMORY};
    static struct weir_metric metric = {
        .gate = &group.gate, .stream = &stream, .instrument = WR_INSTRUMENT_REFUSES};
    static struct wr_registry registry = {
        .refusing_group = &group,
        .no_memory = {.group = &group, .refusal = WEIR_ERR_MEMORY},
        .bad_name_metric = &metric,
        .no_memory_metric = &metric,
        .over_limit_metric = &metric,
        .conflict_metric = &metric,
    };
    return &registry;
}

void wr_registry_after_fork(struct wr_registry *registry)
{
    wr_lock_reset(&registry->lock);
    registry->on_series = NULL; /* of the parent's journal */
    registry->inherited = registry->serials;
    wr_reuse_after_fork(registry);
    struct wr_group *group = atomic_load_explicit(&registry->last_group, memory_order_relaxed);
    for (; group; group = group->next) {
        atomic_store_explicit(&group->gate, WR_GATE_COLD, memory_order_relaxed);
        atomic_store_explicit(&group->instrument_gate, WR_GATE_COLD, memory_order_relaxed);
        atomic_store_explicit(&group->histogram_gate, WR_GATE_COLD, memory_order_relaxed);
        atomic_store_explicit(&group->held, false, memory_order_relaxed);
        atomic_store_explicit(&group->waiters, 0, memory_order_relaxed);
        atomic_store_explicit(&group->unrouted, 0, memory_order_relaxed);
        group->route = 0;
        group->route_next = NULL;
    }
}
