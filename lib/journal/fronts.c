#include "journal/fronts.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "text/array.h"

struct wr_fronts_time wr_fronts_now(void)
{
    return (struct wr_fronts_time){wr_clock_monotonic_ns(), wr_clock_wall_ns()};
}

/* ---- Origins --------------------------------------------------------------------------------- */

static struct wr_front_entry *entry_at(const struct wr_fronts *fronts, uint32_t number)
{
    return &fronts->entries[number - 1];
}

/* A sender may choose its origin, so the bits are mixed. */
static uint32_t *bucket_of(const struct wr_fronts *fronts, struct wr_front_origin origin)
{
    uint64_t mixed = (origin.words[0] ^ (origin.words[1] * UINT64_C(0x9e3779b97f4a7c15)));
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return &fronts->buckets[(mixed >> 32) & (fronts->bucket_count - 1)];
}

static uint32_t find(const struct wr_fronts *fronts, struct wr_front_origin origin)
{
    uint32_t number = fronts->bucket_count ? *bucket_of(fronts, origin) : 0;
    while (number && memcmp(&entry_at(fronts, number)->origin, &origin, sizeof origin) != 0)
        number = entry_at(fronts, number)->next;
    return number;
}

static void unlink_use(struct wr_fronts *fronts, uint32_t number)
{
    const struct wr_front_entry *entry = entry_at(fronts, number);
    *(entry->newer ? &entry_at(fronts, entry->newer)->older : &fronts->newest) = entry->older;
    *(entry->older ? &entry_at(fronts, entry->older)->newer : &fronts->oldest) = entry->newer;
}

static void link_newest(struct wr_fronts *fronts, uint32_t number, int64_t now_ns)
{
    struct wr_front_entry *entry = entry_at(fronts, number);
    entry->used_ns = now_ns;
    entry->newer = 0;
    entry->older = fronts->newest;
    *(fronts->newest ? &entry_at(fronts, fronts->newest)->newer : &fronts->oldest) = number;
    fronts->newest = number;
}

static void use(struct wr_fronts *fronts, uint32_t number, int64_t now_ns)
{
    unlink_use(fronts, number);
    link_newest(fronts, number, now_ns);
}

static void drop(struct wr_fronts *fronts, uint32_t number)
{
    struct wr_front_entry *entry = entry_at(fronts, number);
    uint32_t *link = bucket_of(fronts, entry->origin);
    while (*link != number)
        link = &entry_at(fronts, *link)->next;
    *link = entry->next;
    unlink_use(fronts, number);
    wr_fronts_file_clear(&fronts->file, number - 1);
    entry->next = fronts->free;
    fronts->free = number;
    fronts->count--;
}

static void expire(struct wr_fronts *fronts, int64_t now_ns)
{
    int64_t remember_ns = fronts->remember_ns ? fronts->remember_ns : WR_FRONTS_REMEMBER_NS;
    while (fronts->oldest && now_ns - entry_at(fronts, fronts->oldest)->used_ns > remember_ns)
        drop(fronts, fronts->oldest);
}

/* Room for one more entry: at least as many buckets as entries. Returns false if out of memory. */
static bool grow(struct wr_fronts *fronts)
{
    enum { FEWEST = 64 };
    if (fronts->count >= fronts->bucket_count) {
        uint32_t count = fronts->bucket_count ? fronts->bucket_count * 2 : FEWEST;
        uint32_t *buckets = calloc(count, sizeof *buckets);
        if (!buckets)
            return false;
        free(fronts->buckets);
        fronts->buckets = buckets;
        fronts->bucket_count = count;
        for (uint32_t number = fronts->newest; number; number = entry_at(fronts, number)->older) {
            struct wr_front_entry *entry = entry_at(fronts, number);
            uint32_t *bucket = bucket_of(fronts, entry->origin);
            entry->next = *bucket;
            *bucket = number;
        }
    }
    if (fronts->free)
        return true;
    if (!WR_ARRAY_HAS_ROOM(&fronts->entries, &fronts->room, fronts->used + 1))
        return false;
    fronts->free = ++fronts->used;
    entry_at(fronts, fronts->free)->next = 0;
    return true;
}

