/* Sources through the public API: their life, what they add, limits, back-pressure, reloads, and forks. */

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/source.h>
#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"
#include "day.h"
#include "logbook.h"
#include "plugins/scripted_source.h"

enum { PATIENCE_MS = 60000 };

static struct source_script *script;
static char plugin[4096];

static void set_up(void)
{
    script = load_source_script(plugin, sizeof plugin);
    cr_assert(script, "%s", dlerror());
    capture_register();
}

TestSuite(sources, .init = set_up, .timeout = 300);

/* A configuration with one source; options: its further members, beginning with a comma, or "". */
static int configure(const char *options)
{
    char text[8192];
    snprintf(text, sizeof text,
             "{\"handlers\":{\"*\":{\"block_timeout\":\"1h\"}},\"sources\":{\"in\":{\"type\":\"scripted\","
             "\"plugin\":\"%s\"%s}},\"groups\":{\"*\":\"capture\"}}",
             plugin, options);
    return weir_configure_text(text, strlen(text));
}

static void start(const char *options)
{
    cr_assert_eq(configure(options), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
}

static weir_source_stats stats_of(size_t index)
{
    weir_source_stats stats;
    const char *name = weir_get_source_name(index);
    cr_assert(name);
    cr_assert_eq(weir_get_source_stats(name, &stats, sizeof stats), 0, "%s", weir_last_error());
    cr_assert_str_eq(stats.name, name);
    return stats;
}

static void wait_end(void)
{
    cr_assert_eq(weir_wait_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    int flushed = weir_flush(PATIENCE_MS);
    cr_assert(flushed == 0 || flushed == WEIR_ERR_DROPPED, "%s", weir_last_error());
}

static void wait_until(bool (*is_true)(void))
{
    for (int i = 0; i < PATIENCE_MS && !is_true(); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    cr_assert(is_true());
}

static const weir_intake *intake_of(const weir_host *host)
{
    return host->service(host, WEIR_SERVICE_INTAKE);
}

static int add(const weir_host *host, weir_record record, const char *name, double value)
{
    const weir_typed_value values[] = {{name, WEIR_DOUBLE(value)}};
    record.size = sizeof record;
    record.values = values;
    record.count = 1;
    return intake_of(host)->add(host, &record);
}

/* ---- What is added --------------------------------------------------------------------------- */

static void add_everything(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    const weir_typed_value values[] = {{"a", WEIR_DOUBLE(0.5)}, {"b", WEIR_INT(INT64_MIN)}};
    const weir_label labels[] = {{"zone", "x"}, {"host", "theirs"}};
    const weir_record event = {.size = sizeof event,
                               .group = "theirs",
                               .labels = labels,
                               .label_count = 2,
                               .values = values,
                               .count = 2,
                               .time_ns = 1234567890123456789};
    cr_assert_eq(intake_of(host)->add(host, &event), WEIR_ADD_TAKEN);
    cr_assert_eq(add(host, (weir_record){.metadata = "note", .unit = "ms"}, "c", 1), WEIR_ADD_TAKEN);
    cr_assert_eq(add(host, (weir_record){.flags = WEIR_RECORD_CUMULATIVE}, "d", 1), WEIR_ADD_TAKEN);
}

Test(sources, what_they_add_arrives_with_all_that_belongs_to_it)
{
    script->run = add_everything;
    start(",\"group_prefix\":\"remote\",\"group\":\"own\",\"labels\":{\"host\":\"ours\"}");
    wait_end();
    cr_assert_eq(capture_count(), 4);
    const struct captured *a = capture_at(0), *b = capture_at(1), *c = capture_at(2), *d = capture_at(3);
    cr_assert_str_eq(a->group, "remote.theirs");
    cr_assert_str_eq(a->labels, b->labels);
    cr_assert(strstr(a->labels, "ours") && !strstr(a->labels, "theirs") && strstr(a->labels, "zone"), "%s",
              a->labels);
    cr_assert_eq(a->time_ns, 1234567890123456789);
    cr_assert(a->more && !b->more);
    cr_assert_eq(b->integer, INT64_MIN);
    cr_assert_str_eq(c->group, "remote.own");
    cr_assert_str_eq(c->note, "note");
    cr_assert_str_eq(c->unit, "ms");
    cr_assert(d->cumulative);
    weir_source_stats stats = stats_of(0);
    cr_assert_eq(stats.state, WEIR_SOURCE_ENDED);
    cr_assert(stats.records == 3 && stats.added == 4 && stats.refused == 0);
    cr_assert_str_eq(stats.name, "in");
    cr_assert_str_eq(stats.type, "scripted");
    assert_ledger("capture");
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

#define ORIGIN "0123456789abcdef0123456789abcdef"

static const weir_source_series *series(const weir_host *host, const char *group, const char *name,
                                        int32_t instrument)
{
    const weir_blocks *blocks = host->service(host, WEIR_SERVICE_BLOCKS);
    const weir_typed_value value = {name, WEIR_DOUBLE(0)};
    const weir_record record = {
        .size = sizeof record, .group = group, .values = &value, .count = 1, .instrument = instrument};
    return blocks->resolve(host, &record);
}

static void add_blocks(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    const weir_blocks *blocks = host->service(host, WEIR_SERVICE_BLOCKS);
    const weir_source_series *a = series(host, "g", "a", WEIR_VALUE), *b = series(host, "h", "b", WEIR_COUNTER);
    const weir_block_sample samples[] = {
        {.series = a, .time_ns = 5, .kind = WEIR_KIND_DOUBLE, .flags = WEIR_SAMPLE_MORE, .value.f64 = 1},
        {.series = a, .time_ns = 5, .kind = WEIR_KIND_INT, .value.i64 = 2, .text_length = 4, .text = "note..."},
        {.series = b, .time_ns = 6, .kind = WEIR_KIND_DOUBLE, .flags = WEIR_SAMPLE_MORE, .value.f64 = -1},
        {.series = a, .time_ns = 7, .kind = WEIR_KIND_DOUBLE, .value.f64 = 3},
    };
    weir_block block = {.size = sizeof block, .origin = ORIGIN, .sequence = 10, .samples = samples, .count = 4};
    uint64_t from, to;
    cr_assert(blocks->missing(host, ORIGIN, 8, 20, &from, &to) && from == 8 && to == 20);
    cr_assert_eq(blocks->add(host, &block, NULL), WEIR_ADD_TAKEN);
    cr_assert_not(blocks->missing(host, ORIGIN, 10, 14, &from, &to));
    cr_assert(blocks->missing(host, ORIGIN, 8, 20, &from, &to) && from == 8 && to == 10);
    cr_assert_not(blocks->is_stored(host));
    blocks->forget(host, ORIGIN);
    cr_assert(blocks->missing(host, ORIGIN, 10, 14, &from, &to));
    block.origin = "x";
    cr_assert_eq(blocks->add(host, &block, NULL), WEIR_ADD_REFUSED);
}

Test(sources, blocks_arrive_and_their_numbers_are_remembered)
{
    script->run = add_blocks;
    start("");
    wait_end();
    cr_assert_eq(capture_count(), 3);
    const struct captured *first = capture_at(0), *second = capture_at(1), *third = capture_at(2);
    cr_assert(first->more && !second->more && !third->more);
    cr_assert_str_eq(second->note, "note");
    cr_assert(first->time_ns == 5 && second->integer == 2 && third->time_ns == 7);
    weir_source_stats stats = stats_of(0);
    cr_assert(stats.records == 1 && stats.added == 3 && stats.refused == 1);
    assert_ledger("capture");
}

enum { FLOOD_BLOCKS = 300 };

static void flood_blocks(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    const weir_blocks *blocks = host->service(host, WEIR_SERVICE_BLOCKS);
    static weir_block_sample samples[WEIR_BLOCK_SLOTS];
    const weir_source_series *a = series(host, "g", "a", WEIR_VALUE), *b = series(host, "h", "b", WEIR_GAUGE);
    for (int i = 0; i < WEIR_BLOCK_SLOTS; i++)
        samples[i] = (weir_block_sample){.series = i % 3 ? a : b, .time_ns = 1, .kind = WEIR_KIND_INT};
    for (uint64_t n = 0; n < FLOOD_BLOCKS; n++) {
        const weir_block block = {sizeof block, ORIGIN, n * WEIR_BLOCK_SLOTS, samples, WEIR_BLOCK_SLOTS};
        int result;
        while ((result = blocks->add(host, &block, NULL)) == WEIR_ADD_FULL)
            intake_of(host)->wait(host, NULL, 0, -1);
        cr_assert_eq(result, WEIR_ADD_TAKEN);
    }
}

Test(sources, blocks_that_find_no_room_are_added_later_as_a_whole)
{
    script->run = flood_blocks;
    start("");
    wait_end();
    weir_source_stats stats = stats_of(0);
    cr_assert_eq(stats.added, FLOOD_BLOCKS * WEIR_BLOCK_SLOTS);
    assert_ledger("capture");
}

static void add_instruments(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    const weir_record sampled = {.instrument = WEIR_COUNTER, .sample_rate = 0.1};
    const weir_record level = {.instrument = WEIR_GAUGE};
    const weir_record change = {.instrument = WEIR_GAUGE, .flags = WEIR_RECORD_CHANGE};
    const weir_record timer = {.instrument = WEIR_HISTOGRAM, .sample_rate = 0.1};
    cr_assert_eq(add(host, sampled, "requests", 2), WEIR_ADD_TAKEN);
    cr_assert_eq(add(host, level, "level", 10), WEIR_ADD_TAKEN);
    cr_assert_eq(add(host, change, "level", -4), WEIR_ADD_TAKEN);
    cr_assert_eq(add(host, timer, "took", 7), WEIR_ADD_TAKEN);
    cr_assert_eq(add(host, sampled, "requests", -1), WEIR_ADD_REFUSED);
    cr_assert_eq(add(host, change, "took", 1), WEIR_ADD_REFUSED);
    cr_assert_eq(add(host, change, "level", INFINITY), WEIR_ADD_REFUSED);
}

Test(sources, instruments_are_declared_increments_scaled_and_levels_changed)
{
    script->run = add_instruments;
    start("");
    wait_end();
    cr_assert_eq(capture_count(), 4);
    cr_assert_eq(capture_at(0)->value, 20);
    cr_assert_eq(capture_at(0)->instrument, WEIR_COUNTER);
    cr_assert_eq(capture_at(1)->value, 10);
    cr_assert_eq(capture_at(2)->value, 6);
    cr_assert_eq(capture_at(2)->instrument, WEIR_GAUGE);
    cr_assert_eq(capture_at(3)->value, 7);
    cr_assert_eq(capture_at(3)->instrument, WEIR_HISTOGRAM);
    cr_assert(stats_of(0).added == 4 && stats_of(0).refused == 3);
    assert_ledger("capture");
}

/* One adds 1 to the level, then the other one takes it away, then the test looks. */
enum { TURNS = 10000 };
static pthread_barrier_t up, down, seen;

static void move_in_turn(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)outcome;
    const weir_record change = {.group = "app", .instrument = WEIR_GAUGE, .flags = WEIR_RECORD_CHANGE};
    bool is_first = strcmp(tag, "first") == 0;
    for (int i = 0; i < TURNS; i++) {
        if (is_first)
            cr_assert_eq(add(host, change, "in_flight", 1), WEIR_ADD_TAKEN);
        pthread_barrier_wait(&up);
        if (!is_first)
            cr_assert_eq(add(host, change, "in_flight", -1), WEIR_ADD_TAKEN);
        pthread_barrier_wait(&down);
        pthread_barrier_wait(&seen);
    }
}

Test(sources, a_gauge_that_two_of_them_change_in_turn_is_its_level)
{
    char text[2 * sizeof plugin + 512];
    snprintf(text, sizeof text,
             "{\"sources\":{\"one\":{\"type\":\"scripted\",\"plugin\":\"%s\",\"tag\":\"first\"},"
             "\"two\":{\"type\":\"scripted\",\"plugin\":\"%s\"}},"
             "\"handlers\":{\"capture\":{\"type\":\"capture\",\"aggregate\":\"1d\"}},\"groups\":{\"*\":"
             "\"capture\"}}",
             plugin, plugin);
    pthread_barrier_init(&up, NULL, 2);
    pthread_barrier_init(&down, NULL, 3);
    pthread_barrier_init(&seen, NULL, 3);
    await_day();
    script->run = move_in_turn;
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    for (int i = 0; i < TURNS; i++) {
        pthread_barrier_wait(&down);
        cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
        const struct captured *level = capture_at(capture_count() - 1);
        cr_assert(strcmp(level->name, "in_flight") == 0 && level->value == 0, "turn %d: %s=%g", i, level->name,
                  level->value);
        pthread_barrier_wait(&seen);
    }
    wait_end();
    assert_ledger("capture");
}

/* Each is refused, and counted with its values. */
static void add_faulty(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    const weir_typed_value two[] = {{"a", WEIR_DOUBLE(1)}, {"b", WEIR_INT(2)}};
    const weir_typed_value nameless[] = {{NULL, WEIR_DOUBLE(1)}}, odd[] = {{"a", {.kind = 7}}};
    const weir_label no_key[] = {{NULL, "v"}}, no_value[] = {{"k", NULL}};
    const size_t size = sizeof(weir_record);
    const weir_record faulty[] = {
        {.values = two, .count = 1}, /* without a size */
        {.size = size, .values = two},
        {.size = size, .count = 1},
        {.size = size, .values = nameless, .count = 1},
        {.size = size, .values = odd, .count = 1},
        {.size = size, .values = two, .count = 2, .label_count = 1},
        {.size = size, .values = two, .count = 2, .labels = no_key, .label_count = 1},
        {.size = size, .values = two, .count = 2, .labels = no_value, .label_count = 1},
        {.size = size, .values = two, .count = 2, .instrument = 99},
        {.size = size, .values = two, .count = 2, .instrument = -1},
        {.size = size, .values = two, .count = 2, .sample_rate = -1},
        {.size = size, .values = two, .count = 2, .sample_rate = NAN},
        {.size = size, .values = two, .count = 2, .metadata = "of two"},
    };
    const weir_blocks *blocks = host->service(host, WEIR_SERVICE_BLOCKS);
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++)
        cr_assert_eq(intake_of(host)->add(host, &faulty[i]), WEIR_ADD_REFUSED, "%zu", i);
    cr_assert_eq(intake_of(host)->add(host, NULL), WEIR_ADD_REFUSED);
    cr_assert_null(blocks->resolve(host, &faulty[3]));
    cr_assert_eq(intake_of(host)->add(host, &(weir_record){.size = size, .values = two, .count = 2}),
                 WEIR_ADD_TAKEN);
}

Test(sources, a_record_that_is_not_allowed_is_refused_and_counted)
{
    script->run = add_faulty;
    start("");
    wait_end();
    cr_assert_eq(capture_count(), 2);
    weir_source_stats stats = stats_of(0);
    cr_assert_eq(stats.added, 2);
    cr_assert_eq(stats.refused, 1 + 0 + 1 + 1 + 1 + 8 * 2 + 1 + 1);
    assert_ledger("capture");
}

enum { WAITED = 100 };

static void wait_for_the_last(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    int ends[2];
    struct pollfd fds[WAITED];
    for (int i = 0; i < WAITED; i++)
        fds[i] = (struct pollfd){-1, POLLIN, 0};
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], "x", 1), 1);
    fds[WAITED - 1].fd = ends[0];
    cr_assert_eq(intake_of(host)->wait(host, fds, WAITED, -1) & WEIR_WAIT_READY, WEIR_WAIT_READY);
    cr_assert_eq(fds[WAITED - 1].revents, POLLIN);
    close(ends[0]);
    close(ends[1]);
    add(host, (weir_record){0}, "seen", 1);
}

