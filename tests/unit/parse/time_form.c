/* time_form: times as programs write them in their logs. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parse/time_form.h"

static bool read_time(const char *form, const char *text, int64_t *time_ns)
{
    struct wr_time_form parsed;
    cr_assert(wr_time_form_compile(form, &parsed), "%s", form);
    return wr_time_form_read(&parsed, text, text + strlen(text), time_ns);
}

static void expect(const char *form, const char *text, int64_t expected_ns)
{
    int64_t time_ns = 0;
    cr_assert(read_time(form, text, &time_ns), "%s: %s", form, text);
    cr_assert_eq(time_ns, expected_ns, "%s: %s: %lld", form, text, (long long)time_ns);
}

static void expect_none(const char *form, const char *text)
{
    int64_t time_ns;
    cr_assert_not(read_time(form, text, &time_ns), "%s: %s", form, text);
}

Test(time_form, numbers_since_1970_have_a_unit)
{
    expect("s", "1795219607.5", INT64_C(1795219607500000000));
    expect("ms", "1795219607500", INT64_C(1795219607500000000));
    expect("us", "-1", -1000);
    expect("ns", "7", 7);
    expect_none("ms", "1.5");
    expect_none("s", "");
}

Test(time_form, formats_with_a_zone_do_not_depend_on_TZ)
{
    setenv("TZ", "America/New_York", 1);
    tzset();
    expect("%d/%b/%Y:%H:%M:%S %z", "21/Nov/2026:12:34:56 +0000", INT64_C(1795264496000000000));
    expect("%d/%b/%Y:%H:%M:%S %z", "21/Nov/2026:12:34:56 -0130", INT64_C(1795269896000000000));
    expect("%Y-%m-%dT%H:%M:%S.%f%z", "2026-11-21T12:34:56.7891Z", INT64_C(1795264496789100000));
    expect("%Y-%m-%dT%H:%M:%S%z", "2026-11-21T12:34:56+01:00", INT64_C(1795260896000000000));
    expect("%d %b %Y %z", "21 Nov 2026 -01", INT64_C(1795222800000000000));
    expect("100%% %Y-%m-%d%z", "100% 1970-01-01Z", 0);
}

Test(time_form, formats_without_a_zone_are_local)
{
    setenv("TZ", "UTC-2", 1);
    tzset();
    expect("%Y-%m-%d %H:%M:%S,%f", "2026-11-21 12:34:56,789", INT64_C(1795257296789000000));
}

static void expect_iso(const char *text, int64_t expected_ns)
{
    int64_t time_ns = 0;
    cr_assert(wr_time_form_read_iso(text, text + strlen(text), &time_ns), "%s", text);
    cr_assert_eq(time_ns, expected_ns, "%s: %lld", text, (long long)time_ns);
}

Test(time_form, iso_8601_may_have_decimals_and_a_zone)
{
    setenv("TZ", "UTC-2", 1);
    tzset();
    expect_iso("2026-11-21T12:34:56Z", INT64_C(1795264496000000000));
    expect_iso("2026-11-21 12:34:56.7891+01:00", INT64_C(1795260896789100000));
    expect_iso("2026-11-21T12:34:56.123456789-0130", INT64_C(1795269896123456789));
    expect_iso("2026-11-21 12:34:56+00", INT64_C(1795264496000000000));
    expect_iso("2026-11-21T12:34:56", INT64_C(1795257296000000000));
    expect_iso("1969-12-31T23:59:59.5Z", -INT64_C(500000000));
    static const char *const wrong[] = {"",
                                        "5",
                                        "2026-11-21",
                                        "2026-11-21T",
                                        "2026-11-21T12:34",
                                        "2026-11-21T12:34:56.",
                                        "2026-11-21T12:34:56.1234567890Z",
                                        "2026-11-21T12:34:56Zx",
                                        "2026-11-21T12:34:56+1",
                                        "2026-11-21T12:34:56+01:0",
                                        "2026-11-21_12:34:56Z",
                                        "2026-02-29T12:34:56Z"};
    int64_t time_ns;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not(wr_time_form_read_iso(wrong[i], wrong[i] + strlen(wrong[i]), &time_ns), "%s", wrong[i]);
}

Test(time_form, days_follow_the_calendar)
{
    expect("%Y-%m-%d%z", "2024-02-29Z", INT64_C(1709164800000000000));
    expect("%Y-%m-%d%z", "2000-02-29Z", INT64_C(951782400000000000));
    static const char *const wrong[] = {"2026-02-29Z", "1900-02-29Z", "2026-04-31Z", "2026-13-01Z",
                                        "2026-00-01Z", "2026-01-00Z", "0000-01-01Z", "9999-01-01Z"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_none("%Y-%m-%d%z", wrong[i]);
}

Test(time_form, texts_that_do_not_follow_the_format_are_no_times)
{
    static const char *const wrong[] = {"",
                                        "2026-11-21",
                                        "2026-11-21 12:34:5",
                                        "2026-11-21 24:00:00",
                                        "2026-11-21 12:60:00",
                                        "2026-11-21 12:34:56 ",
                                        "026-11-21 12:34:56",
                                        "2026/11/21 12:34:56",
                                        "2026-11-2a 12:34:56"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_none("%Y-%m-%d %H:%M:%S", wrong[i]);
    expect_none("%d %b %Y %z", "21 nov 2026 Z");
    expect_none("%d %b %Y %z", "21 Nov 2026 UTC");
    expect_none("%d %b %Y %z", "21 Nov 2026 +1");
    expect_none("%d %b %Y%f", "21 Nov 2026");
}

Test(time_form, forms_that_do_not_exist_or_have_no_date_are_refused)
{
    static const char *const wrong[] = {
        "",      "seconds",   "%",           "%Y",          "%Y-%m",       "%m-%d",
        "%Y-%d", "%Y-%m-%d%", "%Y-%m-%d %q", "%Y-%m-%b-%d", "%Y-%m-%d %Y", "S"};
    struct wr_time_form form;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not(wr_time_form_compile(wrong[i], &form), "%s", wrong[i]);
}
