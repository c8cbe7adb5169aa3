/* Times and names of the file handler: periods, dates in paths, time stamps, old files. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../plugins/file/archive.h"
#include "../../../plugins/file/period.h"
#include "../../../plugins/file/stamp.h"
#include "../../../plugins/file/template.h"
#include "../../support/temp_folder.h"

#define SECONDS INT64_C(1000000000)

enum { HOUR = 3600, DAY = 86400 };

static void set_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static time_t at(const char *text)
{
    struct tm parts = {0};
    cr_assert(strptime(text, "%Y-%m-%d %H:%M:%S", &parts));
    return timegm(&parts);
}

/* Whether a period begins exactly at this time. */
static bool is_boundary(int64_t every_s, const char *text, bool utc)
{
    time_t time = at(text);
    return wr_period_number(every_s * SECONDS, time - 1, utc) !=
               wr_period_number(every_s * SECONDS, time, utc) &&
           wr_period_number(every_s * SECONDS, time + every_s / 2, utc) ==
               wr_period_number(every_s * SECONDS, time, utc);
}

/* ---- Periods --------------------------------------------------------------------------------- */

Test(file_period, divisors_and_multiples_of_a_day_are_allowed)
{
    const int64_t good[] = {1, 60, 900, HOUR, 6 * HOUR, DAY, 2 * DAY, 7 * DAY, 366 * DAY};
    const int64_t bad[] = {-1, 0, 7, 7 * HOUR, DAY + 1, DAY + HOUR};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_assert(wr_period_is_allowed(good[i] * SECONDS), "%d", (int)good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not(wr_period_is_allowed(bad[i] * SECONDS), "%d", (int)bad[i]);
    cr_assert_not(wr_period_is_allowed(SECONDS / 2));
    cr_assert_not(wr_period_is_allowed(SECONDS * 3 / 2));
}

Test(file_period, periods_begin_at_whole_times_of_day)
{
    cr_assert(is_boundary(900, "2026-11-21 10:45:00", true));
    cr_assert(is_boundary(HOUR, "2026-11-21 10:00:00", true));
    cr_assert(is_boundary(6 * HOUR, "2026-11-21 18:00:00", true));
    cr_assert(is_boundary(DAY, "2026-11-21 00:00:00", true));
    cr_assert_not(is_boundary(HOUR, "2026-11-21 10:45:00", true));
    cr_assert_not(is_boundary(DAY, "2026-11-21 12:00:00", true));
}

Test(file_period, a_week_begins_on_monday_also_before_1970)
{
    cr_assert(is_boundary(7 * DAY, "2026-11-23 00:00:00", true));
    cr_assert(is_boundary(7 * DAY, "1969-12-29 00:00:00", true));
    for (int day = 24; day < 30; day++) {
        char text[32];
        snprintf(text, sizeof text, "2026-11-%d 00:00:00", day);
        cr_assert_not(is_boundary(7 * DAY, text, true), "%s", text);
    }
}

Test(file_period, local_days_end_at_local_midnight_also_where_they_have_23_or_25_hours)
{
    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    cr_assert(is_boundary(DAY, "2026-03-28 23:00:00", false)); /* of 23 hours */
    cr_assert(is_boundary(DAY, "2026-03-29 22:00:00", false));
    cr_assert(is_boundary(DAY, "2026-10-24 22:00:00", false)); /* of 25 hours */
    cr_assert(is_boundary(DAY, "2026-10-25 23:00:00", false));
    cr_assert_not(is_boundary(DAY, "2026-10-25 22:00:00", false));
    cr_assert_not(is_boundary(DAY, "2026-03-29 00:00:00", false));
}

/* ---- Dates in paths -------------------------------------------------------------------------- */

static const char *expand(const char *path, const char *time, bool utc)
{
    static char out[PATH_MAX];
    cr_assert(wr_template_expand(path, at(time), utc, out, sizeof out));
    return out;
}

Test(file_template, conversions_are_those_of_strftime)
{
    cr_assert_str_eq(expand("/a/%Y/m-%F.%j.%%x", "2026-01-09 03:04:05", true), "/a/2026/m-2026-01-09.009.%x");
    cr_assert_str_eq(expand("%m%d%H%M%S%y%G%V", "2026-01-09 03:04:05", true), "0109030405262026"
                                                                              "02");
    cr_assert_str_eq(expand("/plain", "2026-01-09 03:04:05", true), "/plain");
}

Test(file_template, local_time_is_that_of_the_zone)
{
    set_zone("XYZ-5");
    cr_assert_str_eq(expand("%d-%H", "2026-01-09 23:00:00", false), "10-04");
    cr_assert_str_eq(expand("%d-%H", "2026-01-09 23:00:00", true), "09-23");
}

Test(file_template, invalid_conversions_are_found)
{
    cr_assert_null(wr_template_find_error("/a/%Y-%m-%d %H:%M:%S %y %j %G %V %F %%b"));
    cr_assert_str_eq(wr_template_find_error("/a/%%%b.x"), "%b.x");
    cr_assert_str_eq(wr_template_find_error("/a/100%"), "%");
    cr_assert_str_eq(wr_template_find_error("/%Ey"), "%Ey");
}

Test(file_template, dates_in_folders_and_names_are_distinguished_from_percent_signs)
{
    cr_assert_not(wr_template_is_dated("/a/100%%"));
    cr_assert(wr_template_is_dated("/a/%%%Y"));
    cr_assert_not(wr_template_has_dated_folders("/a%%/%Y"));
    cr_assert(wr_template_has_dated_folders("/a/%Y/x"));
}

Test(file_template, a_path_that_is_too_long_is_refused)
{
    char out[8];
    cr_assert(wr_template_expand("/a/%Y", 0, true, out, sizeof out));
    cr_assert_not(wr_template_expand("/a/b%Y", 0, true, out, sizeof out));
    cr_assert_not(wr_template_expand("/a/bcdef", 0, true, out, sizeof out));
    cr_assert_not(wr_template_glob("/%Y", out, sizeof out));
}

Test(file_template, names_are_matched_digit_by_digit)
{
    const char *rest = wr_template_match("/a/m-%F.%%", "/a/m-2026-01-09.%.gz");
    cr_assert_str_eq(rest, ".gz");
    cr_assert_null(wr_template_match("/a/m-%F", "/a/m-2026-01-x9"));
    cr_assert_null(wr_template_match("/a/m-%F", "/a/m-2026-01"));
    cr_assert_null(wr_template_match("/a/m", "/a/"));
}

/* ---- Stamps ---------------------------------------------------------------------------------- */

Test(file_stamp, stamps_are_read_back_unchanged_and_sort_by_time)
{
    const int64_t times_us[] = {0, 1, 999999, 1795257619123456, 1795257619123457, 32472144000000000};
    char before[STAMP_LENGTH + 1] = "";
    for (size_t i = 0; i < sizeof times_us / sizeof *times_us; i++) {
        char text[STAMP_LENGTH + 1];
        wr_stamp_format(text, times_us[i]);
        cr_assert_eq(strlen(text), STAMP_LENGTH);
        cr_assert_eq(wr_stamp_parse(text), times_us[i]);
        cr_assert(strcmp(before, text) < 0);
        strcpy(before, text);
    }
}

Test(file_stamp, other_text_is_not_a_stamp)
{
    char text[STAMP_LENGTH + 1];
    wr_stamp_format(text, 1795257619123456);
    for (int i = 0; i < STAMP_LENGTH; i++) {
        char wrong[STAMP_LENGTH + 1];
        strcpy(wrong, text);
        wrong[i] = 'x';
        cr_assert_eq(wr_stamp_parse(wrong), -1, "%s", wrong);
        wrong[i] = '\0';
        cr_assert_eq(wr_stamp_parse(wrong), -1, "%s", wrong);
    }
}

/* ---- Old files ------------------------------------------------------------------------------- */

static char place[PATH_MAX];

static void touch(const char *ending, int64_t age_s)
{
    char path[PATH_MAX + 64];
    struct timespec times[2] = {{.tv_sec = age_s}, {.tv_sec = age_s}};
    snprintf(path, sizeof path, "%s%s", place, ending);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert(fd >= 0 && futimens(fd, times) == 0);
    close(fd);
}

/* Lists the old files of a path in a new folder, whose files are given by their endings. */
static struct archive list(const char *path, bool dated, const char *const *endings)
{
    static struct settings_options options;
    static struct settings settings;
    static char whole[PATH_MAX + 64], current[PATH_MAX + 64];
    struct archive archive;
    for (int i = 0; endings[i]; i++)
        touch(endings[i], 1000 + i);
    snprintf(whole, sizeof whole, "%s%s", place, path);
    snprintf(current, sizeof current, "%s%s", place, dated ? "m-2026" : path);
    options.path = whole;
    settings = (struct settings){.options = &options, .dated = dated};
    cr_assert(wr_archive_list(&archive, &settings, current));
    return archive;
}

static const char *ending_of(const struct archive *archive, size_t i)
{
    return archive->files[i].path + strlen(place);
}

static void make_place(void)
{
    snprintf(place, sizeof place - 1, "%s", path_in_folder("[x]*?\\"));
    cr_assert_eq(mkdir(place, 0700), 0);
    strcat(place, "/");
}

Test(file_archive, a_file_and_its_compressed_form_are_one_entry_and_the_oldest_is_first, .init = make_place,
     .fini = remove_folder)
{
    struct archive archive =
        list("m", false,
             (const char *[]){"m", "m.20260102T000000.000000Z", "m.20260101T000000.000000Z.gz",
                              "m.20260102T000000.000000Z.gz.tmp", "m.20250101T000000.000000Z.gz.tmp", "m.1",
                              "m.gz", "m.20260102T000000.000000Z.bz2", "mm", NULL});
    cr_assert_eq(archive.count, 3);
    cr_assert_str_eq(ending_of(&archive, 0), "m.20250101T000000.000000Z");
    cr_assert_str_eq(ending_of(&archive, 1), "m.20260101T000000.000000Z");
    cr_assert_str_eq(ending_of(&archive, 2), "m.20260102T000000.000000Z");
    cr_assert(!archive.files[0].has_original && !archive.files[0].has_gz && archive.files[0].has_partial);
    cr_assert(!archive.files[1].has_original && archive.files[1].has_gz && !archive.files[1].has_partial);
    cr_assert(archive.files[2].has_original && !archive.files[2].has_gz && archive.files[2].has_partial);
    wr_archive_fini(&archive);
}

Test(file_archive, files_of_other_dates_are_as_old_as_their_last_write, .init = make_place,
     .fini = remove_folder)
{
    struct archive archive = list("m-%Y", true,
                                  (const char *[]){"m-2025", "m-2026", "m-2024.gz",
                                                   "m-2026.20010909T014640.000000Z", "m-202x", "m-", NULL});
    cr_assert_eq(archive.count, 3);
    cr_assert_str_eq(ending_of(&archive, 0), "m-2025");
    cr_assert_str_eq(ending_of(&archive, 1), "m-2024");
    cr_assert_str_eq(ending_of(&archive, 2), "m-2026.20010909T014640.000000Z");
    wr_archive_fini(&archive);
}

Test(file_archive, the_oldest_are_deleted_with_their_compressed_forms, .init = make_place,
     .fini = remove_folder)
{
    const char *failed_path = NULL;
    struct archive archive =
        list("m", false,
             (const char *[]){"m", "m.20260101T000000.000000Z", "m.20260101T000000.000000Z.gz",
                              "m.20260101T000000.000000Z.gz.tmp", "m.20260102T000000.000000Z", NULL});
    cr_assert_eq(wr_archive_trim(&archive, 1, &failed_path), 0);
    wr_archive_fini(&archive);
    archive = list("m", false, (const char *[]){NULL});
    cr_assert_eq(archive.count, 1);
    cr_assert_str_eq(ending_of(&archive, 0), "m.20260102T000000.000000Z");
    cr_assert_eq(wr_archive_trim(&archive, 1, &failed_path), 0);
    wr_archive_fini(&archive);
    archive = list("m", false, (const char *[]){NULL});
    cr_assert_eq(archive.count, 1);
    wr_archive_fini(&archive);
}