Test(sources, they_wait_for_many_descriptors)
{
    script->run = wait_for_the_last;
    start("");
    wait_end();
    cr_assert_eq(capture_count(), 1);
    assert_ledger("capture");
}

static void add_too_many_series(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    char name[16];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "n%d", i);
        cr_assert_eq(add(host, (weir_record){0}, name, 1), i < 3 ? WEIR_ADD_TAKEN : WEIR_ADD_REFUSED);
    }
    cr_assert_eq(add(host, (weir_record){0}, "n0", 1), WEIR_ADD_TAKEN);
    cr_assert_eq(add(host, (weir_record){.group = "bad group name"}, "n0", 1), WEIR_ADD_REFUSED);
}

Test(sources, series_beyond_the_limit_and_bad_names_are_refused_and_counted)
{
    weir_stats process;
    script->run = add_too_many_series;
    start(",\"series_limit\":3");
    wait_end();
    cr_assert_eq(capture_count(), 4);
    weir_source_stats stats = stats_of(0);
    cr_assert(stats.added == 4 && stats.refused == 3);
    cr_assert_eq(weir_get_stats(&process, sizeof process), 0);
    cr_assert_eq(process.refused[WEIR_REFUSED_LIMIT], 3, "the group's own series is beyond the limit, too");
    assert_ledger("capture");
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void parse_text(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    const weir_parser *parser = host->service(host, WEIR_SERVICE_PARSER);
    weir_text *text = parser->begin(host, "there", NULL);
    static const char *const pieces[] = {"{\"a\":1}\n{\"a\"", ":2}\nnonsense\n{\"a\":3}\n{\"a\":4}", NULL};
    for (int i = 0; pieces[i]; i++) {
        size_t room;
        memcpy(parser->room(text, &room), pieces[i], strlen(pieces[i]));
        cr_assert(parser->parse(text, strlen(pieces[i])));
    }
    cr_assert(parser->finish(text, strcmp(tag, "whole") == 0));
    parser->end(text);
}

Test(sources, lines_are_parsed_across_pieces_and_a_torn_one_is_counted)
{
    script->run = parse_text;
    start(",\"parse\":\"json\"");
    wait_end();
    cr_assert_eq(capture_count(), 3);
    cr_assert_eq(capture_at(1)->integer, 2);
    weir_source_stats stats = stats_of(0);
    cr_assert_eq(stats.lines, 4);
    cr_assert_eq(stats.bad_lines, 2);
    cr_assert_eq(stats.added, 3);
    assert_ledger("capture");
}

Test(sources, a_last_line_without_a_newline_is_read_if_the_text_is_whole)
{
    script->run = parse_text;
    start(",\"parse\":\"json\",\"tag\":\"whole\"");
    wait_end();
    cr_assert_eq(capture_count(), 4);
    cr_assert_eq(stats_of(0).bad_lines, 1);
    assert_ledger("capture");
}

/* How many series the sender may still make; once the source is closed, something else. */
static uint64_t series_left = 5;

static void reuse_memory(void)
{
    if (!script->closed)
        series_left = 1000;
}

/* Opened again, it waits until the first series has ended: there is room for no other one. */
static void reopen_with_a_series(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    static const char line[] = "{\"first\":1}\n";
    const weir_parser *parser = host->service(host, WEIR_SERVICE_PARSER);
    const weir_text_options options = {.size = sizeof options, .series_left = &series_left};
    size_t room;
    (void)tag;
    if (script->closed) {
        while (add(host, (weir_record){0}, "second", 2) != WEIR_ADD_TAKEN)
            intake_of(host)->wait(host, NULL, 0, 1);
        return;
    }
    weir_text *text = parser->begin(host, "there", &options);
    memcpy(parser->room(text, &room), line, sizeof line - 1);
    cr_assert(parser->parse(text, sizeof line - 1));
    parser->end(text);
    cr_assert_eq(series_left, 4);
    outcome->code = WEIR_OUTCOME_REOPEN;
}

Test(sources, a_series_that_expires_after_close_is_counted_for_no_sender)
{
    script->run = reopen_with_a_series;
    script->close = reuse_memory;
    start(",\"parse\":\"json\",\"series_limit\":1,\"expiry\":\"8ms\",\"retry_min\":\"1ms\"");
    wait_end();
    cr_assert_eq(capture_count(), 2);
    cr_assert_eq(series_left, 1000);
}

/* ---- Back-pressure --------------------------------------------------------------------------- */

enum { FLOOD = 100000 };
static _Atomic int full, stopped_at;

static void flood(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    for (int i = 0; i < FLOOD;) {
        int result = add(host, (weir_record){0}, "m", i);
        cr_assert_neq(result, WEIR_ADD_REFUSED);
        if (result == WEIR_ADD_TAKEN) {
            i++;
            continue;
        }
        atomic_fetch_add(&full, 1);
        if (intake_of(host)->wait(host, NULL, 0, -1) & WEIR_WAIT_STOP) {
            atomic_store(&stopped_at, i);
            return;
        }
    }
}

static bool is_full(void)
{
    return atomic_load(&full) > 0;
}

Test(sources, adding_never_waits_and_goes_on_when_there_is_room)
{
    static const char handlers[] =
        "{\"handlers\":{\"*\":{\"queue\":\"4KiB\",\"block_timeout\":\"1h\"}},\"sources\":"
        "{\"in\":{\"type\":\"scripted\",\"plugin\":\"%s\"}},"
        "\"groups\":{\"*\":\"capture\"}}";
    char text[8192];
    snprintf(text, sizeof text, handlers, plugin);
    script->run = flood;
    capture_hold();
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0);
    wait_until(is_full);
    assert_ledger("capture");
    capture_release();
    wait_end();
    cr_assert_eq(capture_count(), FLOOD);
    for (int i = 0; i < FLOOD; i++)
        cr_assert_eq(capture_at((size_t)i)->value, i);
    assert_ledger("capture");
}

