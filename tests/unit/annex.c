/* The annex of a thread's cache: what it finds, what it must not take for the same, and how it grows. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "annex.h"
#include "registry.h"

enum { NAMES = WR_ANNEX_LARGEST, LENGTH = 16, PAGE = 4096 };

static struct wr_registry registry;
static struct weir_stream *stream, *other;
static struct wr_annex_entry entries[WR_ANNEX_LARGEST];
static struct wr_annex annex;
static char (*names)[LENGTH];

static struct weir_stream *make_stream(const char *name)
{
    struct wr_group_key group = {name, strlen(name)};
    struct wr_stream_key key = {wr_registry_add_group(&registry, &group), NULL, 0};
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
    annex.entries = entries;
}

TestSuite(annex, .init = set_up);

Test(annex, an_empty_one_knows_nothing)
{
    cr_assert_null(wr_annex_find(&annex, stream, "a"));
}

Test(annex, one_without_room_keeps_nothing)
{
    annex.entries = NULL;
    wr_annex_put(&annex, make(stream, "a"), "a");
    cr_assert_null(wr_annex_find(&annex, stream, "a"));
}

Test(annex, a_name_is_found_at_its_address_for_its_stream)
{
    static const char name[] = "latency";
    struct weir_metric *one = make(stream, name), *two = make(other, name);
    wr_annex_put(&annex, one, name);
    cr_assert_eq(wr_annex_find(&annex, stream, name), one);
    cr_assert_null(wr_annex_find(&annex, other, name));
    wr_annex_put(&annex, two, name);
    cr_assert_eq(wr_annex_find(&annex, stream, name), one);
    cr_assert_eq(wr_annex_find(&annex, other, name), two);
}

/* Behind the name's page lies one that must not be touched. */
Test(annex, another_text_at_the_same_address_is_not_found_and_takes_its_place)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    cr_assert_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    char *at = strcpy(pages + PAGE - 8, "latency");
    wr_annex_put(&annex, make(stream, "latency"), at);
    struct weir_metric *longer = make(stream, "latency_of_all");
    for (const char *text = "latenc"; *text; text++) {
        strcpy(at, text);
        cr_assert_null(wr_annex_find(&annex, stream, at), "%s", text);
    }
    wr_annex_put(&annex, longer, at);
    cr_assert_null(wr_annex_find(&annex, stream, at));
    strcpy(at, "lat");
    struct weir_metric *shorter = make(stream, "lat");
    wr_annex_put(&annex, shorter, at);
    cr_assert_eq(wr_annex_find(&annex, stream, at), shorter);
    cr_assert_eq(annex.declined, 0);
    munmap(pages, 2 * PAGE);
}

/* What a signal handler leaves that comes between the two stores. */
Test(annex, an_entry_of_two_halves_is_not_found)
{
    static const char name[] = "latency", late[] = "late";
    struct weir_metric *metric = make(stream, name);
    wr_annex_put(&annex, metric, name);
    for (size_t i = 0; i < WR_ANNEX_LARGEST; i++)
        if (entries[i].metric)
            entries[i].metric = make(stream, late);
    cr_assert_null(wr_annex_find(&annex, stream, name));
}

/* Just as many as there are places, in one region of memory. */
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
        const struct weir_metric *metric = wr_annex_find(&annex, stream, names[i]);
        cr_assert(!metric || metric == metrics[i], "name %zu", i);
        found += metric != NULL;
    }
    return found;
}

/* As a thread does that goes through its names in turn. */
static void put_missing(size_t count, struct weir_metric *const *metrics)
{
    for (size_t i = 0; i < count; i++)
        if (!wr_annex_find(&annex, stream, names[i]))
            wr_annex_put(&annex, metrics[i], names[i]);
}

Test(annex, it_grows_for_many_names_and_finds_them_all)
{
    static struct weir_metric *metrics[NAMES];
    make_names(metrics);
    put_missing(1000, metrics);
    cr_assert_eq(annex.used, WR_ANNEX_SMALLEST);
    cr_assert_eq(find_all(1000, metrics), 1000);
    for (int i = 0; i < 3; i++)
        put_missing(NAMES / 3, metrics);
    cr_assert_eq(annex.used, WR_ANNEX_LARGEST);
    cr_assert_eq(find_all(NAMES / 3, metrics), NAMES / 3);
    put_missing(NAMES, metrics);
    cr_assert_eq(annex.used, WR_ANNEX_LARGEST);
    cr_assert_eq(find_all(NAMES, metrics), NAMES);
    free(names);
}

/* When it grows, some names have the set that they had before: what is left of them there must not hide them.
 * Which names these are goes by the address, so all are tried, as many at a time as it begins with. */
Test(annex, what_was_put_in_before_it_grew_hides_nothing)
{
    static struct weir_metric *metrics[NAMES];
    make_names(metrics);
    for (size_t first = 0; first < NAMES; first += WR_ANNEX_SMALLEST) {
        annex = (struct wr_annex){.entries = memset(entries, 0, sizeof(entries))};
        for (size_t i = 0; i < WR_ANNEX_SMALLEST; i++)
            wr_annex_put(&annex, metrics[first + i], names[first + i]);
        cr_assert_eq(annex.used, WR_ANNEX_SMALLEST);
        for (size_t i = first; annex.used == WR_ANNEX_SMALLEST; i++)
            wr_annex_put(&annex, metrics[(i + NAMES / 2) % NAMES], names[(i + NAMES / 2) % NAMES]);
        for (size_t i = first + WR_ANNEX_WAYS - 1; i < first + WR_ANNEX_SMALLEST; i += WR_ANNEX_WAYS) {
            wr_annex_put(&annex, metrics[i], names[i]);
            cr_assert_eq(wr_annex_find(&annex, stream, names[i]), metrics[i], "name %zu", i);
        }
    }
    free(names);
}
