#include <string.h>
#include <time.h>

#include "parse/parser_type.h"
#include "registry/name.h"
#include "text/common.h"
#include "text/error.h"
#include "text/numeral.h"
#include "text/utf8.h"

#include "compiled_patterns.h"

/* Each match of a pattern in a line is a record of one value; patterns are tried one after the other, in their
 * order.
 *
 * What a line may cost is bounded. PCRE2's own limits are for one place of the line, or for its memory; within
 * one step it may read the whole line. So its callouts at each item of an expression also check the processor's
 * time. */

enum { MATCH_LIMIT = 4000000, DEPTH_LIMIT = 1000000, HEAP_LIMIT_KIB = 16 * 1024 };
enum { JIT_STACK_START = 32 * 1024, JIT_STACK_MOST = 16 * 1024 * 1024 };

/* The most processor time for a line; how much work is done before it is read again: a callout, and one for
 * each KiB of the line. */
#define LINE_LIMIT_NS WR_NS_PER_S
enum { WORK_PER_CHECK = 4096 };

/* A fault costs as much as its line is long, so their number is limited. */
enum { MOST_FAULTS = 100 };

enum { LONGEST_TEXT = WR_NAME_VALUE_LONGEST };

struct state {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack; /* NULL: there is no just-in-time compiler */
    const size_t *ends;     /* of the match: start and end of each group, in `match` */

    uint64_t line;    /* its number; 0: none yet */
    bool is_valid;    /* UTF-8 */
    uint32_t item;    /* the pattern that is being tried */
    size_t from;      /* where its next match may begin */
    bool after_empty; /* its last match was empty, so the next one is not empty at the same place */
    unsigned faults;

    size_t work;
    bool is_timed; /* start_ns is set */
    int64_t start_ns;

    char number[LONGEST_TEXT + 1];
    char labels[WR_PARSER_LABELS][LONGEST_TEXT + 1];
};

/* ---- The state ------------------------------------------------------------------------------- */

static void free_state(void *memory)
{
    struct state *state = memory;
    pcre2_match_data_free(state->match);
    pcre2_match_context_free(state->context);
    pcre2_jit_stack_free(state->stack);
}

static int64_t read_processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * WR_NS_PER_S + now.tv_nsec;
}

/* Called by PCRE2. Returns 0, or an error that ends the match. */
static int check_time(pcre2_callout_block *block, void *context)
{
    struct state *state = context;
    state->work += 1 + block->subject_length / 1024;
    if (state->work < WORK_PER_CHECK)
        return 0;
    state->work = 0;
    int64_t now_ns = read_processor_ns();
    if (!state->is_timed)
        state->start_ns = now_ns;
    state->is_timed = true;
    return now_ns - state->start_ns > LINE_LIMIT_NS ? PCRE2_ERROR_CALLOUT : 0;
}

/* Returns false if out of memory. */
static bool prepare(struct wr_parser *parser)
{
    struct state *state = parser->state;
    if (!state->match)
        state->match = pcre2_match_data_create(parser->options.patterns->most_groups + 1, NULL);
    if (!state->context)
        state->context = pcre2_match_context_create(NULL);
    if (!state->match || !state->context)
        return false;
    if (!state->stack)
        state->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MOST, NULL);
    pcre2_jit_stack_assign(state->context, NULL, state->stack);
    pcre2_set_match_limit(state->context, MATCH_LIMIT);
    pcre2_set_depth_limit(state->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(state->context, HEAP_LIMIT_KIB);
    pcre2_set_callout(state->context, check_time, state);
    state->ends = pcre2_get_ovector_pointer(state->match);
    return true;
}

/* Returns false if out of memory. */
static bool start_line(struct wr_parser *parser)
{
    struct state *state = parser->state;
    if (!state->ends && !prepare(parser))
        return wr_parse_refuse(parser, NULL, "out of memory");
    state->line = parser->lines;
    state->is_valid = wr_utf8_is_valid(parser->line, (size_t)(parser->line_end - parser->line), NULL);
    state->item = 0;
    state->from = 0;
    state->after_empty = false;
    state->faults = 0;
    state->work = 0;
    state->is_timed = false;
    return true;
}

static void end_line(struct wr_parser *parser)
{
    ((struct state *)parser->state)->item = parser->options.patterns->count;
}

/* ---- Faults ---------------------------------------------------------------------------------- */

/* After a value was left out. Returns false. */
static bool count_fault(struct wr_parser *parser)
{
    struct state *state = parser->state;
    if (++state->faults == MOST_FAULTS) {
        wr_parse_refuse(parser, NULL, "more than %d faults; the rest of the line is not read", MOST_FAULTS - 1);
        end_line(parser);
    }
    return false;
}