Test(sources, a_source_that_waits_for_room_can_be_stopped)
{
    char text[8192];
    snprintf(
        text, sizeof text,
        "{\"handlers\":{\"*\":{\"queue\":\"4KiB\",\"block_timeout\":\"1h\"}},\"sources\":{\"in\":{\"type\":"
        "\"scripted\",\"plugin\":\"%s\"}},\"groups\":{\"*\":\"capture\"}}",
        plugin);
    script->run = flood;
    capture_hold();
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0);
    wait_until(is_full);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    capture_release();
    cr_assert_eq(weir_flush(PATIENCE_MS), 0);
    cr_assert_eq(stats_of(0).state, WEIR_SOURCE_STOPPED);
    cr_assert_eq(stats_of(0).added, (uint64_t)stopped_at);
    cr_assert_eq(capture_count(), (size_t)stopped_at);
    assert_ledger("capture");
}

/* ---- Counters -------------------------------------------------------------------------------- */

enum { COUNTERS = 32 };

/* After the core has counted that it waits. */
static void count_much(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    static char name[16];
    (void)tag, (void)outcome;
    while (add(host, (weir_record){0}, "m", 1) == WEIR_ADD_TAKEN)
        ;
    for (int i = 0; i < COUNTERS + 1; i++) {
        snprintf(name, sizeof name, "own.%d", i);
        host->count(host, name, (uint64_t)i + 1);
    }
    atomic_fetch_add(&full, 1);
    while (!(intake_of(host)->wait(host, NULL, 0, -1) & WEIR_WAIT_STOP))
        ;
}

