/* hash_table: finds entries by hash, without a lock.
 *
 * The table only grows, and each change is published by one release store: readers need no lock, and the table
 * is consistent in a forked child even if another thread was inserting at that moment. Entries are never freed.
 */
#ifndef WR_HASH_TABLE_H
#define WR_HASH_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/hash.h"

struct wr_arena;

/* The first field of every entry. */
struct wr_hash_entry {
    uint64_t hash;
};

struct wr_hash_slots {
    size_t mask;
    _Atomic(struct wr_hash_entry *) slots[];
};

/* All zeros: empty. */
struct wr_hash_table {
    _Atomic(struct wr_hash_slots *) slots;
    size_t count;
};

/* Whether an entry with an equal hash matches the key. */
typedef bool wr_hash_table_match(const struct wr_hash_entry *entry, const void *key);

/* [any thread] Returns the entry, or NULL: there is none, or it was not visible yet. Inline, so that match is
 * inlined as well. */
static inline struct wr_hash_entry *wr_hash_table_find(const struct wr_hash_table *table, uint64_t hash,
                                                       wr_hash_table_match *match, const void *key)
{
    /* acquire: pairs with the release stores in wr_hash_table_insert */
    const struct wr_hash_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
    if (!slots)
        return NULL;
    for (size_t i = hash & slots->mask;; i = (i + 1) & slots->mask) {
        struct wr_hash_entry *entry = atomic_load_explicit(&slots->slots[i], memory_order_acquire);
        if (!entry || (entry->hash == hash && match(entry, key)))
            return entry;
    }
}

/* [one thread at a time] Adds an entry that is not in the table. Returns false if out of memory. */
bool wr_hash_table_insert(struct wr_hash_table *table, struct wr_arena *arena, struct wr_hash_entry *entry);

/* Returns a seed that cannot be guessed, so that names cannot be chosen to collide. */
uint64_t wr_hash_table_seed(void);

#endif
