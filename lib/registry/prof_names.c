#include "registry/prof_names.h"

#include <stdio.h>
#include <string.h>

#include "registry/family.h"
#include "registry/name.h"
#include "registry/name_key.h"
#include "registry/series.h"
#include "text/error.h"

static bool match(const struct wr_hash_entry *entry, const void *key)
{
    const struct wr_prof_names *names = (const struct wr_prof_names *)entry;
    return wr_name_key_is(key, &names->stream->entry, names->name, names->length);
}

static struct wr_prof_names *find(const struct wr_registry *registry, const struct wr_name_key *key)
{
    return (struct wr_prof_names *)wr_hash_table_find(&registry->profs, wr_name_key_hash(registry, key), match,
                                                      key);
}

/* Declares NAME.suffix, and returns its series. NULL: it has none of its own. */
static struct weir_metric *make_series(struct wr_registry *registry, const struct wr_name_key *key,
                                       const char *suffix, const weir_metric_spec *spec)
{
    char name[WR_NAME_LONGEST + 32];
    struct wr_error error; /* reported when the measurement ends */
    struct weir_stream *stream = (struct weir_stream *)key->owner;
    snprintf(name, sizeof name, "%s.%s", key->name, suffix);
    if (wr_family_declare(registry, stream, name, spec, &error))
        return NULL;
    struct weir_metric *metric = wr_series_get(registry, stream, name, 0, &error);
    return metric->stream->group == stream->group && strcmp(metric->name, name) == 0 ? metric : NULL;
}

static bool make_all(struct wr_registry *registry, const struct wr_name_key *key, struct wr_prof_names *names)
{
    const weir_metric_spec counter = {.size = sizeof counter, .instrument = WEIR_COUNTER};
    const weir_metric_spec histogram = {.size = sizeof histogram, .instrument = WEIR_HISTOGRAM, .unit = "ms"};
    names->success = make_series(registry, key, WR_PROF_NAMES_SUCCESS, &counter);
    names->failure = names->success ? make_series(registry, key, WR_PROF_NAMES_FAILURE, &counter) : NULL;
    names->duration_ms =
        names->failure ? make_series(registry, key, WR_PROF_NAMES_DURATION_MS, &histogram) : NULL;
    return names->duration_ms;
}

/* Not counted against settings.max_series: there is at most one for each name of a series. */
static const struct wr_prof_names *enter(struct wr_registry *registry, const struct wr_name_key *key,
                                         const struct wr_prof_names *made)
{
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    struct wr_prof_names *names = find(registry, key);
    if (!names && (names = wr_arena_get(&registry->views, sizeof *names + key->length + 1, WR_LINE))) {
        *names = *made;
        wr_hash_set(&names->entry, wr_name_key_hash(registry, key));
        names->stream = (struct weir_stream *)key->owner;
        names->length = (uint8_t)key->length;
        memcpy(names->name, key->name, key->length);
        if (!wr_hash_table_insert(&registry->profs, &registry->arena, &names->entry))
            names = NULL;
    }
    wr_registry_unlock(registry, &signals);
    return names;
}

const struct wr_prof_names *wr_prof_names_get(struct wr_registry *registry, struct weir_stream *stream,
                                              const char *name)
{
    struct wr_prof_names made;
    const struct wr_name_key key = {&stream->entry, name, strnlen(name, WR_NAME_LONGEST + 1)};
    if (!key.length || key.length > WR_NAME_LONGEST || stream->refusal)
        return NULL;
    const struct wr_prof_names *names = find(registry, &key);
    if (names)
        return names;
    return make_all(registry, &key, &made) ? enter(registry, &key, &made) : NULL;
}