/* A match that PCRE2 gave up: the rest of the line is not searched for the pattern. */
static void report_limit(struct wr_parser *parser, const struct wr_pattern *pattern, int result)
{
    const char *from = parser->line + ((struct state *)parser->state)->from;
    PCRE2_UCHAR message[256];
    char shown[WR_PARSE_SHOWN_ROOM];
    wr_parse_quote(shown, pattern->name, pattern->name + strlen(pattern->name));
    if (result == PCRE2_ERROR_CALLOUT) {
        wr_parse_leave_out(parser, from,
                           "the pattern of %s: the line takes more than 1 s of processor time; the rest of it "
                           "is not read",
                           shown);
        end_line(parser);
        return;
    }
    pcre2_get_error_message(result, message, sizeof message);
    wr_parse_leave_out(parser, from, "the pattern of %s: %s; the rest of the line is not searched for it",
                       shown, (const char *)message);
    count_fault(parser);
}

/* ---- Matches --------------------------------------------------------------------------------- */

/* The line's end is part of what an expression of Python's is for. */
static int match(struct wr_parser *parser, const struct wr_pattern *pattern, uint32_t options)
{
    struct state *state = parser->state;
    size_t length = (size_t)(parser->line_end - parser->line);
    char *end = parser->buffer + (parser->line_end - parser->buffer); /* the NUL behind the line */
    if (pattern->is_python) {
        *end = '\n';
        length++;
    }
    int result = pcre2_match(state->is_valid ? pattern->valid : pattern->invalid, (PCRE2_SPTR)parser->line,
                             length, state->from, options, state->match, state->context);
    *end = '\0';
    return result;
}

/* Finds the next match of the pattern. Returns false if there is none. */
static bool find(struct wr_parser *parser, const struct wr_pattern *pattern)
{
    struct state *state = parser->state;
    uint32_t options =
        (state->is_valid ? PCRE2_NO_UTF_CHECK : 0) | (state->after_empty ? PCRE2_NOTEMPTY_ATSTART : 0);
    int result = match(parser, pattern, options);
    if (result != PCRE2_ERROR_NOMATCH && result <= 0)
        report_limit(parser, pattern, result);
    if (result <= 0)
        return false;
    size_t start = state->ends[0], end = state->ends[1];
    if (start > end || (state->after_empty && end <= state->from))
        return false; /* possible with \K in a lookaround, in old versions of PCRE2: no progress */
    state->after_empty = start == end;
    state->from = end;
    return true;
}

