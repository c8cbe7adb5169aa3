/* hash_table: finds entries by hash, without a lock.
 *
 * Each change is published by release stores: readers need no lock, and the table is consistent in a forked
 * child even if another thread was inserting at that moment. Entries are never freed. While an entry is being
 * removed, others move, and a reader may miss one of them. */
#ifndef WR_HASH_TABLE_H
#define WR_HASH_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/hash.h"

struct wr_arena;

/* The first field of every entry. The hash of an entry that was removed may change while readers compare it;
 * then it is not the one that they look for. */
struct wr_hash_entry {
    _Atomic uint64_t hash;
};

static inline uint64_t wr_hash_of(const struct wr_hash_entry *entry)
{
    return atomic_load_explicit(&entry->hash, memory_order_relaxed);
}

static inline void wr_hash_set(struct wr_hash_entry *entry, uint64_t hash)
{
    atomic_store_explicit(&entry->hash, hash, memory_order_relaxed);
}

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
        if (!entry || (wr_hash_of(entry) == hash && match(entry, key)))
            return entry;
    }
}

/* [one thread at a time] Adds an entry that is not in the table. Returns false if out of memory. */
bool wr_hash_table_insert(struct wr_hash_table *table, struct wr_arena *arena, struct wr_hash_entry *entry);

/* [one thread at a time] Removes an entry that is in the table. */
void wr_hash_table_remove(struct wr_hash_table *table, const struct wr_hash_entry *entry);

/* Returns a seed that cannot be guessed, so that names cannot be chosen to collide. */
uint64_t wr_hash_table_seed(void);

#endif
