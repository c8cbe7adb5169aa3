#include "text/common.h"
#include "config/common_options.h"
#include "options_fixture.h"

static struct wr_common_options common_options;

static void set_up(void)
{
    struct wr_options_fill fill = make_fill(wr_common_options_table(), &common_options);
    cr_assert(wr_options_set_defaults(&fill, &error), "%s", error.text);
}

static bool set(const char *text)
{
    struct wr_options_fill fill = make_fill(wr_common_options_table(), &common_options);
    return fill_members(&fill, 1, NULL, text);
}

TestSuite(common_options, .init = set_up, .fini = free_options_fixture);

Test(common_options, the_table_is_valid)
{
    struct wr_options_table table = wr_common_options_table();
    cr_assert(wr_options_check_table(&table, &error), "%s", error.text);
}

Test(common_options, defaults_are_as_documented)
{
    struct wr_lane_settings settings = wr_common_options_settings(&common_options);
    cr_assert(!settings.sync);
    cr_assert_eq(settings.queue_bytes, 1 << 20);
    cr_assert_eq(settings.overflow, WR_OVERFLOW_BLOCK);
    cr_assert_eq(settings.block_timeout_ns, WR_NS_PER_S);
    cr_assert_eq(settings.batch, 5000);
    cr_assert_eq(settings.batch_bytes, 1 << 20);
    cr_assert_eq(settings.linger_ns, 0);
    cr_assert_eq(settings.retry_min_ns, 500 * WR_NS_PER_MS);
    cr_assert_eq(settings.retry_max_ns, 30 * WR_NS_PER_S);
}

Test(common_options, each_option_reaches_the_lane)
{
    cr_assert(set("{\"delivery\": \"sync\", \"queue\": \"16MiB\", \"overflow\": \"drop_newest\", "
                  "\"block_timeout\": \"2s\","
                  "\"batch\": 7, \"batch_bytes\": \"2KiB\", \"linger\": \"3s\", \"retry_min\": \"4ms\", "
                  "\"retry_max\": \"5s\"}"),
              "%s", error.text);
    struct wr_lane_settings settings = wr_common_options_settings(&common_options);
    cr_assert(settings.sync);
    cr_assert_eq(settings.queue_bytes, 16 << 20);
    cr_assert_eq(settings.overflow, WR_OVERFLOW_DROP_NEWEST);
    cr_assert_eq(settings.block_timeout_ns, 2 * WR_NS_PER_S);
    cr_assert_eq(settings.batch, 7);
    cr_assert_eq(settings.batch_bytes, 2048);
    cr_assert_eq(settings.linger_ns, 3 * WR_NS_PER_S);
    cr_assert_eq(settings.retry_min_ns, 4 * WR_NS_PER_MS);
    cr_assert_eq(settings.retry_max_ns, 5 * WR_NS_PER_S);
    cr_assert(set("{\"overflow\": \"drop_oldest\", \"delivery\": \"async\"}"));
    settings = wr_common_options_settings(&common_options);
    cr_assert_eq(settings.overflow, WR_OVERFLOW_DROP_OLDEST);
    cr_assert(!settings.sync);
}

Test(common_options, values_outside_each_range_are_refused)
{
    static const struct {
        const char *name, *first, *last, *below, *above;
    } ranges[] = {
        {"queue", "\"1KiB\"", "\"1TiB\"", "\"1023B\"", "\"1025GiB\""},
        {"block_timeout", "\"0s\"", "\"1d\"", "\"-1s\"", "\"25h\""},
        {"batch", "1", "1000000", "0", "1000001"},
        {"batch_bytes", "\"1KiB\"", "\"1GiB\"", "\"1023B\"", "\"1025MiB\""},
        {"linger", "\"0s\"", "\"1h\"", "\"-1s\"", "\"3601s\""},
        {"retry_min", "\"1ms\"", "\"1h\"", "\"999us\"", "\"3601s\""},
        {"retry_max", "\"1ms\"", "\"1d\"", "\"0s\"", "\"25h\""},
    };
    for (size_t i = 0; i < WR_COUNT_OF(ranges); i++) {
        const char *const values[] = {ranges[i].first, ranges[i].last, ranges[i].below, ranges[i].above};
        for (size_t j = 0; j < 4; j++) {
            char text[100];
            snprintf(text, sizeof text, "{\"%s\": %s}", ranges[i].name, values[j]);
            cr_assert_eq(set(text), j < 2, "%s: %s", text, error.text);
        }
    }
}

Test(common_options, format_is_not_a_common_option)
{
    struct wr_options_table table = wr_common_options_table();
    cr_assert_null(wr_options_find(&table, "format"));
}