/* The latest value of a metric of the group "weir" about the source; 0: none. */
static double read_own(const char *name)
{
    double value = 0;
    for (size_t i = 0; i < capture_count(); i++)
        if (strcmp(capture_at(i)->group, "weir") == 0 && strcmp(capture_at(i)->name, name) == 0)
            value = capture_at(i)->value;
    return value;
}

static bool are_all_counters_shown(void)
{
    return read_own("own.31") > 0 && read_own("waits") > 0;
}

Test(sources, a_type_has_the_counters_that_it_was_promised_beside_those_of_the_core)
{
    char text[8192], name[16];
    snprintf(
        text, sizeof text,
        "{\"settings\":{\"stats_interval\":\"5ms\"},\"handlers\":{\"*\":{\"queue\":\"4KiB\",\"block_timeout\":"
        "\"1h\"}},\"sources\":{\"in\":{\"type\":\"scripted\",\"plugin\":\"%s\"}},"
        "\"groups\":{\"*\":\"capture\",\"weir\":\"capture\"}}",
        plugin);
    script->run = count_much;
    capture_hold();
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_until(is_full);
    capture_release();
    wait_until(are_all_counters_shown);
    for (int i = 0; i < COUNTERS; i++) {
        snprintf(name, sizeof name, "own.%d", i);
        cr_assert_eq(read_own(name), i + 1, "%s", name);
    }
    cr_assert_eq(read_own("own.32"), 0, "further names are ignored");
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

static void fail_twice(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    static int calls;
    (void)host;
    outcome->code = strcmp(tag, "fatal") == 0 ? WEIR_OUTCOME_FAILED
                    : calls++ < 2             ? WEIR_OUTCOME_RETRY
                                              : WEIR_OUTCOME_OK;
    snprintf(outcome->reason, sizeof outcome->reason, "not now");
}

static void add_one(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    static int calls;
    cr_assert_eq(add(host, (weir_record){0}, "m", 1), WEIR_ADD_TAKEN);
    if (strcmp(tag, "again") == 0 && calls++ == 0)
        outcome->code = WEIR_OUTCOME_REOPEN;
    if (strcmp(tag, "wrong") == 0)
        outcome->code = 77;
}

Test(sources, a_failing_open_is_tried_again)
{
    script->open = fail_twice;
    script->run = add_one;
    start(",\"retry_min\":\"1ms\"");
    wait_end();
    cr_assert_eq(stats_of(0).state, WEIR_SOURCE_ENDED);
    cr_assert(script->opened == 1 && script->closed == 1);
    cr_assert_eq(capture_count(), 1);
    assert_ledger("capture");
}

/* ---- Types of the program -------------------------------------------------------------------- */

/* The context of a registered type. */
struct registration {
    int prepared, created;
    bool refuses; /* prepare does */
};

static bool prepare_own(const weir_host *host)
{
    struct registration *registration = host->context;
    registration->prepared++;
    cr_assert(!host->type && host->source_type && strcmp(host->name, host->source_type->name) == 0);
    if (registration->refuses)
        host->refuse(host, "", "the library is not there");
    return !registration->refuses;
}

static void *create_own(const weir_host *host, const void *options)
{
    struct registration *registration = host->context;
    (void)options;
    registration->created++;
    cr_assert(registration->prepared && host->abi == WEIR_SOURCE_ABI && !host->type);
    cr_assert_str_eq(host->source_type->summary, "of the program");
    return (void *)(uintptr_t)host;
}

static void run_own(void *self, weir_outcome *outcome)
{
    const weir_host *host = self;
    (void)outcome;
    cr_assert_eq(add(host, (weir_record){0}, host->name, 1), WEIR_ADD_TAKEN);
}

static void destroy_own(void *self)
{
    (void)self;
}

static const weir_source_type own_type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .name = "own",
    .summary = "of the program",
    .prepare = prepare_own,
    .create = create_own,
    .run = run_own,
    .destroy = destroy_own,
};

