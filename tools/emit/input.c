#include "input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/command.h"
#include "delivery.h"
#include "input_line.h"
#include "lines.h"
#include "os/clock.h"
#include "registry/registry.h"
#include "runtime/event.h"
#include "text/common.h"
#include "throttle.h"

enum { MAX_REPORTED = 20, SHOW_FIRST_MS = 1000, SHOW_EVERY_MS = 200 };

struct input {
    const struct input_defaults *defaults;
    struct input_counts *counts;
    struct lines lines;
    struct throttle throttle;
    bool on_terminal;       /* stderr is a terminal: progress is shown there */
    int64_t show_ns;        /* when to show it next */
    struct input_line line; /* the current one */
};

/* ---- Messages -------------------------------------------------------------------------------- */

/* The carriage return lets the next output overwrite the line. */
static void show_progress(struct input *input)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    if (!input->on_terminal || now_ns < input->show_ns)
        return;
    input->show_ns = now_ns + SHOW_EVERY_MS * WR_NS_PER_MS;
    fprintf(stderr, "\x1b[K%" PRIu64 " lines, %" PRIu64 " values, %" PRIu64 " queued\r", input->counts->lines,
            input->counts->values, delivery_queued());
}

static void clear_progress(const struct input *input)
{
    if (input->on_terminal)
        fputs("\x1b[K", stderr);
}

/* column 0: unknown */
static void report_invalid(struct input *input, unsigned column, const char *reason)
{
    if (input->counts->invalid++ == MAX_REPORTED)
        command_fail("stdin: further invalid lines are only counted");
    if (input->counts->invalid > MAX_REPORTED)
        return;
    clear_progress(input);
    if (column)
        command_fail("stdin:%lu:%u: %s", input->lines.number, column, reason);
    else
        command_fail("stdin:%lu: %s", input->lines.number, reason);
}

/* ---- One line -------------------------------------------------------------------------------- */

static bool has_label(const struct input_line *line, const char *key)
{
    for (size_t i = 0; i < line->label_count; i++)
        if (strcmp(line->labels[i].key, key) == 0)
            return true;
    return false;
}

/* The line's own group and labels take precedence over the defaults. */
static weir_stream *find_stream(const struct input *input)
{
    const struct input_defaults *defaults = input->defaults;
    const struct input_line *line = &input->line;
    const char *group = line->group ? line->group : defaults->group;
    weir_label labels[2 * INPUT_LINE_MAX_LABELS];
    size_t count = line->label_count;
    memcpy(labels, line->labels, count * sizeof *labels);
    for (size_t i = 0; i < defaults->label_count; i++)
        if (!has_label(line, defaults->labels[i].key))
            labels[count++] = defaults->labels[i];
    return weir_get_stream_labeled(group, labels, count);
}

/* Whether the event was not accepted. The other errors are about its delivery, which the handlers' counts
 * show. */
static bool is_refusal(int result)
{
    switch (result) {
    case WEIR_ERR_ARGUMENT:
    case WEIR_ERR_NAME:
    case WEIR_ERR_MEMORY:
    case WEIR_ERR_LIMIT:
    case WEIR_ERR_CLOSED:
    case WEIR_ERR_BUSY:
    case WEIR_ERR_TOO_LARGE: return true;
    default: return false;
    }
}

/* After a signal nothing is waited for any more: the handlers' `overflow` decides. */
static void wait_for_room(struct input *input, const char *group)
{
    const struct input_line *line = &input->line;
    uint64_t bytes = line->count * sizeof(weir_sample) + (line->metadata ? strlen(line->metadata) : 0);
    while (!lines_were_stopped() && !throttle_reserve(&input->throttle, group, bytes))
        show_progress(input);
}

static void add_event(struct input *input)
{
    const struct input_line *line = &input->line;
    const struct wr_event event = {
        .values = line->values,
        .count = line->count,
        .time_ns = line->has_time ? &line->time_ns : NULL,
        .cumulative = line->cumulative,
        .metadata = line->metadata,
    };
    if (!line->group && !input->defaults->group) {
        report_invalid(input, 0, "the line names no group, and -g GROUP is not given");
        return;
    }
    weir_stream *stream = find_stream(input);
    if (!stream->refusal)
        wait_for_room(input, line->group ? line->group : input->defaults->group);
    if (stream->refusal || is_refusal(wr_event_add(stream, &event)))
        report_invalid(input, 0, weir_last_error());
    else
        input->counts->values += line->count;
}

static void skip_byte_order_mark(const struct input *input, char **line, size_t *length)
{
    static const char mark[] = "\xef\xbb\xbf";
    enum { MARK = sizeof mark - 1 };
    if (input->lines.number != 1 || *length < MARK || memcmp(*line, mark, MARK) != 0)
        return;
    *line += MARK;
    *length -= MARK;
}

static void add_line(struct input *input, char *text, size_t length)
{
    struct input_line_fault fault;
    skip_byte_order_mark(input, &text, &length);
    if (!input_line_parse(&input->line, text, length, &fault))
        report_invalid(input, fault.column, fault.text);
    else if (input->line.count)
        add_event(input);
}

/* ---- All lines ------------------------------------------------------------------------------- */

/* Returns false at the end. */
static bool add_next(struct input *input)
{
    char *text;
    size_t length;
    enum lines_result result = lines_next(&input->lines, &text, &length);
    input->counts->lines = input->lines.number;
    switch (result) {
    case LINES_LINE: add_line(input, text, length); return true;
    case LINES_TOO_LONG: report_invalid(input, 0, "longer than 1 MiB"); return true;
    case LINES_END: return false;
    default:
        command_fail("stdin cannot be read: %s", strerror(errno));
        input->counts->failed = true;
        return false;
    }
}

void input_add_all(const struct input_defaults *defaults, struct input_counts *counts)
{
    static struct input input;
    input = (struct input){.defaults = defaults, .counts = counts, .lines = {.fd = STDIN_FILENO}};
    input.on_terminal = isatty(STDERR_FILENO);
    input.show_ns = wr_clock_deadline_ns(SHOW_FIRST_MS);
    *counts = (struct input_counts){0};
    lines_catch_signals();
    while (add_next(&input))
        show_progress(&input);
    clear_progress(&input);
    input_line_clear(&input.line);
    lines_fini(&input.lines);
}