static bool insert(struct wr_fronts *fronts, struct wr_front_origin origin, int64_t now_ns, uint64_t *forgotten)
{
    uint32_t limit = fronts->limit ? fronts->limit : WR_FRONTS_MOST;
    if (fronts->count >= limit) {
        drop(fronts, fronts->oldest);
        ++*forgotten;
    }
    if (!grow(fronts))
        return false;
    uint32_t number = fronts->free;
    struct wr_front_entry *entry = entry_at(fronts, number);
    fronts->free = entry->next;
    uint32_t *bucket = bucket_of(fronts, origin);
    *entry = (struct wr_front_entry){.origin = origin, .next = *bucket};
    *bucket = number;
    link_newest(fronts, number, now_ns);
    fronts->count++;
    return true;
}

bool wr_fronts_missing(struct wr_fronts *fronts, struct wr_front_origin origin, int64_t now_ns, uint64_t first,
                       uint64_t end, uint64_t *missing, uint64_t *missing_end)
{
    static const struct wr_front none = {0};
    wr_lock_enter(&fronts->lock);
    expire(fronts, now_ns);
    uint32_t number = find(fronts, origin);
    if (number)
        use(fronts, number, now_ns);
    const struct wr_front *front = number ? &entry_at(fronts, number)->front : &none;
    bool result = wr_front_missing(front, first, end, missing, missing_end);
    wr_lock_leave(&fronts->lock);
    return result;
}

bool wr_fronts_reserve(struct wr_fronts *fronts, const struct wr_fronts_step *step, uint64_t *forgotten)
{
    int64_t now_ns = step->now.monotonic_ns;
    wr_lock_enter(&fronts->lock);
    expire(fronts, now_ns);
    uint32_t number = find(fronts, step->origin);
    if (number)
        use(fronts, number, now_ns);
    else if (insert(fronts, step->origin, now_ns, forgotten))
        number = fronts->newest;
    if (number)
        wr_fronts_file_reserve(&fronts->file, number - 1, now_ns);
    wr_lock_leave(&fronts->lock);
    return number;
}

/* ---- Taking numbers -------------------------------------------------------------------------- */

static bool is_pending(const struct wr_fronts_state *state)
{
    return state->pending.range.from != state->pending.range.to;
}

/* The state of an entry whose slot has a file. */
static struct wr_fronts_state state_of(const struct wr_fronts *fronts, uint32_t number, int64_t wall_ns)
{
    const struct wr_fronts_state *found = wr_fronts_file_get(&fronts->file, number - 1);
    struct wr_fronts_state state = {.origin = entry_at(fronts, number)->origin, .used_ns = wall_ns};
    if (found) {
        state.front = found->front;
        state.pending = found->pending;
    }
    return state;
}

/* Another source may be taking numbers of the same origin, and a slot has room for those of one: then these are
 * not kept. */
static bool begin_in_file(struct wr_fronts *fronts, uint32_t number, const struct wr_fronts_step *step,
                          const struct wr_ring *ring, uint64_t position)
{
    if (!wr_fronts_file_has(&fronts->file, number - 1))
        return false;
    struct wr_fronts_state state = state_of(fronts, number, step->now.wall_ns);
    if (!ring)
        return true;
    uint32_t file = wr_ring_block(ring)->number;
    if (!file || is_pending(&state))
        return false;
    state.pending = (struct wr_front_pending){.range = step->range, .position = position, .ring = file};
    wr_fronts_file_put(&fronts->file, number - 1, &state);
    return true;
}

void wr_fronts_begin(struct wr_fronts *fronts, struct wr_fronts_step *step, const struct wr_ring *ring,
                     uint64_t position)
{
    wr_lock_enter(&fronts->lock);
    uint32_t number = find(fronts, step->origin);
    step->is_kept = number && begin_in_file(fronts, number, step, ring, position);
    wr_lock_leave(&fronts->lock);
}

/* The entry may have been forgotten since, and made again. */
static void end_in_file(struct wr_fronts *fronts, uint32_t number, const struct wr_fronts_step *step)
{
    if (!wr_fronts_file_has(&fronts->file, number - 1))
        return;
    struct wr_fronts_state state = state_of(fronts, number, step->now.wall_ns);
    wr_front_add(&state.front, step->range.from, step->range.to);
    if (state.pending.range.from == step->range.from && state.pending.range.to == step->range.to)
        state.pending = (struct wr_front_pending){0};
    wr_fronts_file_put(&fronts->file, number - 1, &state);
}