static int configure_own(void)
{
    static const char text[] =
        "{\"handlers\":{\"*\":{\"block_timeout\":\"1h\"}},\"sources\":{\"a\":{\"type\":\"own\"},"
        "\"b\":{\"type\":\"own\"}},\"groups\":{\"*\":\"capture\"}}";
    return weir_configure_text(text, strlen(text));
}

Test(sources, a_type_of_the_program_is_prepared_once_and_finds_its_context)
{
    static struct registration registration;
    cr_assert_eq(weir_register_source_type(&own_type, &registration), 0, "%s", weir_last_error());
    cr_assert_eq(configure_own(), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_end();
    cr_assert(registration.prepared == 1 && registration.created == 2, "%d prepared, %d created",
              registration.prepared, registration.created);
    cr_assert_eq(capture_count(), 2);
    assert_ledger("capture");
}

Test(sources, a_type_that_cannot_be_prepared_is_refused_and_tried_again)
{
    static struct registration registration = {.refuses = true};
    cr_assert_eq(weir_register_source_type(&own_type, &registration), 0);
    cr_assert_eq(configure_own(), 0);
    cr_assert_eq(weir_start_sources(), WEIR_ERR_CONFIG);
    cr_assert(strstr(weir_last_error(), "the library is not there"), "%s", weir_last_error());
    cr_assert_eq(registration.created, 0);
    registration.refuses = false;
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_end();
    cr_assert(registration.prepared == 2 && capture_count() == 2);
}

Test(sources, what_is_registered_is_checked)
{
    weir_source_type wrong = own_type;
    cr_assert_eq(weir_register_source_type(NULL, NULL), WEIR_ERR_ARGUMENT);
    wrong.abi = 99;
    cr_assert_eq(weir_register_source_type(&wrong, NULL), WEIR_ERR_PLUGIN);
    cr_assert(strstr(weir_last_error(), "made for source ABI 99"), "%s", weir_last_error());
    wrong = own_type;
    wrong.run = NULL;
    cr_assert_eq(weir_register_source_type(&wrong, NULL), WEIR_ERR_PLUGIN);
    cr_assert(strstr(weir_last_error(), "source type \"own\" has no run"), "%s", weir_last_error());
    cr_assert_eq(weir_register_source_type(&own_type, NULL), 0);
    cr_assert_eq(weir_register_source_type(&own_type, NULL), WEIR_ERR_PLUGIN);
    cr_assert(strstr(weir_last_error(), "registered already"), "%s", weir_last_error());
}

/* ---- Reloads --------------------------------------------------------------------------------- */

static _Atomic int reloads, wakes;

static void count_reloads(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    unsigned events;
    (void)tag, (void)outcome;
    while (!((events = intake_of(host)->wait(host, NULL, 0, -1)) & WEIR_WAIT_STOP)) {
        atomic_fetch_add(&reloads, !!(events & WEIR_WAIT_RELOAD));
        atomic_fetch_add(&wakes, 1);
    }
}

static bool is_running(void)
{
    return stats_of(0).state == WEIR_SOURCE_RUNNING;
}

static bool has_reloaded(void)
{
    return atomic_load(&reloads) > 0;
}

Test(sources, a_reload_is_reported_once)
{
    script->run = count_reloads;
    start("");
    wait_until(is_running);
    cr_assert_eq(weir_reload(), 0, "%s", weir_last_error());
    wait_until(has_reloaded);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0);
    cr_assert_eq(atomic_load(&reloads), 1, "in %d wakes", atomic_load(&wakes));
    cr_assert_eq(script->created - script->destroyed, 0);
}

static bool is_waiting(void)
{
    return stats_of(0).state == WEIR_SOURCE_WAITING;
}

static bool is_closed_and_waits(void)
{
    return script->closed == 1 && stats_of(0).state == WEIR_SOURCE_WAITING;
}

static _Atomic bool is_there;

static void open_if_there(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)host, (void)tag;
    outcome->code = atomic_load(&is_there) ? WEIR_OUTCOME_OK : WEIR_OUTCOME_RETRY;
    outcome->retry_after_ms = 3600 * 1000;
    snprintf(outcome->reason, sizeof outcome->reason, "it is not there");
}

/* Of messages at the level of warnings. The source's thread writes them; it has ended when they are read. */
static struct logbook warnings;

static void keep_warning(void *ctx, int level, const char *text)
{
    if (level == WEIR_LOG_WARNING)
        logbook_write(ctx, level, text);
}

static void assert_failed_once(void)
{
    weir_source_stats stats = stats_of(0);
    cr_assert_str_eq(stats.last_error, "it is not there");
    cr_assert_geq(stats.last_error_ms, 0);
}

Test(sources, a_failure_and_its_end_are_told)
{
    script->open = open_if_there;
    script->run = add_one;
    weir_set_log(keep_warning, &warnings);
    start(",\"retry_max\":\"1h\"");
    wait_until(is_waiting);
    assert_failed_once();
    atomic_store(&is_there, true);
    cr_assert_eq(weir_reload(), 0, "%s", weir_last_error());
    wait_end();
    weir_set_log(NULL, NULL);
    cr_assert_eq(warnings.count, 2);
    cr_assert_str_eq(warnings.lines[0], "in: it is not there; trying again");
    cr_assert(strncmp(warnings.lines[1], "in: back after ", 15) == 0, "%s", warnings.lines[1]);
    assert_failed_once();
    assert_ledger("capture");
}

static _Atomic bool is_told;

static void note_back(void *ctx, int level, const char *text)
{
    (void)ctx, (void)level;
    if (strstr(text, "back after"))
        atomic_store(&is_told, true);
}

static bool is_told_now(void)
{
    return atomic_load(&is_told);
}

static void wait_for_stop(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    const weir_intake *intake = host->service(host, WEIR_SERVICE_INTAKE);
    (void)tag, (void)outcome;
    while (!(intake->wait(host, NULL, 0, -1) & WEIR_WAIT_STOP))
        ;
}

