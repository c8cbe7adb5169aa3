/* The series of the prometheus handler: what a page is made of while values come in. */
#include "text/buffer.h"

#include "../../../plugins/prometheus/series_table.h"
#include "../format/batch_fixture.h"
#include "keeper_fixture.h"

static const weir_label host[] = {{"host", "a"}}, other_host[] = {{"host", "b"}};
static const weir_label dot[] = {{"a.b", "v"}}, line[] = {{"a_b", "v"}};
static struct series_table table = {.rules = {.base_units = true}, .keeper = &fixture_keeper};
static struct series_snapshot snapshot;

/* Adds a value of a series, that came at a time, to the table. */
static void put_at(int64_t time_ns, uint32_t series, double value)
{
    clear_batch();
    add_double(series, value);
    cr_assert_eq(series_table_put(&table, fixture_batch(), time_ns), 1);
}

static void put(uint32_t series, double value)
{
    put_at(1, series, value);
}

static void take(void)
{
    cr_assert(series_table_take_snapshot(&table, &snapshot));
}

/* The lines of a page without comments. */
static const char *write_lines(void)
{
    static char lines[1000];
    struct wr_buffer page = {0};
    *lines = '\0';
    wr_exposition_write(&page, snapshot.entries, snapshot.count, WR_EXPOSITION_TEXT);
    wr_buffer_put_char(&page, '\0');
    for (char *rest, *text = strtok_r(page.data, "\n", &rest); text; text = strtok_r(NULL, "\n", &rest))
        if (*text != '#')
            strcat(strcat(lines, text), "\n");
    wr_buffer_fini(&page);
    return lines;
}

static const char *page(void)
{
    take();
    const char *lines = write_lines();
    series_table_release_snapshot(&table, &snapshot);
    return lines;
}

static void finish(void)
{
    series_snapshot_fini(&snapshot);
    series_table_fini(&table);
    cr_assert_eq(fixture_kept, 0);
}

TestSuite(series_table, .fini = finish);

Test(series_table, a_snapshot_keeps_its_values_while_others_come)
{
    uint32_t first = add_series("g", "a", NULL, 0), second = add_series("g", "b", NULL, 0);
    put(first, 1);
    take();
    put(first, 2);
    put(second, 3);
    cr_assert_str_eq(write_lines(), "g_a 1\n");
    series_table_release_snapshot(&table, &snapshot);
    cr_assert_str_eq(page(), "g_a 2\ng_b 3\n");
}

Test(series_table, a_series_that_has_ended_is_released_when_no_snapshot_has_it)
{
    uint32_t series = add_series("g", "a", NULL, 0), other = add_series("g", "b", NULL, 0);
    put(series, 1);
    put(other, 2);
    cr_assert_eq(fixture_kept, 2);
    take();
    clear_batch();
    add_double(series, 3)->flags |= WEIR_SAMPLE_ENDED;
    cr_assert_eq(series_table_put(&table, fixture_batch(), 1), 1);
    cr_assert_eq(table.count, 1);
    cr_assert_eq(fixture_kept, 2);
    cr_assert_str_eq(write_lines(), "g_a 1\ng_b 2\n");
    series_table_release_snapshot(&table, &snapshot);
    cr_assert_eq(fixture_kept, 1);
    cr_assert_str_eq(page(), "g_b 2\n");
}

Test(series_table, a_snapshot_keeps_its_names_while_labels_and_units_change)
{
    uint32_t series = add_series("g", "a", NULL, 0), other = add_series("g", "a", NULL, 0);
    fixture.series[other].id = series; /* another description of the same one */
    fixture.series[other].unit = "s";
    set_labels(host, 1);
    put(series, 1);
    take();
    put(other, 2);
    set_labels(other_host, 1);
    put(other, 3);
    cr_assert_str_eq(write_lines(), "g_a{host=\"a\"} 1\n");
    series_table_release_snapshot(&table, &snapshot);
    cr_assert_str_eq(page(), "g_a_seconds{host=\"b\"} 3\n");
}

Test(series_table, label_sets_that_a_page_keeps_apart_stay_so_when_one_has_expired)
{
    uint32_t first = add_series("g", "a", dot, 1), second = add_series("g", "a", line, 1);
    put_at(1, first, 1);
    put_at(3, second, 2);
    cr_assert_str_eq(page(),
                     "g_a{a_b=\"v\",weir_labels=\"a.b=v\"} 1\ng_a{a_b=\"v\",weir_labels=\"a_b=v\"} 2\n");
    series_table_expire(&table, 2);
    cr_assert_str_eq(page(), "g_a{a_b=\"v\",weir_labels=\"a_b=v\"} 2\n");
}