void wr_fronts_end(struct wr_fronts *fronts, const struct wr_fronts_step *step)
{
    wr_lock_enter(&fronts->lock);
    uint32_t number = find(fronts, step->origin);
    if (number) {
        use(fronts, number, step->now.monotonic_ns);
        wr_front_add(&entry_at(fronts, number)->front, step->range.from, step->range.to);
    }
    if (number && step->is_kept)
        end_in_file(fronts, number, step);
    wr_lock_leave(&fronts->lock);
}

void wr_fronts_forget(struct wr_fronts *fronts, struct wr_front_origin origin)
{
    wr_lock_enter(&fronts->lock);
    uint32_t number = find(fronts, origin);
    if (number)
        drop(fronts, number);
    wr_lock_leave(&fronts->lock);
}

/* ---- In a journal ---------------------------------------------------------------------------- */

void wr_fronts_keep(struct wr_fronts *fronts, const char *folder)
{
    wr_lock_enter(&fronts->lock);
    wr_fronts_file_start(&fronts->file, folder);
    wr_lock_leave(&fronts->lock);
}

bool wr_fronts_are_kept(struct wr_fronts *fronts)
{
    wr_lock_enter(&fronts->lock);
    bool result = fronts->file.folder && !fronts->file.failing;
    wr_lock_leave(&fronts->lock);
    return result;
}

/* Returns whether it is kept. */
static bool adopt(struct wr_fronts *fronts, const struct wr_fronts_state *adopted, struct wr_fronts_time now,
                  int64_t used_ns)
{
    uint64_t forgotten = 0;
    uint32_t number = find(fronts, adopted->origin);
    if (!number && insert(fronts, adopted->origin, used_ns, &forgotten))
        number = fronts->newest;
    if (!number)
        return false;
    bool kept = wr_fronts_file_reserve(&fronts->file, number - 1, now.monotonic_ns);
    struct wr_fronts_state state = kept ? state_of(fronts, number, adopted->used_ns) : *adopted;
    for (uint32_t i = 0; i < adopted->front.count; i++) {
        struct wr_front_range range = adopted->front.ranges[i];
        wr_front_add(&entry_at(fronts, number)->front, range.from, range.to);
        wr_front_add(&state.front, range.from, range.to);
    }
    if (kept)
        wr_fronts_file_put(&fronts->file, number - 1, &state);
    return kept;
}

static int compare_uses(const void *a, const void *b)
{
    int64_t first = ((const struct wr_fronts_state *)a)->used_ns;
    int64_t second = ((const struct wr_fronts_state *)b)->used_ns;
    return first < second ? -1 : first > second;
}

/* In the order of their use, so that those used longest ago are forgotten first. */
size_t wr_fronts_adopt(struct wr_fronts *fronts, const char *folder, struct wr_fronts_time now)
{
    struct wr_fronts_state *states;
    size_t count, adopted = 0;
    int64_t remember_ns = fronts->remember_ns ? fronts->remember_ns : WR_FRONTS_REMEMBER_NS;
    bool kept = wr_fronts_file_read(folder, &states, &count);
    if (count)
        qsort(states, count, sizeof *states, compare_uses);
    wr_lock_enter(&fronts->lock);
    for (size_t i = 0; i < count; i++) {
        int64_t age_ns = now.wall_ns - states[i].used_ns;
        if (age_ns > remember_ns)
            continue;
        kept &= adopt(fronts, &states[i], now, now.monotonic_ns - (age_ns > 0 ? age_ns : 0));
        adopted++;
    }
    wr_lock_leave(&fronts->lock);
    free(states);
    if (kept)
        wr_mapped_file_remove_all(folder, WR_FRONTS_KIND);
    return adopted;
}

void wr_fronts_leave(struct wr_fronts *fronts, int64_t now_ns)
{
    wr_lock_enter(&fronts->lock);
    expire(fronts, now_ns);
    bool has_front = false;
    for (uint32_t number = fronts->newest; number && !has_front; number = entry_at(fronts, number)->older)
        has_front = wr_fronts_file_get(&fronts->file, number - 1);
    if (!has_front && fronts->file.folder)
        wr_mapped_file_remove_all(fronts->file.folder, WR_FRONTS_KIND);
    wr_fronts_file_stop(&fronts->file);
    wr_lock_leave(&fronts->lock);
}

void wr_fronts_fini(struct wr_fronts *fronts)
{
    wr_fronts_file_stop(&fronts->file);
    free(fronts->entries);
    free(fronts->buckets);
    *fronts = (struct wr_fronts){0};
}