Test(sources, a_source_that_gets_nothing_is_back_too)
{
    script->open = fail_twice;
    script->run = wait_for_stop;
    weir_set_log(note_back, NULL);
    start(",\"retry_min\":\"1ms\"");
    wait_until(is_told_now);
    cr_assert_eq(stats_of(0).state, WEIR_SOURCE_RUNNING);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    weir_set_log(NULL, NULL);
}

/* Its first opening succeeds. */
static void open_once(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    static int calls;
    if (calls++)
        open_if_there(host, tag, outcome);
}

static void lose_after_a_member(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    static const char line[] = "users:alice|s\n";
    const weir_parser *parser = host->service(host, WEIR_SERVICE_PARSER);
    weir_text *text = parser->begin(host, "there", NULL);
    size_t room;
    (void)tag;
    memcpy(parser->room(text, &room), line, sizeof line - 1);
    cr_assert(parser->parse(text, sizeof line - 1));
    parser->end(text);
    outcome->code = WEIR_OUTCOME_REOPEN;
    snprintf(outcome->reason, sizeof outcome->reason, "lost");
}

/* The core adds what it has counted when the source stops, which does not work by that. */
Test(sources, counts_of_sets_end_no_failure)
{
    script->open = open_once;
    script->run = lose_after_a_member;
    await_day();
    weir_set_log(keep_warning, &warnings);
    start(",\"parse\":\"statsd\",\"set_interval\":\"1d\",\"retry_max\":\"1h\"");
    wait_until(is_closed_and_waits);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    weir_set_log(NULL, NULL);
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    cr_assert_eq(capture_count(), 1);
    cr_assert_eq(warnings.count, 1);
    cr_assert_str_eq(warnings.lines[0], "in: lost; trying again");
    assert_ledger("capture");
}

Test(sources, a_source_that_never_failed_has_no_error)
{
    script->run = add_one;
    start("");
    wait_end();
    cr_assert_str_eq(stats_of(0).last_error, "");
    cr_assert_eq(stats_of(0).last_error_ms, -1);
}

/* The outcome asks for the longest pause that the options allow: an hour. */
Test(sources, a_reload_ends_a_back_off)
{
    script->open = open_if_there;
    script->run = add_one;
    start(",\"retry_max\":\"1h\"");
    wait_until(is_waiting);
    atomic_store(&is_there, true);
    cr_assert_eq(weir_reload(), 0, "%s", weir_last_error());
    wait_end();
    cr_assert_eq(capture_count(), 1);
}

Test(sources, a_source_that_fails_for_good_ends)
{
    script->open = fail_twice;
    start(",\"tag\":\"fatal\"");
    wait_end();
    cr_assert_eq(stats_of(0).state, WEIR_SOURCE_BROKEN);
    cr_assert(script->opened == 0 && script->closed == 0);
}

Test(sources, a_source_that_asks_to_be_reopened_is)
{
    script->run = add_one;
    start(",\"tag\":\"again\",\"retry_min\":\"1ms\"");
    wait_end();
    cr_assert(script->opened == 2 && script->closed == 2);
    cr_assert_eq(capture_count(), 2);
    assert_ledger("capture");
}

static void ask_for_reopening(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)host;
    (void)tag;
    outcome->code = WEIR_OUTCOME_REOPEN;
}

Test(sources, a_source_is_closed_while_it_waits_to_be_reopened)
{
    script->run = ask_for_reopening;
    start(",\"retry_min\":\"1h\",\"retry_max\":\"1h\"");
    wait_until(is_closed_and_waits);
    cr_assert_eq(script->opened, 1);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert(script->opened == 1 && script->closed == 1);
}

Test(sources, a_result_that_does_not_exist_ends_the_source)
{
    script->run = add_one;
    start(",\"tag\":\"wrong\"");
    wait_end();
    cr_assert_eq(stats_of(0).state, WEIR_SOURCE_BROKEN);
    cr_assert_eq(script->closed, 1);
    assert_ledger("capture");
}

static void wait_for_ever(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag;
    if (host->wait(host, INT64_MAX))
        outcome->code = WEIR_OUTCOME_FAILED;
}

Test(sources, a_wait_of_any_length_ends_with_a_stop)
{
    script->run = wait_for_ever;
    start("");
    cr_assert_eq(weir_wait_sources(50), WEIR_ERR_TIMEOUT);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(stats_of(0).state, WEIR_SOURCE_STOPPED);
}

/* ---- Configurations -------------------------------------------------------------------------- */

Test(sources, without_a_call_the_section_has_no_effect)
{
    weir_source_stats stats;
    cr_assert_eq(configure(""), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start(), 0);
    cr_assert_eq(script->created, 0);
    cr_assert_null(weir_get_source_name(0));
    cr_assert_eq(weir_get_source_stats("in", &stats, sizeof stats), WEIR_ERR_ARGUMENT);
    cr_assert_str_eq(weir_last_error(), "weir_get_source_stats: there is no source \"in\"");
    cr_assert_eq(weir_stop_sources(0), 0);
    cr_assert_eq(weir_wait_sources(0), 0);
}

Test(sources, a_source_that_is_the_same_goes_on_and_another_is_replaced)
{
    start("");
    wait_until(is_running);
    cr_assert_eq(configure(""), 0, "%s", weir_last_error());
    cr_assert_eq(script->created - script->destroyed, 1);
    cr_assert_eq(script->closed, 0);
    cr_assert_eq(configure(",\"tag\":\"other\""), 0, "%s", weir_last_error());
    cr_assert_eq(script->closed, 1);
    cr_assert_eq(script->created - script->destroyed, 1);
    cr_assert_eq(weir_configure_text("{}", 2), 0);
    cr_assert_eq(script->created - script->destroyed, 0);
    cr_assert_eq(script->opened, script->closed);
}

static int configure_two(const char *tag)
{
    char text[16384];
    snprintf(text, sizeof text,
             "{\"settings\":{\"shutdown_timeout\":\"4m\"},\"sources\":{\"stays\":{\"type\":\"scripted\","
             "\"plugin\":\"%s\"},\"goes\":{\"type\":\"scripted\",\"plugin\":\"%s\",\"tag\":\"%s\"}}}",
             plugin, plugin, tag);
    return weir_configure_text(text, strlen(text));
}

static _Atomic bool was_stopped, may_end;

static void end_late(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)outcome;
    while (!(intake_of(host)->wait(host, NULL, 0, -1) & WEIR_WAIT_STOP))
        ;
    atomic_store(&was_stopped, true);
    while (strcmp(tag, "late") == 0 && !atomic_load(&may_end))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool are_both_running(void)
{
    return stats_of(0).state == WEIR_SOURCE_RUNNING && stats_of(1).state == WEIR_SOURCE_RUNNING;
}

