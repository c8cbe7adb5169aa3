/* What sources hear about what they have added: weir_intake.mark and settled, through the public API. */

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/source.h>
#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"
#include "plugins/scripted_source.h"

enum { PATIENCE_MS = 60000, WAIT_MS = 1 };

static struct source_script *script;
static char plugin[4096], folder[] = "/tmp/weir-marks-XXXXXX";

/* What the test wants of the source's thread, and what that has seen. */
static _Atomic int wanted, added, answered, state;

static const weir_intake *intake_of(const weir_host *host)
{
    return host->service(host, WEIR_SERVICE_INTAKE);
}

static void add(const weir_host *host)
{
    const weir_typed_value values[] = {{"a", WEIR_DOUBLE(1)}};
    const weir_record record = {.size = sizeof record, .values = values, .count = 1};
    cr_assert_eq(intake_of(host)->add(host, &record), WEIR_ADD_TAKEN);
}

/* Adds as many values as are wanted, and asks for the mark after them again and again. */
static void run(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    const weir_intake *intake = intake_of(host);
    uint64_t mark = intake->mark(host);
    do {
        int count = atomic_load(&wanted);
        for (int i = atomic_load(&added); i < count; i++) {
            add(host);
            uint64_t next = intake->mark(host);
            cr_assert_gt(next, mark);
            mark = next;
        }
        atomic_store(&added, count);
        atomic_store(&state, intake->settled(host, mark));
        atomic_store(&answered, count);
    } while (!(intake->wait(host, NULL, 0, WAIT_MS) & WEIR_WAIT_STOP));
}

