#include "format/instants.h"

#include <stdlib.h>
#include <string.h>

#include "text/hash.h"

enum { SMALLEST = 1024, LARGEST = 131072 };

static uint64_t hash_of(uint64_t key, int64_t time_ns)
{
    uint64_t hash =
        wr_hash_mix(key ^ UINT64_C(0xa0761d6478bd642f), (uint64_t)time_ns ^ UINT64_C(0xe7037ed1a0b428db));
    return hash ? hash : 1;
}

/* ---- Sets ------------------------------------------------------------------------------------ */

/* The hash's slot, or the free one where it belongs. */
static uint64_t *find_slot(const struct wr_instants_set *set, uint64_t hash)
{
    uint32_t mask = set->room - 1;
    for (uint32_t i = (uint32_t)(hash >> 32) & mask;; i = (i + 1) & mask)
        if (!set->slots[i] || set->slots[i] == hash)
            return &set->slots[i];
}

static bool has(const struct wr_instants_set *set, uint64_t hash)
{
    return set->slots && *find_slot(set, hash);
}

static void put(struct wr_instants_set *set, uint64_t hash)
{
    uint64_t *slot = find_slot(set, hash);
    set->count += !*slot;
    *slot = hash;
}

static bool grow(struct wr_instants_set *set)
{
    uint32_t room = set->room ? set->room * 2 : SMALLEST;
    struct wr_instants_set larger = {calloc(room, sizeof *larger.slots), room, 0};
    if (!larger.slots)
        return false;
    for (uint32_t i = 0; i < set->room; i++)
        if (set->slots[i])
            put(&larger, set->slots[i]);
    free(set->slots);
    *set = larger;
    return true;
}

/* The old set's memory becomes the new young one's. */
static bool age(struct wr_instants *instants)
{
    struct wr_instants_set next = instants->old;
    if (!next.slots)
        next = (struct wr_instants_set){calloc(LARGEST, sizeof *next.slots), LARGEST, 0};
    else
        memset(next.slots, 0, next.room * sizeof *next.slots);
    if (!next.slots)
        return false;
    next.count = 0;
    instants->old = instants->young;
    instants->young = next;
    return true;
}

static bool make_room(struct wr_instants *instants)
{
    const struct wr_instants_set *young = &instants->young;
    if (young->count < young->room / 2)
        return true;
    return young->room < LARGEST ? grow(&instants->young) : age(instants);
}

/* ---- Times ----------------------------------------------------------------------------------- */

static bool is_taken(const struct wr_instants *instants, uint64_t key, int64_t time_ns)
{
    uint64_t hash = hash_of(key, time_ns);
    return has(&instants->young, hash) || has(&instants->old, hash);
}

static int64_t later(int64_t time_ns, int64_t step)
{
    return time_ns > INT64_MAX - step ? INT64_MAX : time_ns + step;
}

/* What was raised lies in a row behind the time that many values have: its end is looked for in leaps. */
int64_t wr_instants_find(const struct wr_instants *instants, uint64_t key, int64_t time_ns)
{
    if (!is_taken(instants, key, time_ns))
        return time_ns;
    int64_t taken = time_ns, step = 1, open = later(taken, step);
    while (open < INT64_MAX && is_taken(instants, key, open)) {
        taken = open;
        step *= 2;
        open = later(taken, step);
    }
    while (open - taken > 1) {
        int64_t middle = taken + (open - taken) / 2;
        if (is_taken(instants, key, middle))
            taken = middle;
        else
            open = middle;
    }
    return open;
}

bool wr_instants_take(struct wr_instants *instants, uint64_t key, int64_t time_ns)
{
    if (!make_room(instants))
        return false;
    put(&instants->young, hash_of(key, time_ns));
    return true;
}

void wr_instants_fini(struct wr_instants *instants)
{
    free(instants->young.slots);
    free(instants->old.slots);
    *instants = (struct wr_instants){0};
}
