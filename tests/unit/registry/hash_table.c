#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/arena.h"
#include "registry/hash_table.h"

struct word {
    struct wr_hash_entry entry;
    char text[24];
};

static struct wr_arena arena;
static struct wr_hash_table table;

static bool is_word(const struct wr_hash_entry *entry, const void *key)
{
    return strcmp(((const struct word *)entry)->text, key) == 0;
}

static struct word *add(const char *text, uint64_t hash)
{
    struct word *word = wr_arena_get(&arena, sizeof *word, 8);
    word->entry.hash = hash;
    strcpy(word->text, text);
    cr_assert(wr_hash_table_insert(&table, &arena, &word->entry));
    return word;
}

static struct word *find(const char *text, uint64_t hash)
{
    return (struct word *)wr_hash_table_find(&table, hash, is_word, text);
}

static uint64_t hash_of(const char *text)
{
    return wr_hash_bytes(42, text, strlen(text));
}

Test(hash_table, an_empty_table_finds_nothing)
{
    cr_assert_null(find("a", hash_of("a")));
    cr_assert_null(find("", 0));
}

Test(hash_table, an_inserted_entry_is_found)
{
    struct word *word = add("latency", hash_of("latency"));
    cr_assert_eq(find("latency", hash_of("latency")), word);
    cr_assert_null(find("throughput", hash_of("throughput")));
    cr_assert_eq(table.count, 1);
}

Test(hash_table, all_entries_are_found_after_the_table_has_grown)
{
    enum { WORDS = 5000 };
    char text[24];
    static struct word *words[WORDS];
    for (int i = 0; i < WORDS; i++) {
        snprintf(text, sizeof text, "word %d", i);
        words[i] = add(text, hash_of(text));
    }
    for (int i = 0; i < WORDS; i++) {
        snprintf(text, sizeof text, "word %d", i);
        cr_assert_eq(find(text, hash_of(text)), words[i]);
    }
    cr_assert_null(find("word 5000", hash_of("word 5000")));
    cr_assert_eq(table.count, WORDS);
}

Test(hash_table, half_of_the_slots_stay_empty_so_that_every_search_ends)
{
    char text[24];
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "%d", i);
        add(text, hash_of(text));
        cr_assert_geq(atomic_load(&table.slots)->mask + 1, 2 * table.count);
    }
}

Test(hash_table, entries_with_equal_hashes_are_distinguished_by_key)
{
    struct word *words[100];
    char text[24];
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "%d", i);
        words[i] = add(text, UINT64_MAX);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "%d", i);
        cr_assert_eq(find(text, UINT64_MAX), words[i]);
    }
    cr_assert_null(find("100", UINT64_MAX));
}

Test(hash_table, probing_wraps_around_at_the_last_slot)
{
    struct word *last = add("last", 63), *wrapped = add("wrapped", 63 + 64);
    cr_assert_eq(find("last", 63), last);
    cr_assert_eq(find("wrapped", 63 + 64), wrapped);
    cr_assert_null(find("other", 63));
}

Test(hash_table, a_reader_of_the_old_slots_still_finds_its_entries)
{
    char text[24];
    struct word *first = add("first", hash_of("first"));
    struct wr_hash_table before = {.slots = atomic_load(&table.slots)};
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "%d", i);
        add(text, hash_of(text));
    }
    cr_assert_neq(atomic_load(&table.slots), atomic_load(&before.slots));
    cr_assert_eq((struct word *)wr_hash_table_find(&before, hash_of("first"), is_word, "first"), first);
}

Test(hash_table, every_byte_changes_the_hash_at_every_length)
{
    for (size_t length = 1; length <= 40; length++) {
        char text[41] = "0123456789abcdefghijklmnopqrstuvwxyzABCD";
        uint64_t whole = wr_hash_bytes(1, text, length);
        for (size_t i = 0; i < length; i++) {
            text[i] ^= 1;
            cr_assert_neq(wr_hash_bytes(1, text, length), whole, "length %zu, byte %zu", length, i);
            text[i] ^= 1;
        }
        cr_assert_eq(wr_hash_bytes(1, text, length), whole);
    }
}

Test(hash_table, length_and_seed_change_the_hash)
{
    static const char zeros[40] = {0};
    for (size_t i = 0; i < sizeof zeros; i++)
        for (size_t j = 0; j < i; j++)
            cr_assert_neq(wr_hash_bytes(1, zeros, i), wr_hash_bytes(1, zeros, j), "%zu and %zu zeros", i, j);
    cr_assert_neq(wr_hash_bytes(1, "abc", 3), wr_hash_bytes(2, "abc", 3));
}

Test(hash_table, no_byte_after_the_text_is_read)
{
    for (size_t length = 0; length < 20; length++) {
        char *exact = malloc(length + 1), longer[32];
        memset(exact, 'x', length);
        memset(longer, 'y', sizeof longer);
        memcpy(longer, exact, length);
        /* copied to the end of an allocation, so that a sanitizer reports a read beyond it */
        char *at_end = exact + 1;
        memmove(at_end, exact, length);
        cr_assert_eq(wr_hash_bytes(7, at_end, length), wr_hash_bytes(7, longer, length));
        free(exact);
    }
}

Test(hash_table, hashes_of_similar_names_are_spread)
{
    enum { NAMES = 4096, PLACES = 1024 };
    static unsigned used[PLACES];
    char text[32];
    unsigned most = 0;
    for (int i = 0; i < NAMES; i++) {
        snprintf(text, sizeof text, "my_app.request.%d", i);
        unsigned *place = &used[hash_of(text) % PLACES];
        most = ++*place > most ? *place : most;
    }
    cr_assert_lt(most, 20, "4 names a place are expected, one has %u", most);
}

/* Few different hashes, so that searches pass over others, and around the end of the table. */
Test(hash_table, what_is_removed_is_not_found_and_all_others_are)
{
    enum { WORDS = 40, STEPS = 20000 };
    struct word *words[WORDS];
    bool is_in[WORDS];
    char text[24];
    unsigned random = 1;
    for (int i = 0; i < WORDS; i++) {
        snprintf(text, sizeof text, "word %d", i);
        words[i] = add(text, (uint64_t)(i % 7) * 11 + 50);
        is_in[i] = true;
    }
    for (int step = 0; step < STEPS; step++) {
        random = random * 1103515245 + 12345;
        int i = (int)(random >> 16) % WORDS;
        if (is_in[i])
            wr_hash_table_remove(&table, &words[i]->entry);
        else
            cr_assert(wr_hash_table_insert(&table, &arena, &words[i]->entry));
        is_in[i] = !is_in[i];
        for (int k = 0; k < WORDS; k++) {
            struct word *found = find(words[k]->text, words[k]->entry.hash);
            cr_assert_eq(found, is_in[k] ? words[k] : NULL);
        }
    }
    cr_assert_not_null(table.slots);
    cr_assert_eq(table.slots->mask, 127, "it has not grown by what was removed");
}