/* The text of a group, without the line's end. Returns false if it did not take part in the match. */
static bool find_group(struct wr_parser *parser, uint32_t group, const char **at, const char **end)
{
    const struct state *state = parser->state;
    size_t from = state->ends[2 * group], to = state->ends[2 * group + 1];
    if (from == PCRE2_UNSET || from > to)
        return false;
    size_t length = (size_t)(parser->line_end - parser->line);
    *at = parser->line + (from < length ? from : length);
    *end = parser->line + (to < length ? to : length);
    return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static const struct wr_pattern_replacement *find_replacement(const struct wr_pattern *pattern, const char *at,
                                                             const char *end)
{
    for (size_t i = 0; i < pattern->replacement_count; i++) {
        const struct wr_pattern_replacement *replacement = &pattern->replacements[i];
        if ((size_t)(end - at) >= replacement->from_length &&
            memcmp(at, replacement->from, replacement->from_length) == 0)
            return replacement;
    }
    return NULL;
}

/* Copies [at, end) with its replacements to out. Returns the end; NULL: it is too long. */
static char *copy(const struct wr_pattern *pattern, const char *at, const char *end, char out[LONGEST_TEXT + 1])
{
    const char *limit = out + LONGEST_TEXT;
    while (at < end) {
        const struct wr_pattern_replacement *found = find_replacement(pattern, at, end);
        size_t length = found ? found->to_length : 1;
        if ((size_t)(limit - out) < length)
            return NULL;
        memcpy(out, found ? found->to : at, length);
        out += length;
        at += found ? found->from_length : 1;
    }
    *out = '\0';
    return out;
}

static bool read_number(struct wr_parser *parser, const struct wr_pattern *pattern, const char *at,
                        const char *end, weir_number *value)
{
    struct state *state = parser->state;
    const char *stop = copy(pattern, at, end, state->number);
    if (!stop)
        return false;
    const char *start = wr_parse_skip_blanks(state->number, stop);
    while (stop > start && wr_parse_is_blank(stop[-1]))
        stop--;
    state->number[stop - state->number] = '\0';
    return wr_numeral_read(start, stop, WR_NUMERAL_PLUS | WR_NUMERAL_SPECIAL, value);
}

/* The group "value", else the constant, else the first group without a name, else the whole match. */
static bool read_value(struct wr_parser *parser, const struct wr_pattern *pattern, weir_number *value)
{
    char name[WR_PARSE_SHOWN_ROOM], shown[WR_PARSE_SHOWN_ROOM];
    const char *at, *end;
    bool has_group = (pattern->has_value_group || !pattern->has_constant) &&
                     find_group(parser, pattern->value_group, &at, &end);
    if (!has_group && pattern->has_constant) {
        *value = pattern->constant;
        return true;
    }
    if (has_group && read_number(parser, pattern, at, end, value))
        return true;
    wr_parse_quote(name, pattern->name, pattern->name + strlen(pattern->name));
    if (has_group)
        wr_parse_leave_out(parser, at, "%s: %s is not a number", name, wr_parse_quote(shown, at, end));
    else
        wr_parse_leave_out(parser, parser->line + ((struct state *)parser->state)->ends[0],
                           "%s: the match has no value: its group took no part", name);
    return count_fault(parser);
}

/* ---- Labels and time ------------------------------------------------------------------------- */

/* A group that took no part is no label. Bytes that are not UTF-8 are in no match. */
static bool read_label(struct wr_parser *parser, const struct wr_pattern_label *label, char *text)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    const char *at, *end;
    if (!find_group(parser, label->group, &at, &end))
        return true;
    size_t length = (size_t)(end - at);
    if (length > LONGEST_TEXT || memchr(at, '\0', length)) {
        wr_parse_leave_out(parser, at, "the label \"%s\": %s %s", label->key, wr_parse_quote(shown, at, end),
                           length > LONGEST_TEXT ? "is longer than 1023 bytes" : "has a NUL byte");
        return count_fault(parser);
    }
    memcpy(text, at, length);
    text[length] = '\0';
    if (wr_parse_add_label(parser, at, label->key, text))
        return true;
    end_line(parser);
    return false;
}

static bool read_labels(struct wr_parser *parser, const struct wr_pattern *pattern)
{
    struct state *state = parser->state;
    for (size_t i = 0; i < pattern->label_count; i++)
        if (!read_label(parser, &pattern->labels[i], state->labels[i]))
            return false;
    return true;
}

static bool read_time(struct wr_parser *parser, const struct wr_pattern *pattern)
{
    struct wr_parse_record *record = &parser->record;
    char shown[WR_PARSE_SHOWN_ROOM];
    const char *at, *end;
    if (!pattern->time_group || !find_group(parser, pattern->time_group, &at, &end))
        return true;
    record->has_time = wr_time_form_read(&pattern->time, at, end, &record->time_ns);
    if (record->has_time)
        return true;
    wr_parse_leave_out(parser, at, "%s is not a time (%s)", wr_parse_quote(shown, at, end),
                       pattern->time.format    ? pattern->time.format
                       : pattern->time.unit_ns ? "an integer, since 1970"
                                               : "seconds since 1970, like 1795219607.5");
    return count_fault(parser);
}

/* ---- A record -------------------------------------------------------------------------------- */

static bool read_match(struct wr_parser *parser, const struct wr_pattern *pattern)
{
    weir_number value;
    wr_parse_start(parser);
    parser->record.instrument = pattern->instrument;
    parser->record.unit = pattern->unit;
    if (!read_value(parser, pattern, &value) || !read_labels(parser, pattern) || !read_time(parser, pattern))
        return false;
    if (wr_parse_add_value(parser, parser->line, pattern->name, &value))
        return true;
    end_line(parser);
    return false;
}

static bool next(struct wr_parser *parser)
{
    const struct wr_patterns *patterns = parser->options.patterns;
    struct state *state = parser->state;
    if (state->line != parser->lines && !start_line(parser))
        return false;
    while (state->item < patterns->count) {
        const struct wr_pattern *pattern = &patterns->items[state->item];
        if (find(parser, pattern)) {
            if (read_match(parser, pattern))
                return true;
        } else if (state->item < patterns->count) {
            state->item++;
            state->from = 0;
            state->after_empty = false;
        }
    }
    return false;
}

static const struct wr_parser_type patterns = {
    .name = "patterns",
    .next = next,
    .takes_any_bytes = true,
    .state_bytes = sizeof(struct state),
    .free_state = free_state,
};

const struct wr_parser_type *wr_patterns_type(void)
{
    return &patterns;
}
