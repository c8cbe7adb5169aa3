/* The second level of a thread's name cache: lookups, texts that must not match, growth. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "producer/name_cache_l2.h"
#include "registry/registry.h"

enum { NAMES = WR_NAME_CACHE_L2_LARGEST, LENGTH = 16, PAGE = 4096 };

static struct wr_registry registry;
static struct weir_stream *stream, *other;
static struct wr_name_cache_l2_entry entries[WR_NAME_CACHE_L2_LARGEST];
static struct wr_name_cache_l2 cache_l2;
static char (*names)[LENGTH];

static struct weir_stream *make_stream(const char *name)
{
    struct wr_group_key group = {name, strlen(name)};
    struct wr_stream_key key = {.group = wr_registry_add_group(&registry, &group)};
    return wr_registry_add_stream(&registry, &key);
}

static struct weir_metric *make(struct weir_stream *of, const char *name)
{
    struct wr_metric_key key = {of, name, strlen(name), 0};
    struct weir_metric *metric = wr_registry_add_metric(&registry, &key);
    cr_assert(metric);
    return metric;
}

static void set_up(void)
{
    cr_assert(wr_registry_init(&registry));
    stream = make_stream("one");
    other = make_stream("other");
    cache_l2.entries = entries;
}

TestSuite(name_cache_l2, .init = set_up);

Test(name_cache_l2, an_empty_cache_finds_nothing)
{
    cr_assert_null(wr_name_cache_l2_find(&cache_l2, stream, "a"));
}

Test(name_cache_l2, a_cache_without_entries_stores_nothing)
{
    cache_l2.entries = NULL;
    wr_name_cache_l2_put(&cache_l2, make(stream, "a"), "a");
    cr_assert_null(wr_name_cache_l2_find(&cache_l2, stream, "a"));
}

Test(name_cache_l2, a_name_is_found_at_its_address_for_its_stream)
{
    static const char name[] = "latency";
    struct weir_metric *one = make(stream, name), *two = make(other, name);
    wr_name_cache_l2_put(&cache_l2, one, name);
    cr_assert_eq(wr_name_cache_l2_find(&cache_l2, stream, name), one);
    cr_assert_null(wr_name_cache_l2_find(&cache_l2, other, name));
    wr_name_cache_l2_put(&cache_l2, two, name);
    cr_assert_eq(wr_name_cache_l2_find(&cache_l2, stream, name), one);
    cr_assert_eq(wr_name_cache_l2_find(&cache_l2, other, name), two);
}

/* The page after the name's page is inaccessible. */
Test(name_cache_l2, another_text_at_the_same_address_is_not_found_and_replaces_it)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    cr_assert_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    char *at = strcpy(pages + PAGE - 8, "latency");
    wr_name_cache_l2_put(&cache_l2, make(stream, "latency"), at);
    struct weir_metric *longer = make(stream, "latency_of_all");
    for (const char *text = "latenc"; *text; text++) {
        strcpy(at, text);
        cr_assert_null(wr_name_cache_l2_find(&cache_l2, stream, at), "%s", text);
    }
    wr_name_cache_l2_put(&cache_l2, longer, at);
    cr_assert_null(wr_name_cache_l2_find(&cache_l2, stream, at));
    strcpy(at, "lat");
    struct weir_metric *shorter = make(stream, "lat");
    wr_name_cache_l2_put(&cache_l2, shorter, at);
    cr_assert_eq(wr_name_cache_l2_find(&cache_l2, stream, at), shorter);
    cr_assert_eq(cache_l2.declined, 0);
    munmap(pages, 2 * PAGE);
}

/* The state between the two stores of an entry, as a signal handler sees it. */
Test(name_cache_l2, a_half_written_entry_is_not_found)
{
    static const char name[] = "latency", late[] = "late";
    struct weir_metric *metric = make(stream, name);
    wr_name_cache_l2_put(&cache_l2, metric, name);
    for (size_t i = 0; i < WR_NAME_CACHE_L2_LARGEST; i++)
        if (entries[i].metric)
            entries[i].metric = make(stream, late);
    cr_assert_null(wr_name_cache_l2_find(&cache_l2, stream, name));
}

/* As many names as there are entries, in one block of memory. */
static void make_names(struct weir_metric **metrics)
{
    names = aligned_alloc(NAMES * LENGTH, NAMES * LENGTH);
    cr_assert(names);
    for (size_t i = 0; i < NAMES; i++) {
        snprintf(names[i], LENGTH, "name_%zu", i);
        metrics[i] = make(stream, names[i]);
    }
}

static size_t find_all(size_t count, struct weir_metric *const *metrics)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weir_metric *metric = wr_name_cache_l2_find(&cache_l2, stream, names[i]);
        cr_assert(!metric || metric == metrics[i], "name %zu", i);
        found += metric != NULL;
    }
    return found;
}

/* As by a thread that uses its names in turn. */
static void put_missing(size_t count, struct weir_metric *const *metrics)
{
    for (size_t i = 0; i < count; i++)
        if (!wr_name_cache_l2_find(&cache_l2, stream, names[i]))
            wr_name_cache_l2_put(&cache_l2, metrics[i], names[i]);
}

Test(name_cache_l2, it_grows_for_many_names_and_finds_them_all)
{
    static struct weir_metric *metrics[NAMES];
    make_names(metrics);
    put_missing(1000, metrics);
    cr_assert_eq(cache_l2.used, WR_NAME_CACHE_L2_SMALLEST);
    cr_assert_eq(find_all(1000, metrics), 1000);
    for (int i = 0; i < 3; i++)
        put_missing(NAMES / 3, metrics);
    cr_assert_eq(cache_l2.used, WR_NAME_CACHE_L2_LARGEST);
    cr_assert_eq(find_all(NAMES / 3, metrics), NAMES / 3);
    put_missing(NAMES, metrics);
    cr_assert_eq(cache_l2.used, WR_NAME_CACHE_L2_LARGEST);
    cr_assert_eq(find_all(NAMES, metrics), NAMES);
    free(names);
}

/* After growth some names map to the set that they had before; stale entries there must not hide them. Which
 * names these are depends on their addresses, so all are tried, as many at a time as the initial size holds. */
Test(name_cache_l2, entries_from_before_a_growth_hide_nothing)
{
    static struct weir_metric *metrics[NAMES];
    make_names(metrics);
    for (size_t first = 0; first < NAMES; first += WR_NAME_CACHE_L2_SMALLEST) {
        cache_l2 = (struct wr_name_cache_l2){.entries = memset(entries, 0, sizeof(entries))};
        for (size_t i = 0; i < WR_NAME_CACHE_L2_SMALLEST; i++)
            wr_name_cache_l2_put(&cache_l2, metrics[first + i], names[first + i]);
        cr_assert_eq(cache_l2.used, WR_NAME_CACHE_L2_SMALLEST);
        for (size_t i = first; cache_l2.used == WR_NAME_CACHE_L2_SMALLEST; i++)
            wr_name_cache_l2_put(&cache_l2, metrics[(i + NAMES / 2) % NAMES], names[(i + NAMES / 2) % NAMES]);
        for (size_t i = first + WR_NAME_CACHE_L2_WAYS - 1; i < first + WR_NAME_CACHE_L2_SMALLEST;
             i += WR_NAME_CACHE_L2_WAYS) {
            wr_name_cache_l2_put(&cache_l2, metrics[i], names[i]);
            cr_assert_eq(wr_name_cache_l2_find(&cache_l2, stream, names[i]), metrics[i], "name %zu", i);
        }
    }
    free(names);
}
