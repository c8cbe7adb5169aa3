#include "input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "common/command.h"
#include "text/common.h"
#include "delivery.h"
#include "runtime/event.h"
#include "lines.h"
#include "registry/registry.h"
#include "input_line.h"
#include "throttle.h"

enum { MOST_SAID = 20, SHOW_FIRST_MS = 1000, SHOW_EVERY_MS = 200 };

struct input {
    const struct input_standards *standards;
    struct input_counts *counts;
    struct lines lines;
    struct throttle throttle;
    bool on_terminal;              /* somebody looks: progress is shown */
    int64_t show_ns;               /* when, next */
    struct input_line line_reader; /* the line at hand */
};

/* ---- What is said ---------------------------------------------------------------------------- */

/* The cursor goes back to the line's start, so that whatever is said next takes its place. */
static void show_progress(struct input *input)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    if (!input->on_terminal || now_ns < input->show_ns)
        return;
    input->show_ns = now_ns + SHOW_EVERY_MS * WR_NS_PER_MS;
    fprintf(stderr, "\x1b[K%" PRIu64 " lines, %" PRIu64 " values, %" PRIu64 " waiting\r", input->counts->lines,
            input->counts->values, delivery_queued());
}

static void end_progress(const struct input *input)
{
    if (input->on_terminal)
        fputs("\x1b[K", stderr);
}

static void complain(struct input *input, unsigned column, const char *words)
{
    if (input->counts->wrong++ == MOST_SAID)
        fputs("weir: stdin: further lines that are wrong are only counted\n", stderr);
    if (input->counts->wrong > MOST_SAID)
        return;
    end_progress(input);
    fprintf(stderr, "weir: stdin:%lu:", input->lines.number);
    if (column)
        fprintf(stderr, "%u:", column);
    fprintf(stderr, " %s\n", words);
}

/* ---- One line -------------------------------------------------------------------------------- */

static bool has_label(const struct input_line *line_reader, const char *key)
{
    for (size_t i = 0; i < line_reader->label_count; i++)
        if (strcmp(line_reader->labels[i].key, key) == 0)
            return true;
    return false;
}

/* The stream of the line's group, with its labels and those for all lines; its own count more. */
static weir_stream *find_stream(const struct input *input)
{
    const struct input_standards *standards = input->standards;
    const struct input_line *line_reader = &input->line_reader;
    const char *group = line_reader->group ? line_reader->group : standards->group;
    weir_label labels[2 * READING_MOST_LABELS];
    size_t count = line_reader->label_count;
    memcpy(labels, line_reader->labels, count * sizeof *labels);
    for (size_t i = 0; i < standards->label_count; i++)
        if (!has_label(line_reader, standards->labels[i].key))
            labels[count++] = standards->labels[i];
    return weir_get_stream_labeled(group, labels, count);
}

/* Whether it was not even taken. Any other answer is about its delivery, which the handlers' accounts tell. */
static bool is_refusal(int answer)
{
    switch (answer) {
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

/* Once a stop is asked there is no waiting any more: then `overflow` decides. */
static void wait_for_room(struct input *input, const char *group)
{
    const struct input_line *line_reader = &input->line_reader;
    uint64_t bytes =
        line_reader->count * sizeof(weir_sample) + (line_reader->metadata ? strlen(line_reader->metadata) : 0);
    while (!lines_were_stopped() && !throttle_take(&input->throttle, group, bytes))
        show_progress(input);
}

static void add_event(struct input *input)
{
    const struct input_line *line_reader = &input->line_reader;
    const struct wr_event event = {
        .values = line_reader->values,
        .count = line_reader->count,
        .time_ns = line_reader->timed ? &line_reader->time_ns : NULL,
        .cumulative = line_reader->cumulative,
        .metadata = line_reader->metadata,
    };
    if (!line_reader->group && !input->standards->group) {
        complain(input, 0, "it names no group, and there is no -g GROUP");
        return;
    }
    weir_stream *stream = find_stream(input);
    if (!stream->refusal)
        wait_for_room(input, line_reader->group ? line_reader->group : input->standards->group);
    if (stream->refusal || is_refusal(wr_event_add(stream, &event)))
        complain(input, 0, weir_last_error());
    else
        input->counts->values += line_reader->count;
}

/* Programs of other systems begin a text with it. */
static void skip_byte_order_mark(const struct input *input, char **line, size_t *length)
{
    static const char mark[] = "\xef\xbb\xbf";
    enum { MARK = sizeof mark - 1 };
    if (input->lines.number != 1 || *length < MARK || memcmp(*line, mark, MARK) != 0)
        return;
    *line += MARK;
    *length -= MARK;
}

static void add_line(struct input *input, char *line, size_t length)
{
    struct input_line_fault fault;
    skip_byte_order_mark(input, &line, &length);
    if (!input_line_take_line(&input->line_reader, line, length, &fault))
        complain(input, fault.column, fault.words);
    else if (input->line_reader.count)
        add_event(input);
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* false: that was the last one. */
static bool take_next(struct input *input)
{
    char *line;
    size_t length;
    enum lines_what what = lines_next(&input->lines, &line, &length);
    input->counts->lines = input->lines.number;
    switch (what) {
    case LINES_LINE: add_line(input, line, length); return true;
    case LINES_TOO_LONG: complain(input, 0, "longer than 1 MiB"); return true;
    case LINES_END: return false;
    default:
        command_fail("stdin cannot be read: %s", strerror(errno));
        input->counts->failed = true;
        return false;
    }
}

void input_add_all(const struct input_standards *standards, struct input_counts *counts)
{
    static struct input input;
    input = (struct input){.standards = standards, .counts = counts, .lines = {.fd = STDIN_FILENO}};
    input.on_terminal = isatty(STDERR_FILENO);
    input.show_ns = wr_clock_deadline_ns(SHOW_FIRST_MS);
    *counts = (struct input_counts){0};
    lines_catch_signals();
    while (take_next(&input))
        show_progress(&input);
    end_progress(&input);
    input_line_clear(&input.line_reader);
    lines_fini(&input.lines);
}
