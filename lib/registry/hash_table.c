#include "registry/hash_table.h"

#include <sys/auxv.h>

#include "os/arena.h"
#include "os/clock.h"

enum { FIRST_SLOTS = 64 };

static void put(struct wr_hash_slots *slots, struct wr_hash_entry *entry)
{
    size_t i = wr_hash_of(entry) & slots->mask;
    while (atomic_load_explicit(&slots->slots[i], memory_order_relaxed))
        i = (i + 1) & slots->mask;
    /* release: pairs with the acquire in find; a thread that finds the entry sees its contents */
    atomic_store_explicit(&slots->slots[i], entry, memory_order_release);
}

/* Readers may still use the old slots, which therefore stay: they find the entries of that time, and a reader
 * that finds none looks again under the writer's lock. */
static bool grow(struct wr_hash_table *table, struct wr_arena *arena)
{
    const struct wr_hash_slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed);
    size_t room = old ? (old->mask + 1) * 2 : FIRST_SLOTS;
    struct wr_hash_slots *slots = wr_arena_get(arena, sizeof *slots + room * sizeof slots->slots[0], WR_LINE);
    if (!slots)
        return false;
    slots->mask = room - 1;
    for (size_t i = 0; old && i <= old->mask; i++) {
        struct wr_hash_entry *entry = atomic_load_explicit(&old->slots[i], memory_order_relaxed);
        if (entry)
            put(slots, entry);
    }
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    return true;
}

bool wr_hash_table_insert(struct wr_hash_table *table, struct wr_arena *arena, struct wr_hash_entry *entry)
{
    struct wr_hash_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (!slots || table->count >= (slots->mask + 1) / 2) {
        /* if out of memory the table may fill up further, but one slot must stay empty to end each search */
        if (!grow(table, arena) && (!slots || table->count >= slots->mask))
            return false;
        slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    }
    put(slots, entry);
    table->count++;
    return true;
}

/* Whether an entry of slot `from` may be in slot `to`: its search begins there, or before. */
static bool may_move(const struct wr_hash_slots *slots, const struct wr_hash_entry *entry, size_t from,
                     size_t to)
{
    return ((from - wr_hash_of(entry)) & slots->mask) >= ((from - to) & slots->mask);
}

/* Entries behind a gap take its place, since a search ends at a free slot. Each is in its new slot before
 * another one takes the old one, so it may be found twice meanwhile, or be missed by a search that passed the
 * new slot before and the old one afterwards. */
void wr_hash_table_remove(struct wr_hash_table *table, const struct wr_hash_entry *entry)
{
    struct wr_hash_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    size_t gap = wr_hash_of(entry) & slots->mask;
    while (atomic_load_explicit(&slots->slots[gap], memory_order_relaxed) != entry)
        gap = (gap + 1) & slots->mask;
    for (size_t i = gap;;) {
        i = (i + 1) & slots->mask;
        struct wr_hash_entry *next = atomic_load_explicit(&slots->slots[i], memory_order_relaxed);
        if (!next)
            break;
        if (!may_move(slots, next, i, gap))
            continue;
        /* release: as in put */
        atomic_store_explicit(&slots->slots[gap], next, memory_order_release);
        gap = i;
    }
    atomic_store_explicit(&slots->slots[gap], NULL, memory_order_release);
    table->count--;
}

uint64_t wr_hash_table_seed(void)
{
    /* sixteen random bytes that the kernel passes to every program (getauxval(3)) */
    uint64_t seed = 0;
    const char *random = (const char *)getauxval(AT_RANDOM);
    if (random)
        memcpy(&seed, random, sizeof seed);
    return wr_hash_mix(seed ^ (uint64_t)wr_clock_monotonic_ns(), UINT64_C(0x8ebc6af09c88c6e3));
}