static bool is_stopping(void)
{
    return atomic_load(&was_stopped);
}

static void *replace_one(void *result)
{
    *(int *)result = configure_two("new");
    return NULL;
}

Test(sources, while_one_ends_for_a_reload_all_are_known_and_a_forked_child_closes_all)
{
    pthread_t thread;
    int result = -1, status;
    script->run = end_late;
    cr_assert_eq(configure_two("late"), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_until(are_both_running);
    cr_assert_eq(pthread_create(&thread, NULL, replace_one, &result), 0);
    wait_until(is_stopping);
    cr_assert_str_eq(stats_of(0).name, "stays");
    cr_assert_eq(stats_of(0).state, WEIR_SOURCE_RUNNING);
    cr_assert_str_eq(stats_of(1).name, "goes");
    pid_t child = fork();
    if (child == 0)
        _exit(script->abandoned == 2 ? 0 : 1);
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    atomic_store(&may_end, true);
    pthread_join(thread, NULL);
    cr_assert_eq(result, 0);
    wait_until(are_both_running);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0);
    cr_assert_eq(script->created, script->destroyed);
}

/* "stuck" does not stop until it may end; others do. */
static int configure_stuck(const char *tag, const char *timeout)
{
    char text[8192];
    snprintf(text, sizeof text,
             "{\"settings\":{\"shutdown_timeout\":\"%s\"},\"sources\":{\"in\":{\"type\":\"scripted\","
             "\"plugin\":\"%s\",\"tag\":\"%s\"}}}",
             timeout, plugin, tag);
    return weir_configure_text(text, strlen(text));
}

static void end_if_allowed(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    while (!(intake_of(host)->wait(host, NULL, 0, -1) & WEIR_WAIT_STOP))
        ;
    while (!atomic_load(&may_end))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&was_stopped, true);
}

/* A thread ends a moment after its source has been closed. */
static bool are_left_ones_freed(void)
{
    return configure_stuck("fourth", "1h") == 0 && script->created - script->destroyed == 1;
}

