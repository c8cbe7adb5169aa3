#include "source/source_sets.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "registry/reuse.h"
#include "runtime/runtime.h"
#include "source/source_host.h"
#include "text/array.h"

void wr_source_sets_fini(struct wr_source_sets *sets)
{
    for (uint32_t i = 0; i < sets->count; i++)
        wr_reuse_let_go(sets->sets[i].metric->stream);
    wr_member_table_fini(&sets->members);
    free(sets->sets);
    free(sets->by_series);
    *sets = (struct wr_source_sets){0};
}

/* ---- Sets ------------------------------------------------------------------------------------ */

/* Returns NULL if out of memory. */
static struct wr_source_set *get_set(struct wr_source_sets *sets, struct weir_metric *metric)
{
    if (!WR_ARRAY_HAS_ROOM(&sets->by_series, &sets->by_series_room, metric->series + 1))
        return NULL;
    uint32_t place = sets->by_series[metric->series];
    if (place)
        return &sets->sets[place - 1];
    if (!WR_ARRAY_HAS_ROOM(&sets->sets, &sets->room, sets->count + 1))
        return NULL;
    wr_reuse_hold(metric->stream); /* beyond its expiry */
    sets->sets[sets->count] = (struct wr_source_set){.metric = metric};
    sets->by_series[metric->series] = ++sets->count;
    return &sets->sets[sets->count - 1];
}

/* Those that were empty in the interval are forgotten: their 0 was added. */
static void begin_next(struct wr_source_sets *sets)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sets->count; i++) {
        struct wr_source_set set = sets->sets[i];
        sets->by_series[set.metric->series] = set.count ? kept + 1 : 0;
        if (set.count)
            sets->sets[kept++] = (struct wr_source_set){.metric = set.metric};
        else
            wr_reuse_let_go(set.metric->stream);
    }
    sets->count = kept;
    wr_member_table_clear(&sets->members);
}

/* ---- Members --------------------------------------------------------------------------------- */

/* With those of handlers, so that a count is of the same time as what they sum. */
static int64_t end_of_interval_ns(const struct wr_source *source)
{
    return wr_clock_before_end_ns(wr_clock_monotonic_ns(), source->options.set_interval_ns);
}

static int add_member(struct wr_source *source, struct weir_metric *metric, const char *member)
{
    struct wr_source_sets *sets = &source->sets;
    struct wr_source_set *set = get_set(sets, metric);
    /* the seed cannot be guessed, so that members cannot be chosen to have one hash */
    uint64_t seed = wr_hash_mix(source->runtime->registry.seed ^ metric->series, UINT64_C(0x8ebc6af09c88c6e3));
    uint64_t hash = wr_hash_bytes(seed, member, strlen(member));
    switch (set ? wr_member_table_add(&sets->members, hash, (uint32_t)source->options.set_members)
                : WR_MEMBER_NO_MEMORY) {
    case WR_MEMBER_NEW: set->count++; break;
    case WR_MEMBER_KNOWN: break;
    case WR_MEMBER_BEYOND_LIMIT:
        return wr_source_host_refuse_values(
            source, 1, WEIR_REFUSED_LIMIT,
            "there are more members of sets in an interval than set_members allows; further ones are not "
            "counted");
    default:
        return wr_source_host_refuse_values(source, 1, WEIR_REFUSED_MEMORY,
                                            "out of memory for a member of a set");
    }
    if (!sets->due_ns)
        sets->due_ns = end_of_interval_ns(source);
    wr_source_host_count(source, WR_SOURCE_COUNT_MEMBERS, 1);
    return WEIR_ADD_TAKEN;
}

int wr_source_sets_take(struct wr_source *source, const weir_record *record, const char *member)
{
    if (!wr_source_sets_tend(source, false))
        return WEIR_ADD_FULL;
    struct weir_metric *metric = wr_source_host_find(source, record);
    return metric ? add_member(source, metric, member) : WEIR_ADD_REFUSED;
}

/* ---- The end of an interval ------------------------------------------------------------------ */

/* A set that is empty for the first time is 0, so that a chart does not go on with what it was. */
static bool report(struct wr_source *source)
{
    struct wr_source_sets *sets = &source->sets;
    for (; sets->reported < sets->count; sets->reported++) {
        const struct wr_source_set *set = &sets->sets[sets->reported];
        if (wr_source_host_add_number(source, set->metric, WEIR_INT((int64_t)set->count)) == WEIR_ADD_FULL)
            return false;
    }
    return true;
}

bool wr_source_sets_tend(struct wr_source *source, bool ends)
{
    struct wr_source_sets *sets = &source->sets;
    if (!sets->due_ns)
        return true;
    if (!sets->is_reporting && !ends && wr_clock_monotonic_ns() < sets->due_ns)
        return true;
    sets->is_reporting = true;
    if (!report(source))
        return false;
    sets->is_reporting = false;
    sets->reported = 0;
    begin_next(sets);
    /* the sets that are left are empty from now on: they need an end, too */
    sets->due_ns = sets->count && !ends ? end_of_interval_ns(source) : 0;
    return true;
}
