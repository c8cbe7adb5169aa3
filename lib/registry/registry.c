#include "registry/registry.h"

#include <string.h>

#include "os/signals.h"

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
    if (stream->group != wanted->group || stream->label_count != wanted->count)
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
    uint64_t hash = wr_hash_mix(registry->seed ^ key->group->entry.hash, UINT64_C(0x589965cc75374cc3));
    for (size_t i = 0; i < key->count; i++) {
        hash = wr_hash_bytes(hash, key->labels[i].key, strlen(key->labels[i].key));
        hash = wr_hash_bytes(hash, key->labels[i].value, strlen(key->labels[i].value));
    }
    return hash;
}

static uint64_t hash_metric(const struct wr_registry *registry, const struct wr_metric_key *key)
{
    return wr_hash_bytes(registry->seed ^ key->stream->entry.hash ^ key->flags, key->name, key->length);
}

struct wr_group *wr_registry_find_group(const struct wr_registry *registry, const struct wr_group_key *key)
{
    return (struct wr_group *)wr_hash_table_find(&registry->groups, hash_group(registry, key), match_group,
                                                 key);
}

struct weir_stream *wr_registry_find_stream(const struct wr_registry *registry, const struct wr_stream_key *key)
{
    return (struct weir_stream *)wr_hash_table_find(&registry->streams, hash_stream(registry, key),
                                                    match_stream, key);
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

bool wr_registry_count_one(struct wr_registry *registry)
{
    if (wr_registry_is_full(registry))
        return false;
    atomic_fetch_add_explicit(&registry->count, 1, memory_order_relaxed);
    return true;
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
    group->entry.hash = hash_group(registry, key);
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

static bool copy_labels(struct wr_registry *registry, struct weir_stream *stream,
                        const struct wr_stream_key *key)
{
    weir_label *labels = wr_arena_get(&registry->arena, key->count * sizeof *labels, _Alignof(weir_label));
    if (!labels)
        return false;
    for (size_t i = 0; i < key->count; i++) {
        labels[i].key = wr_registry_copy_text(registry, key->labels[i].key);
        labels[i].value = wr_registry_copy_text(registry, key->labels[i].value);
        if (!labels[i].key || !labels[i].value)
            return false;
    }
    stream->labels = labels;
    stream->label_count = (uint32_t)key->count;
    return true;
}

struct weir_stream *wr_registry_add_stream(struct wr_registry *registry, const struct wr_stream_key *key)
{
    struct weir_stream *stream = wr_arena_get(&registry->arena, sizeof *stream, WR_LINE);
    if (!stream)
        return NULL;
    stream->entry.hash = hash_stream(registry, key);
    stream->group = (struct wr_group *)key->group;
    if (key->count && !copy_labels(registry, stream, key))
        return NULL;
    return wr_hash_table_insert(&registry->streams, &registry->arena, &stream->entry) ? stream : NULL;
}

struct weir_stream *wr_registry_plain_stream(struct wr_registry *registry, const struct wr_group *group)
{
    struct wr_stream_key key = {group, NULL, 0};
    struct weir_stream *stream = wr_registry_find_stream(registry, &key);
    return stream ? stream : wr_registry_add_stream(registry, &key);
}

static struct weir_metric *make_metric(struct wr_registry *registry, const struct wr_metric_key *key)
{
    struct weir_metric *metric = wr_arena_get(&registry->arena, sizeof *metric + key->length + 1, WR_LINE);
    if (!metric)
        return NULL;
    metric->entry.hash = hash_metric(registry, key);
    metric->gate = &key->stream->group->gate;
    metric->stream = (struct weir_stream *)key->stream;
    metric->flags = key->flags;
    metric->length = (uint8_t)key->length;
    memcpy(metric->name, key->name, key->length);
    return metric;
}

bool wr_registry_set_view(struct wr_registry *registry, struct weir_metric *metric, const char *unit,
                          const char *help)
{
    weir_series *view = wr_arena_get(&registry->views, sizeof *view, _Alignof(weir_series));
    if (!view)
        return false;
    const struct weir_stream *stream = metric->stream;
    *view = (weir_series){
        .size = sizeof *view,
        .id = metric->series,
        .group = stream->group->name,
        .name = metric->name,
        .labels = stream->labels,
        .label_count = stream->label_count,
        .unit = unit,
        .help = help,
        .cumulative = metric->flags & WEIR_SAMPLE_CUMULATIVE,
    };
    /* release: pairs with the acquire loads of threads that pass the view to a handler */
    atomic_store_explicit(&metric->view, view, memory_order_release);
    if (registry->on_series)
        registry->on_series(registry->on_series_ctx, view);
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

/* The cumulative series of a name and the other one share a description. */
static const weir_series *find_twin(const struct wr_registry *registry, const struct wr_metric_key *key)
{
    struct wr_metric_key twin_key = *key;
    twin_key.flags ^= WEIR_SAMPLE_CUMULATIVE;
    const struct weir_metric *twin = wr_registry_find_metric(registry, &twin_key);
    return twin ? atomic_load_explicit(&twin->view, memory_order_relaxed) : NULL;
}

struct weir_metric *wr_registry_add_metric(struct wr_registry *registry, const struct wr_metric_key *key)
{
    struct weir_metric *metric = make_metric(registry, key);
    if (!metric || !set_id(registry, metric))
        return NULL;
    const weir_series *twin = find_twin(registry, key);
    if (!wr_registry_set_view(registry, metric, twin ? twin->unit : NULL, twin ? twin->help : NULL) ||
        !wr_hash_table_insert(&registry->metrics, &registry->arena, &metric->entry))
        return NULL;
    /* release: the table entry of the id is stored before the id counts */
    atomic_store_explicit(&registry->series, metric->series + 1, memory_order_release);
    return metric;
}

/* ---- The registry ---------------------------------------------------------------------------- */

static struct weir_metric *make_refusing(struct wr_registry *registry, struct weir_stream *stream, int refusal)
{
    *stream = (struct weir_stream){.group = registry->refusing_group, .refusal = refusal};
    struct wr_metric_key key = {stream, "", 0, 0};
    return make_metric(registry, &key);
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
    return registry->bad_name_metric && registry->no_memory_metric && registry->over_limit_metric;
}

struct wr_registry *wr_registry_refusing(void)
{
    static struct wr_group group = {.gate = WR_GATE_REFUSE};
    static struct weir_stream stream = {.group = &group, .refusal = WEIR_ERR_MEMORY};
    static struct weir_metric metric = {.gate = &group.gate, .stream = &stream};
    static struct wr_registry registry = {
        .refusing_group = &group,
        .no_memory = {.group = &group, .refusal = WEIR_ERR_MEMORY},
        .bad_name_metric = &metric,
        .no_memory_metric = &metric,
        .over_limit_metric = &metric,
    };
    return &registry;
}

void wr_registry_after_fork(struct wr_registry *registry)
{
    wr_lock_reset(&registry->lock);
    registry->on_series = NULL; /* of the parent's journal */
    struct wr_group *group = atomic_load_explicit(&registry->last_group, memory_order_relaxed);
    for (; group; group = group->next) {
        atomic_store_explicit(&group->gate, WR_GATE_COLD, memory_order_relaxed);
        atomic_store_explicit(&group->waiters, 0, memory_order_relaxed);
        atomic_store_explicit(&group->unrouted, 0, memory_order_relaxed);
        group->route = 0;
        group->route_next = NULL;
    }
}