/* The second configuration would wait for an hour. */
Test(sources, one_that_does_not_stop_is_waited_for_once_and_freed_when_it_has_ended)
{
    script->run = end_if_allowed;
    cr_assert_eq(configure_stuck("first", "10ms"), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_until(is_running);
    cr_assert_eq(configure_stuck("second", "10ms"), 0, "%s", weir_last_error());
    cr_assert_eq(script->created - script->destroyed, 2, "the first one is left behind");
    wait_until(is_running);
    cr_assert_eq(configure_stuck("third", "1h"), 0, "%s", weir_last_error());
    wait_until(is_running);
    cr_assert_eq(script->created - script->destroyed, 3);
    atomic_store(&may_end, true);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_until(are_left_ones_freed);
    wait_until(is_running);
    cr_assert_eq(configure_stuck("fifth", "1h"), 0, "%s", weir_last_error());
    cr_assert_eq(script->created - script->destroyed, 1, "and the next one is waited for");
}

static _Atomic int left_behind;

static void count_left_behind(void *ctx, int level, const char *text)
{
    (void)ctx, (void)level;
    atomic_fetch_add(&left_behind, strstr(text, "left behind") != NULL);
}

static bool has_stopped(void)
{
    return weir_stop_sources(0) == 0;
}

/* After the first stop each further call would wait for minutes. */
Test(sources, one_that_was_left_behind_by_a_stop_is_waited_for_and_named_once)
{
    weir_set_log(count_left_behind, NULL);
    script->run = end_if_allowed;
    cr_assert_eq(configure_stuck("first", "1h"), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_until(is_running);
    cr_assert_eq(weir_stop_sources(0), WEIR_ERR_TIMEOUT, "it is not waited for");
    cr_assert_eq(left_behind, 0);
    cr_assert_eq(weir_stop_sources(10), WEIR_ERR_TIMEOUT);
    cr_assert_eq(weir_stop_sources(3600000), WEIR_ERR_TIMEOUT);
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_until(is_running);
    cr_assert_eq(script->created - script->destroyed, 2, "an equal one takes its place");
    cr_assert_eq(left_behind, 1);
    atomic_store(&may_end, true);
    wait_until(has_stopped);
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_until(are_left_ones_freed);
    wait_until(is_running);
    cr_assert_eq(configure_stuck("fifth", "1h"), 0, "%s", weir_last_error());
    cr_assert_eq(script->created - script->destroyed, 1, "and the next one is waited for");
}

Test(sources, one_that_was_left_behind_by_a_stop_and_ends_then_is_freed_by_the_next_start)
{
    script->run = end_if_allowed;
    cr_assert_eq(configure_stuck("first", "1h"), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_until(is_running);
    cr_assert_eq(weir_stop_sources(10), WEIR_ERR_TIMEOUT);
    atomic_store(&may_end, true);
    cr_assert_eq(weir_wait_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    cr_assert_eq(script->created - script->destroyed, 1);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(script->created, script->destroyed);
}

Test(sources, a_shutdown_does_not_wait_again_for_one_that_was_left_behind)
{
    script->run = end_if_allowed;
    cr_assert_eq(configure_stuck("first", "1h"), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_until(is_running);
    cr_assert_eq(weir_stop_sources(10), WEIR_ERR_TIMEOUT);
    cr_assert_eq(weir_shutdown(3600000), 0, "%s", weir_last_error());
    cr_assert_eq(script->created - script->destroyed, 1);
    atomic_store(&may_end, true);
}

Test(sources, variables_of_the_environment_are_labels_unless_the_option_has_them)
{
    script->run = add_one;
    setenv("CUSTOM_LABEL_TASK_NAME", "train", 1);
    setenv("CUSTOM_LABEL_ZONE", "theirs", 1);
    start(",\"label_variables\":\"CUSTOM_LABEL_\",\"labels\":{\"zone\":\"ours\"}");
    wait_end();
    cr_assert_eq(capture_count(), 1);
    cr_assert(strstr(capture_at(0)->labels, "task_name") && strstr(capture_at(0)->labels, "train"), "%s",
              capture_at(0)->labels);
    cr_assert(strstr(capture_at(0)->labels, "ours") && !strstr(capture_at(0)->labels, "theirs"), "%s",
              capture_at(0)->labels);
    assert_ledger("capture");
}

static void add_after_a_reload(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    while (!(intake_of(host)->wait(host, NULL, 0, -1) & (WEIR_WAIT_RELOAD | WEIR_WAIT_STOP)))
        ;
    add_one(host, tag, outcome);
}

/* What is freed is overwritten. */
Test(sources, labels_of_the_environment_stay_with_a_source_that_goes_on)
{
    mallopt(M_PERTURB, 0xa5);
    script->run = add_after_a_reload;
    setenv("CUSTOM_LABEL_TASK_NAME", "train", 1);
    start(",\"label_variables\":\"CUSTOM_LABEL_\"");
    wait_until(is_running);
    cr_assert_eq(configure(",\"label_variables\":\"CUSTOM_LABEL_\""), 0, "%s", weir_last_error());
    cr_assert_eq(weir_reload(), 0, "%s", weir_last_error());
    wait_end();
    cr_assert_eq(script->created - script->destroyed, 1);
    cr_assert_eq(capture_count(), 1);
    cr_assert(strstr(capture_at(0)->labels, "task_name") && strstr(capture_at(0)->labels, "train"), "%s",
              capture_at(0)->labels);
}

static bool is_refused(const char *options, const char *message)
{
    return configure(options) == WEIR_ERR_CONFIG && strstr(weir_last_error(), message);
}

Test(sources, an_invalid_source_refuses_the_whole_configuration)
{
    start("");
    cr_assert(is_refused(",\"tag\":\"refused\"", "sources.in.tag: must not be \"refused\""), "%s",
              weir_last_error());
    cr_assert(is_refused(",\"tga\":1", "tga"), "%s", weir_last_error());
    cr_assert(is_refused(",\"parse\":\"yaml\"", "sources.in.parse"), "%s", weir_last_error());
    cr_assert(is_refused(",\"retry_min\":\"1h\"", "retry_min"), "%s", weir_last_error());
    cr_assert_eq(script->created - script->destroyed, 1);
    cr_assert_eq(script->closed, 0);
}

Test(sources, an_unknown_type_is_refused_with_the_folders_that_were_searched)
{
    static const char text[] = "{\"sources\":{\"in\":{\"type\":\"fifoo\"}}}";
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), WEIR_ERR_PLUGIN);
    cr_assert(strstr(weir_last_error(), "sources.in.type: \"fifoo\" is not an installed source type"), "%s",
              weir_last_error());
}

/* ---- The state of threads -------------------------------------------------------------------- */

static _Atomic int mask_faults;

static void count_mask_faults(void *ctx, int level, const char *text)
{
    (void)ctx, (void)level;
    atomic_fetch_add(&mask_faults,
                     strstr(text, "in: the source type is at fault: it changed its thread's signal mask") !=
                         NULL);
}

static void change_mask(void)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    int change = sigismember(&mask, SIGHUP) ? SIG_UNBLOCK : SIG_BLOCK;
    sigemptyset(&mask);
    sigaddset(&mask, SIGHUP);
    pthread_sigmask(change, &mask, NULL);
}

Test(sources, what_close_and_destroy_change_of_their_threads_is_reverted_and_logged)
{
    sigset_t mask;
    weir_set_log(count_mask_faults, NULL);
    script->close = change_mask;
    start("");
    wait_until(is_running);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(mask_faults, 1);
    script->close = NULL;
    script->destroy = change_mask;
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(mask_faults, 2);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    cr_assert_eq(sigismember(&mask, SIGHUP), 0);
}

/* ---- The process ----------------------------------------------------------------------------- */

Test(sources, they_can_be_stopped_and_started_again)
{
    start("");
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0);
    cr_assert_eq(stats_of(0).state, WEIR_SOURCE_STOPPED);
    cr_assert_eq(script->created, script->destroyed);
    script->run = add_one;
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    wait_end();
    cr_assert_eq(capture_count(), 1);
    assert_ledger("capture");
}

enum { SMALL_STACK = 64 * 1024, PROMISED = 256 * 1024, OWN_FRAMES = 16 * 1024, PAGE = 4096 };

static __attribute__((noinline)) void fill_stack(void)
{
    volatile char frame[PROMISED - OWN_FRAMES];
    for (size_t i = sizeof frame; i > 0; i -= i < PAGE ? i : PAGE)
        frame[i - 1] = (char)i;
}

static void *start_and_stop(void *argument)
{
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    cr_assert_eq(weir_shutdown(PATIENCE_MS), 0, "%s", weir_last_error());
    return argument;
}

Test(sources, a_thread_with_a_small_stack_starts_stops_and_shuts_down_those_that_need_more)
{
    pthread_t thread;
    pthread_attr_t attributes;
    script->create = script->destroy = fill_stack;
    cr_assert_eq(configure(""), 0, "%s", weir_last_error());
    cr_assert_eq(pthread_attr_init(&attributes), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    cr_assert_eq(pthread_attr_setguardsize(&attributes, PROMISED), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, start_and_stop, NULL), 0);
    pthread_join(thread, NULL);
    cr_assert(script->created == 2 && script->destroyed == 2);
}

Test(sources, a_shutdown_stops_them_first)
{
    script->run = flood;
    capture_hold();
    start("");
    wait_until(is_full);
    capture_release();
    cr_assert_eq(weir_shutdown(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(capture_count(), stats_of(0).added);
    cr_assert_eq(script->created, script->destroyed);
    assert_ledger("capture");
    cr_assert_eq(weir_start_sources(), WEIR_ERR_CLOSED);
}

static _Atomic bool forks_after_starting;
static _Atomic int child_status = -1;

static bool is_open(void)
{
    return script->opened == 1;
}

/* Of a fork while a source is being started that is open already. */
static void fork_a_child(void)
{
    int status = -1;
    wait_until(is_open);
    pid_t child = fork();
    if (child == 0)
        _exit(script->abandoned == 1 ? 0 : 1);
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    atomic_store(&child_status, status);
}

/* In place of that of the C library, for weir, too. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*begin)(void *), void *argument)
{
    typedef int creating(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    creating *real = (creating *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
    int result = real(thread, attributes, begin, argument);
    if (atomic_exchange(&forks_after_starting, false))
        fork_a_child();
    return result;
}

Test(sources, a_child_that_is_forked_while_one_is_started_closes_it)
{
    start("");
    wait_until(is_open);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    script->opened = 0;
    atomic_store(&forks_after_starting, true);
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
    cr_assert_eq(child_status, 0);
}

Test(sources, a_forked_child_has_none)
{
    start("");
    wait_until(is_running);
    pid_t child = fork();
    if (child == 0) {
        weir_source_stats stats;
        int result = weir_get_source_name(0) ? 0 : weir_get_source_stats("in", &stats, sizeof stats);
        weir_add_value(weir_get_stream("g"), "m", 1);
        _exit(result == WEIR_ERR_ARGUMENT && script->abandoned == 1 && weir_flush(PATIENCE_MS) == 0 ? 0 : 1);
    }
    int status;
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert_eq(script->abandoned, 0);
    cr_assert_eq(stats_of(0).state, WEIR_SOURCE_RUNNING);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0);
}
