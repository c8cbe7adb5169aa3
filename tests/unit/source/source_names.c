#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "registry/registry.h"
#include "source/source_names.h"

static struct source_names_test {
    struct wr_source_names names;
} test;

static struct weir_metric *const some = (struct weir_metric *)&test; /* never read */

static struct weir_metric *find(const char *group, const char *key, const char *value, const char *name)
{
    const weir_label label = {key, value};
    cr_assert(wr_source_names_begin(&test.names, group, &label, key != NULL, false));
    return wr_source_names_find(&test.names, name);
}

static void fini(void)
{
    wr_source_names_fini(&test.names);
}

TestSuite(source_names, .fini = fini);

Test(source_names, a_name_is_found_after_it_was_added)
{
    cr_assert_null(find("g", "k", "v", "n"));
    cr_assert(wr_source_names_add(&test.names, some, NULL, false));
    cr_assert_eq(find("g", "k", "v", "n"), some);
    cr_assert_eq(test.names.count, 1);
}

Test(source_names, parts_are_not_confused_with_one_another)
{
    cr_assert_null(find("g", "k", "v", "n"));
    cr_assert(wr_source_names_add(&test.names, some, NULL, false));
    cr_assert_null(find("g", "k", "vn", ""));
    cr_assert_null(find("gk", "", "v", "n"));
    cr_assert_null(find("g", NULL, NULL, "n"));
    cr_assert_null(find("g", "k", "v", "nn"));
    cr_assert_null(find("g", "k", "w", "n"));
    cr_assert_null(find("g", "k", "v\nn", "n"));
}

Test(source_names, totals_have_series_of_their_own)
{
    cr_assert(wr_source_names_begin(&test.names, "g", NULL, 0, true));
    cr_assert_null(wr_source_names_find(&test.names, "n"));
    cr_assert(wr_source_names_add(&test.names, some, NULL, false));
    cr_assert_null(find("g", NULL, NULL, "n"));
    cr_assert(wr_source_names_begin(&test.names, "g", NULL, 0, true));
    cr_assert_eq(wr_source_names_find(&test.names, "n"), some);
}

Test(source_names, many_names_of_one_record_are_found)
{
    char name[16];
    cr_assert(wr_source_names_begin(&test.names, "g", NULL, 0, false));
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        cr_assert_null(wr_source_names_find(&test.names, name));
        cr_assert(wr_source_names_add(&test.names, (struct weir_metric *)((char *)&test + i), NULL, false));
    }
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        cr_assert_eq(wr_source_names_find(&test.names, name), (struct weir_metric *)((char *)&test + i));
    }
}

Test(source_names, what_is_not_looked_up_for_some_periods_is_forgotten)
{
    static struct weir_metric idle = {.series = 7}, busy = {.series = 8}, stays = {.series = 9};
    uint64_t left = 0;
    uint32_t count, *ids;
    cr_assert_null(find("g", NULL, NULL, "idle"));
    cr_assert(wr_source_names_add(&test.names, &idle, &left, false));
    cr_assert_null(find("g", NULL, NULL, "busy"));
    cr_assert(wr_source_names_add(&test.names, &busy, NULL, false));
    cr_assert_null(find("g", NULL, NULL, "stays"));
    cr_assert(wr_source_names_add(&test.names, &stays, NULL, true));
    for (int i = 0; i < 2; i++)
        cr_assert_null(wr_source_names_expire(&test.names, 2, &count));
    cr_assert_eq(find("g", NULL, NULL, "busy"), &busy);
    ids = wr_source_names_expire(&test.names, 2, &count);
    cr_assert(ids && count == 1 && ids[0] == 7 && left == 1);
    free(ids);
    cr_assert_null(find("g", NULL, NULL, "idle"));
    cr_assert_eq(find("g", NULL, NULL, "busy"), &busy);
    cr_assert_eq(find("g", NULL, NULL, "stays"), &stays);
    cr_assert_eq(test.names.count, 2);
}

/* Adds a series of a stream with two labels. */
static void add_labeled(const char *host, const char *id)
{
    static struct weir_metric *metrics[8];
    static struct weir_stream streams[8];
    static weir_label labels[8][2];
    static size_t used;
    char name[8];
    labels[used][0] = (weir_label){"host", host};
    labels[used][1] = (weir_label){"id", id};
    streams[used].labels = labels[used];
    streams[used].label_count = 2;
    metrics[used] = calloc(1, sizeof *metrics[used]);
    cr_assert(metrics[used]);
    metrics[used]->stream = &streams[used];
    snprintf(name, sizeof name, "n%zu", used);
    cr_assert_null(find("g", NULL, NULL, name));
    cr_assert(wr_source_names_add(&test.names, metrics[used], NULL, false));
    used++;
}

Test(source_names, the_label_with_the_most_values_is_found)
{
    uint32_t values;
    add_labeled("a", "x");
    add_labeled("a", "x");
    cr_assert_null(wr_source_names_widest(&test.names, &values), "none has two values");
    add_labeled("b", "x");
    cr_assert_str_eq(wr_source_names_widest(&test.names, &values), "host");
    cr_assert_eq(values, 2);
    add_labeled("b", "y");
    add_labeled("a", "z");
    cr_assert_str_eq(wr_source_names_widest(&test.names, &values), "id");
    cr_assert_eq(values, 3);
}
