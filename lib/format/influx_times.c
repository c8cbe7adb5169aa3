#include "format/influx_times.h"

#include <stdlib.h>
#include <string.h>

#include "text/array.h"
#include "text/hash.h"

enum { SMALLEST = 1024, LARGEST = 131072 };

void wr_influx_times_fini(struct wr_influx_times *times)
{
    free(times->young.slots);
    free(times->old.slots);
    free(times->raised);
    *times = (struct wr_influx_times){0};
}

/* ---- Sets ------------------------------------------------------------------------------------ */

static uint64_t hash_of(uint64_t key, int64_t time_ns)
{
    uint64_t hash =
        wr_hash_mix(key ^ UINT64_C(0xa0761d6478bd642f), (uint64_t)time_ns ^ UINT64_C(0xe7037ed1a0b428db));
    return hash ? hash : 1;
}

/* The hash's slot, or the free one where it belongs. */
static uint64_t *find_slot(const struct wr_influx_times_set *set, uint64_t hash)
{
    uint32_t mask = set->room - 1;
    for (uint32_t i = (uint32_t)(hash >> 32) & mask;; i = (i + 1) & mask)
        if (!set->slots[i] || set->slots[i] == hash)
            return &set->slots[i];
}

static bool has(const struct wr_influx_times_set *set, uint64_t hash)
{
    return set->slots && *find_slot(set, hash);
}

static void put(struct wr_influx_times_set *set, uint64_t hash)
{
    uint64_t *slot = find_slot(set, hash);
    set->count += !*slot;
    *slot = hash;
}

static bool grow(struct wr_influx_times_set *set)
{
    uint32_t room = set->room ? set->room * 2 : SMALLEST;
    struct wr_influx_times_set larger = {calloc(room, sizeof *larger.slots), room, 0};
    if (!larger.slots)
        return false;
    for (uint32_t i = 0; i < set->room; i++)
        if (set->slots[i])
            put(&larger, set->slots[i]);
    free(set->slots);
    *set = larger;
    return true;
}

/* The old set's memory is reused for the new young set. */
static bool age(struct wr_influx_times *times)
{
    struct wr_influx_times_set next = times->old;
    if (!next.slots)
        next = (struct wr_influx_times_set){calloc(LARGEST, sizeof *next.slots), LARGEST, 0};
    else
        memset(next.slots, 0, next.room * sizeof *next.slots);
    if (!next.slots)
        return false;
    next.count = 0;
    times->old = times->young;
    times->young = next;
    return true;
}

static bool make_room(struct wr_influx_times *times)
{
    const struct wr_influx_times_set *young = &times->young;
    if (young->count < young->room / 2)
        return true;
    return young->room < LARGEST ? grow(&times->young) : age(times);
}

/* ---- Times in use ---------------------------------------------------------------------------- */

static bool is_used(const struct wr_influx_times *times, uint64_t key, int64_t time_ns)
{
    uint64_t hash = hash_of(key, time_ns);
    return has(&times->young, hash) || has(&times->old, hash);
}

static int64_t add_saturated(int64_t time_ns, int64_t step)
{
    return time_ns > INT64_MAX - step ? INT64_MAX : time_ns + step;
}

/* Raised times follow the time that many values share without a gap, so their end is found by doubling the step
 * and then halving the distance. */
int64_t wr_influx_times_find(const struct wr_influx_times *times, uint64_t key, int64_t time_ns)
{
    if (!is_used(times, key, time_ns))
        return time_ns;
    int64_t used = time_ns, step = 1, free_ns = add_saturated(used, step);
    while (free_ns < INT64_MAX && is_used(times, key, free_ns)) {
        used = free_ns;
        step *= 2;
        free_ns = add_saturated(used, step);
    }
    while (free_ns - used > 1) {
        int64_t middle = used + (free_ns - used) / 2;
        if (is_used(times, key, middle))
            used = middle;
        else
            free_ns = middle;
    }
    return free_ns;
}

bool wr_influx_times_use(struct wr_influx_times *times, uint64_t key, int64_t time_ns)
{
    if (!make_room(times))
        return false;
    put(&times->young, hash_of(key, time_ns));
    return true;
}

/* ---- Values that are offered again ----------------------------------------------------------- */

/* How many raised values come before a sequence number. */
static uint32_t count_before(const struct wr_influx_times *times, uint64_t sequence)
{
    uint32_t low = 0, high = times->raised_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (times->raised[middle].sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool wr_influx_times_recall(const struct wr_influx_times *times, uint64_t sequence, int64_t *time_ns)
{
    if (sequence >= times->next)
        return false;
    uint32_t i = count_before(times, sequence);
    if (i < times->raised_count && times->raised[i].sequence == sequence)
        *time_ns = times->raised[i].time_ns;
    return true;
}

bool wr_influx_times_raise(struct wr_influx_times *times, uint64_t sequence, int64_t time_ns)
{
    if (!WR_ARRAY_HAS_ROOM(&times->raised, &times->raised_room, times->raised_count + 1))
        return false;
    times->raised[times->raised_count++] = (struct wr_influx_times_raised){sequence, time_ns};
    return true;
}

void wr_influx_times_advance(struct wr_influx_times *times, uint64_t sequence)
{
    if (sequence > times->next)
        times->next = sequence;
}

void wr_influx_times_restart(struct wr_influx_times *times)
{
    times->next = 0;
    times->raised_count = 0;
}

void wr_influx_times_forget(struct wr_influx_times *times, uint64_t sequence)
{
    if (!times->raised_count || times->raised[0].sequence >= sequence)
        return;
    uint32_t settled = count_before(times, sequence);
    times->raised_count -= settled;
    memmove(times->raised, times->raised + settled, times->raised_count * sizeof *times->raised);
}