static void set_up(void)
{
    script = load_source_script(plugin, sizeof plugin);
    cr_assert(script, "%s", dlerror());
    script->run = run;
    capture_register();
    cr_assert(mkdtemp(folder));
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(source_marks, .init = set_up, .fini = tear_down, .timeout = 300);

/* options: of the handler "capture"; settings: a member with a comma, or ""; groups: the routes. */
static void configure(const char *options, const char *settings, const char *groups)
{
    char text[8192];
    snprintf(text, sizeof text,
             "{%s\"handlers\":{\"*\":{\"block_timeout\":\"1h\",\"retry_min\":\"10ms\"},"
             "\"capture\":{\"type\":\"capture\"%s}},"
             "\"sources\":{\"in\":{\"type\":\"scripted\",\"plugin\":\"%s\"}},\"groups\":{%s}}",
             settings, options, plugin, groups);
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* Until the source was told so of everything that is wanted. */
static void wait_state(int expected)
{
    for (int i = 0; i < PATIENCE_MS; i++) {
        if (atomic_load(&answered) == atomic_load(&wanted) && atomic_load(&state) == expected)
            return;
        pause_ms(1);
    }
    cr_assert_fail("%d in place of %d", atomic_load(&state), expected);
}

/* While the handler is stuck: and it stays so. */
static void wait_pending(void)
{
    wait_state(WEIR_MARK_PENDING);
    for (int i = 0; i < 50; i++) {
        pause_ms(1);
        cr_assert_eq(atomic_load(&state), WEIR_MARK_PENDING);
    }
}

static void want(int count)
{
    atomic_fetch_add(&wanted, count);
}

/* Until the handler was given so many values. */
static void wait_offered(uint64_t count)
{
    weir_handler_stats stats = {0};
    for (int i = 0; i < PATIENCE_MS && stats.offered < count; i++) {
        cr_assert_eq(weir_get_handler_stats("capture", &stats, sizeof stats), 0, "%s", weir_last_error());
        pause_ms(1);
    }
    cr_assert_eq(stats.offered, count);
}

static void end(void)
{
    capture_release();
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    int flushed = weir_flush(PATIENCE_MS);
    cr_assert(flushed == 0 || flushed == WEIR_ERR_DROPPED, "%s", weir_last_error());
    assert_ledger("capture");
}

Test(source_marks, values_are_delivered_once_the_handler_has_them)
{
    configure("", "", "\"*\":\"capture\"");
    wait_state(WEIR_MARK_DELIVERED); /* nothing */
    for (int i = 1; i <= 200; i++) {
        want(10);
        wait_state(WEIR_MARK_DELIVERED);
        cr_assert_eq(capture_count(), (size_t)i * 10);
    }
    end();
}

Test(source_marks, they_are_pending_while_the_handler_does_not_return)
{
    capture_hold();
    configure("", "", "\"*\":\"capture\"");
    want(5);
    capture_wait_held();
    want(5);
    wait_pending();
    capture_release();
    wait_state(WEIR_MARK_DELIVERED);
    cr_assert_eq(capture_count(), 10);
    end();
}

Test(source_marks, a_handler_that_the_source_does_not_reach_does_not_matter)
{
    capture_hold();
    configure("", "", "\"in\":\"null\",\"other\":\"capture\"");
    cr_assert_eq(weir_add_value(weir_get_stream("other"), "x", 1), 0, "%s", weir_last_error());
    capture_wait_held();
    want(5);
    wait_state(WEIR_MARK_DELIVERED);
    end();
}

Test(source_marks, values_that_are_dropped_are_said_to_be)
{
    capture_fail(WEIR_OUTCOME_DROP, "no");
    configure("", "", "\"*\":\"capture\"");
    want(3);
    wait_state(WEIR_MARK_DROPPED);
    capture_fail(WEIR_OUTCOME_OK, "");
    want(3);
    wait_state(WEIR_MARK_DELIVERED);
    end();
}

Test(source_marks, values_in_a_spool_are_stored)
{
    char options[256];
    snprintf(options, sizeof options, ",\"spool\":\"%s\"", folder);
    capture_fail(WEIR_OUTCOME_RETRY, "no");
    configure(options, "", "\"*\":\"capture\"");
    want(3);
    wait_state(WEIR_MARK_PENDING);
    cr_assert_eq(weir_flush(PATIENCE_MS), WEIR_ERR_SPOOLED, "%s", weir_last_error());
    wait_state(WEIR_MARK_STORED);
    capture_fail(WEIR_OUTCOME_OK, "");
    wait_state(WEIR_MARK_DELIVERED);
    end();
}

Test(source_marks, values_in_a_journal_are_stored)
{
    char settings[256];
    snprintf(settings, sizeof settings, "\"settings\":{\"journal\":\"%s\"},", folder);
    capture_hold();
    configure("", settings, "\"*\":\"capture\"");
    want(3);
    capture_wait_held();
    want(3);
    wait_state(WEIR_MARK_STORED);
    capture_release();
    wait_state(WEIR_MARK_DELIVERED);
    end();
}

Test(source_marks, what_a_handler_was_given_before_a_reload_counts)
{
    capture_hold();
    configure("", "", "\"*\":\"capture\"");
    want(3);
    capture_wait_held();
    wait_offered(3); /* a reload is no barrier for sources */
    configure("", "", "\"in\":\"null\",\"other\":\"capture\"");
    want(3);
    wait_pending();
    capture_release();
    wait_state(WEIR_MARK_DELIVERED);
    want(3);
    wait_state(WEIR_MARK_DELIVERED);
    cr_assert_eq(capture_count(), 3);
    end();
}

enum { MANY = 100, SOME = 70 };
static _Atomic int phase;

static uint64_t add_until_stored(const weir_host *host)
{
    const weir_intake *intake = intake_of(host);
    add(host);
    uint64_t mark = intake->mark(host);
    while (intake->settled(host, mark) != WEIR_MARK_STORED &&
           !(intake->wait(host, NULL, 0, WAIT_MS) & WEIR_WAIT_STOP))
        ;
    return mark;
}

static void run_with_many(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    uint64_t marks[MANY];
    for (int i = 0; i < MANY; i++)
        marks[i] = add_until_stored(host);
    cr_assert_eq(intake_of(host)->settled(host, marks[SOME]), WEIR_MARK_STORED);
    atomic_store(&phase, 1);
    while (atomic_load(&phase) == 1)
        intake_of(host)->wait(host, NULL, 0, WAIT_MS);
    add_until_stored(host);
    cr_assert_eq(intake_of(host)->settled(host, marks[SOME]), WEIR_MARK_DELIVERED);
    atomic_store(&phase, 3);
}

static void wait_phase(int expected)
{
    for (int i = 0; i < PATIENCE_MS && atomic_load(&phase) != expected; i++)
        pause_ms(1);
    cr_assert_eq(atomic_load(&phase), expected);
}

/* The first ones are not asked for again, and keep no place of those that are. */
Test(source_marks, more_of_them_than_are_kept_are_answered_later_but_answered)
{
    char settings[128];
    snprintf(settings, sizeof settings, "\"settings\":{\"journal\":\"%s\"},", folder);
    script->run = run_with_many;
    capture_hold();
    configure("", settings, "\"*\":\"capture\"");
    wait_phase(1);
    capture_release();
    cr_assert_eq(weir_flush(PATIENCE_MS), 0, "%s", weir_last_error());
    capture_hold();
    atomic_store(&phase, 2);
    wait_phase(3);
    end();
}

Test(source_marks, summaries_are_settled_with_their_interval)
{
    configure(",\"aggregate\":\"1s\"", "", "\"*\":\"capture\"");
    want(3);
    wait_state(WEIR_MARK_DELIVERED);
    cr_assert_gt(capture_count(), 0);
    end();
}
