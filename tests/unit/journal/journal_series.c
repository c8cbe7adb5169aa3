#include <criterion/criterion.h>
#include <stdio.h>

#include "../../support/temp_folder.h"
#include "journal/journal_series.h"

static struct wr_journal_series series;
static struct wr_journal_map maps[20];
static struct wr_journal_views views;

static void setup(void)
{
    path_in_folder("");
    series = (struct wr_journal_series){.folder = folder};
}

static void teardown(void)
{
    wr_journal_views_fini(&views);
    for (size_t i = 0; i < 20; i++)
        wr_mapped_file_close(&maps[i]);
    wr_mapped_file_close(&series.map);
    remove_folder();
}

TestSuite(journal_series, .init = setup, .fini = teardown);

static void put(uint32_t id, const char *name, const char *unit, const char *help, size_t labels)
{
    const weir_label label[] = {{"host", "a"}, {"route", "/x"}};
    const weir_series view = {.id = id,
                              .group = "my_app",
                              .name = name,
                              .unit = unit,
                              .help = help,
                              .labels = label,
                              .label_count = labels,
                              .cumulative = id % 2,
                              .foreign = id % 3 == 1};
    cr_assert_eq(wr_journal_series_put(&series, &view, false), 0);
}

static void read_all(void)
{
    size_t count = 0;
    uint64_t *numbers = wr_mapped_file_list(folder, WR_JOURNAL_SERIES_KIND, &count);
    cr_assert(numbers && count < 20);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(wr_mapped_file_open(&maps[i], folder, WR_JOURNAL_SERIES_KIND, (uint32_t)numbers[i], false),
                     0);
        cr_assert(wr_journal_views_add(&views, &maps[i]));
    }
    free(numbers);
}

static weir_series get(uint32_t id)
{
    static struct wr_series_codec_room room;
    weir_series view;
    cr_assert(wr_journal_views_get(&views, id, &view, &room));
    return view;
}

Test(journal_series, a_reader_finds_the_series_that_were_written)
{
    put(0, "latency", "ms", NULL, 2);
    put(1, "calls", NULL, "how often", 0);
    read_all();
    weir_series latency = get(0), calls;
    cr_assert_str_eq(latency.group, "my_app");
    cr_assert_str_eq(latency.name, "latency");
    cr_assert_str_eq(latency.unit, "ms");
    cr_assert_null(latency.help);
    cr_assert_not(latency.cumulative);
    cr_assert_not(latency.foreign);
    cr_assert_eq(latency.label_count, 2);
    cr_assert_str_eq(latency.labels[1].value, "/x");
    calls = get(1);
    cr_assert_str_eq(calls.help, "how often");
    cr_assert_null(calls.unit);
    cr_assert(calls.cumulative);
    cr_assert(calls.foreign);
    cr_assert_not(views.damaged);
}

/* What a process makes of its summaries is no name in use by itself in the next one. */
Test(journal_series, a_reader_does_not_find_parts_of_summaries)
{
    struct wr_series_codec_room room;
    weir_series view = {.id = 1, .group = "my_app", .name = "latency.count", .cumulative = true};
    put(0, "latency", "ms", NULL, 2);
    cr_assert_eq(wr_journal_series_put(&series, &view, true), 0);
    put(2, "calls", NULL, "how often", 0);
    read_all();
    cr_assert_not(wr_journal_views_get(&views, 1, &view, &room));
    cr_assert_str_eq(get(2).name, "calls");
    cr_assert_not(views.damaged);
}

Test(journal_series, the_last_description_takes_precedence)
{
    put(0, "latency", NULL, NULL, 0);
    put(1, "calls", NULL, NULL, 0);
    put(0, "latency", "s", NULL, 0);
    read_all();
    cr_assert_eq(views.count, 2);
    cr_assert_str_eq(get(0).unit, "s");
}

Test(journal_series, series_continue_in_further_files)
{
    enum { MANY = 9000 };
    char name[32];
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "name %u", i);
        put(i, name, NULL, NULL, 1);
    }
    cr_assert_gt(series.files, 1);
    cr_assert_eq(series.known, MANY);
    read_all();
    cr_assert_eq(views.count, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "name %u", i);
        cr_assert_str_eq(get(i).name, name);
    }
}

Test(journal_series, unpublished_series_are_not_visible)
{
    put(0, "latency", NULL, NULL, 0);
    uint64_t used = ((struct wr_journal_series_head *)series.map.memory)->used;
    put(1, "calls", NULL, NULL, 0);
    ((struct wr_journal_series_head *)series.map.memory)->used = used;
    read_all();
    cr_assert_eq(views.count, 1);
    cr_assert_not(views.damaged);
}

Test(journal_series, an_id_out_of_order_ends_the_list)
{
    put(0, "latency", NULL, NULL, 0);
    put(5, "calls", NULL, NULL, 0);
    put(1, "more", NULL, NULL, 0);
    read_all();
    cr_assert_eq(views.count, 1);
    cr_assert(views.damaged);
}
