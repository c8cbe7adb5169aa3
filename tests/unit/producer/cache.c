/* The thread's name cache: every alignment and length, and texts that must not match. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "producer/cache.h"

enum { LONGEST = 40, PAGE = 4096 };

static struct wr_cache cache = {.open = true};
static struct weir_stream stream, other;

/* A series as the registry would create it. */
static struct weir_metric *make(const char *name)
{
    struct weir_metric *metric = calloc(1, sizeof *metric + strlen(name) + 1);
    cr_assert(metric);
    metric->stream = &stream;
    strcpy(metric->name, name);
    return metric;
}

static struct weir_metric *find(const char *name)
{
    return wr_cache_find(wr_cache_place(&cache, &stream, name), &stream, name);
}

static void put(struct weir_metric *metric, const char *at)
{
    struct wr_cache_entry *place = wr_cache_place(&cache, &stream, at);
    place->metric = NULL;
    if (wr_cache_wants(&cache, place, WR_CACHE_PATIENCE))
        wr_cache_put(&cache, place, metric, at);
}

static const char *letters(size_t length)
{
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return all + sizeof all - 1 - length;
}

Test(cache, an_empty_cache_finds_nothing)
{
    cr_assert_null(find("a"));
}

Test(cache, a_name_is_found_at_its_address)
{
    static const char name[] = "latency";
    struct weir_metric *metric = make(name);
    put(metric, name);
    cr_assert_eq(find(name), metric);
    cr_assert_null(wr_cache_find(wr_cache_place(&cache, &stream, name), &other, name));
    free(metric);
}

/* The address stays; the text changes in any one byte, or becomes shorter or longer. */
Test(cache, another_text_at_the_same_address_is_not_found)
{
    _Alignas(64) char room[2 * LONGEST];
    for (size_t offset = 0; offset < 8; offset++) {
        for (size_t length = 1; length < LONGEST; length++) {
            char *at = strcpy(room + offset, letters(length));
            struct weir_metric *metric = make(at);
            put(metric, at);
            cr_assert_eq(find(at), metric, "offset %zu, length %zu", offset, length);
            for (size_t i = 0; i < length; i++) {
                at[i] ^= 1;
                cr_assert_null(find(at), "offset %zu, length %zu, byte %zu", offset, length, i);
                at[i] ^= 1;
                char was = at[i];
                at[i] = '\0';
                cr_assert_null(find(at), "offset %zu, length %zu, cut at %zu", offset, length, i);
                at[i] = was;
            }
            strcat(at, "x");
            cr_assert_null(find(at), "offset %zu, length %zu, longer", offset, length);
            free(metric);
        }
    }
}

/* Bytes before and after the text are not compared. */
Test(cache, the_bytes_around_a_name_may_change)
{
    _Alignas(64) char room[64];
    struct weir_metric *metric = make("name");
    memset(room, 'x', sizeof room);
    strcpy(room + 3, "name");
    put(metric, room + 3);
    memset(room, 'y', 3);
    room[8] = 'z';
    cr_assert_eq(find(room + 3), metric);
    free(metric);
}

/* The page after the name's page is inaccessible, for the name and for the text that replaces it. */
Test(cache, a_name_may_end_at_the_end_of_a_mapping)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    cr_assert_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    for (size_t length = 1; length < LONGEST; length++) {
        char *at = strcpy(pages + PAGE - length - 1, letters(length));
        char text[2 * LONGEST];
        snprintf(text, sizeof text, "%s%s", at, letters(LONGEST / 2));
        struct weir_metric *metric = make(at), *longer = make(text);
        put(metric, at);
        cr_assert_eq(find(at), metric);
        put(longer, at);
        cr_assert_null(find(at));
        free(metric);
        free(longer);
    }
    munmap(pages, 2 * PAGE);
}

Test(cache, an_occupied_slot_is_replaced_only_occasionally)
{
    static char name[] = "one";
    struct weir_metric *one = make("one"), *two = make("two");
    struct wr_cache_entry *place = wr_cache_place(&cache, &stream, name);
    put(one, name);
    for (int i = 1; i < WR_CACHE_PATIENCE; i++)
        cr_assert_not(wr_cache_wants(&cache, place, WR_CACHE_PATIENCE), "time %d", i);
    cr_assert_eq(find(name), one);
    cr_assert(wr_cache_wants(&cache, place, WR_CACHE_PATIENCE));
    strcpy(name, "two");
    wr_cache_put(&cache, place, two, name);
    cr_assert_eq(find(name), two);
    free(one);
    free(two);
}

Test(cache, a_closed_cache_stores_nothing)
{
    static const char name[] = "latency";
    struct weir_metric *metric = make(name);
    cache.open = false;
    put(metric, name);
    cr_assert_null(find(name));
    free(metric);
}
