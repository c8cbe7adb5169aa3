#include "input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/command.h"
#include "common/delivery.h"
#include "os/clock.h"
#include "parse/repeats.h"
#include "reading.h"
#include "registry/stream.h"
#include "text/common.h"
#include "throttle.h"

enum { MAX_REPORTED = 20, SHOW_FIRST_MS = 1000, SHOW_EVERY_MS = 200, CHECK_EVERY_MS = 50 };

struct input {
    const struct record_defaults *defaults;
    struct input_counts *counts;
    struct wr_parser *parser;
    struct throttle throttle;
    uint64_t random;  /* for sampled measurements; never 0 */
    bool on_terminal; /* stderr is a terminal: progress is shown there */
    int64_t show_ns;  /* when to show it next */
    int64_t check_ns; /* when to check next whether there is still a handler */
};

/* ---- Messages -------------------------------------------------------------------------------- */

/* The carriage return lets the next output overwrite the line. */
static void show_progress(struct input *input)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    if (!input->on_terminal || now_ns < input->show_ns)
        return;
    input->show_ns = now_ns + SHOW_EVERY_MS * WR_NS_PER_MS;
    fprintf(stderr, "\x1b[K%" PRIu64 " lines, %" PRIu64 " values, %" PRIu64 " queued\r",
            wr_parser_lines(input->parser), input->counts->values, delivery_queued());
}

static void clear_progress(const struct input *input)
{
    if (input->on_terminal)
        fputs("\x1b[K", stderr);
}

/* column 0: unknown */
static void report(struct input *input, uint64_t line, unsigned column, const char *reason)
{
    uint64_t reported = input->counts->invalid + input->counts->left_out;
    if (reported == MAX_REPORTED + 1)
        command_fail("stdin: further invalid lines are only counted");
    if (reported > MAX_REPORTED)
        return;
    clear_progress(input);
    if (column)
        command_fail("stdin:%" PRIu64 ":%u: %s", line, column, reason);
    else
        command_fail("stdin:%" PRIu64 ": %s", line, reason);
}

static void refuse(void *context, const struct wr_parse_fault *fault)
{
    struct input *input = context;
    if (fault->is_value)
        input->counts->left_out++;
    else
        input->counts->invalid++;
    report(input, fault->line, fault->column, fault->text);
}

/* ---- One record ------------------------------------------------------------------------------ */

/* Such as a console whose reader has gone: reading on would have no effect. */
static bool have_handlers_ended(struct input *input)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    if (now_ns < input->check_ns)
        return false;
    input->check_ns = now_ns + CHECK_EVERY_MS * WR_NS_PER_MS;
    if (!delivery_has_ended())
        return false;
    command_fail("no handler takes values any more; the rest of stdin is not read");
    input->counts->failed = true;
    return true;
}

/* After a signal nothing is waited for any more: the handlers' `overflow` decides. */
static void wait_for_room(struct input *input, const char *group, size_t bytes)
{
    while (!reading_was_stopped() && !throttle_reserve(&input->throttle, group, bytes))
        show_progress(input);
}

/* Adds the record, as often as its sample rate means. Returns NULL, or why it was refused. */
static const char *add(struct input *input, const struct wr_parse_record *record)
{
    const char *group = record_group(input->defaults, record);
    if (!group)
        return "the line names no group, and -g GROUP is not given";
    weir_stream *stream = record_stream(input->defaults, record);
    if (stream->refusal)
        return record_add(stream, record);
    uint64_t left_out;
    uint32_t repeats = wr_repeats_choose(record, WR_REPEATS_MOST, &input->random, &left_out);
    const char *reason = NULL;
    for (; repeats && !reason; repeats--) {
        wait_for_room(input, group, record_bytes(record));
        reason = record_add(stream, record);
        input->counts->values += reason ? 0 : record->count;
    }
    return reason;
}

/* Returns false if the input ends. */
static bool take(void *context, const struct wr_parse_record *parsed)
{
    struct input *input = context;
    struct wr_parse_record whole = *parsed, *record = &whole;
    if (have_handlers_ended(input))
        return false;
    if (!record->instrument)
        record->instrument = input->defaults->instrument;
    const char *reason = add(input, record);
    if (reason) {
        input->counts->invalid++;
        report(input, record->line, 0, reason);
    }
    return true;
}

/* ---- The whole input ------------------------------------------------------------------------- */

static void fail(struct input *input, const char *reason)
{
    command_fail("stdin cannot be read: %s", reason);
    input->counts->failed = true;
}

/* Returns false at the end. */
static bool add_next(struct input *input)
{
    size_t room;
    char *to = wr_parser_room(input->parser, &room);
    ssize_t got = to ? reading_read(STDIN_FILENO, to, room) : -1;
    if (got > 0)
        return wr_parser_add(input->parser, (size_t)got);
    if (got < 0)
        fail(input, to ? strerror(errno) : "out of memory");
    else if (!reading_was_stopped()) /* after a signal the last line may be incomplete */
        wr_parser_end(input->parser);
    return false;
}

void input_add_all(const struct wr_parser_type *type, const struct wr_patterns *patterns,
                   const struct record_defaults *defaults, struct input_counts *counts)
{
    static struct input input;
    const struct wr_parser_sink sink = {take, refuse, &input};
    const struct wr_parser_options options = {.split =
                                                  defaults->group ? WR_PARSER_SPLIT_NONE : WR_PARSER_SPLIT_LAST,
                                              .patterns = patterns,
                                              .now = wr_clock_wall_ns};
    input = (struct input){.defaults = defaults, .counts = counts};
    *counts = (struct input_counts){0};
    input.parser = wr_parser_new(type, &options, &sink);
    if (!input.parser) {
        fail(&input, "out of memory");
        return;
    }
    input.random = (uint64_t)wr_clock_monotonic_ns() | 1;
    input.on_terminal = isatty(STDERR_FILENO);
    input.show_ns = wr_clock_deadline_ns(SHOW_FIRST_MS);
    reading_catch_signals();
    while (!have_handlers_ended(&input) && add_next(&input))
        show_progress(&input);
    counts->lines = wr_parser_lines(input.parser);
    clear_progress(&input);
    wr_parser_free(input.parser);
}
