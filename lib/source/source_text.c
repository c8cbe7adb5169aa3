#include "source/source_text.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "parse/parse_plugin.h"
#include "parse/parser.h"
#include "parse/repeats.h"
#include "runtime/runtime.h"
#include "source/source_host.h"
#include "text/error.h"

enum { WHERE_ROOM = 256 };

struct weir_text {
    struct wr_source *source;
    struct wr_parser *parser;
    uint64_t lines; /* that are counted */
    uint64_t bad_lines, added, refused;
    bool is_ending;            /* what finds no room is lost */
    uint32_t repeats;          /* how often the present record is still added; 0: that is not decided yet */
    uint64_t random;           /* state of a generator; never 0 */
    bool has_scope;            /* scope holds for it */
    weir_text_options scope;   /* a copy, with zeros beyond the end of a shorter struct */
    char fault[WR_ERROR_ROOM]; /* the first one */
    char where[WHERE_ROOM];    /* "": nothing to add to the source's name */
};

/* ---- Sampled measurements --------------------------------------------------------------------- */

/* What a line can cost is limited; what is left out then is counted, unless that was asked for. */
static uint32_t choose_repeats(weir_text *text, const struct wr_parse_record *parsed)
{
    const uint32_t most = (uint32_t)text->source->options.repeat_limit;
    uint64_t left_out;
    uint32_t repeats = wr_repeats_choose(parsed, most, &text->random, &left_out);
    if (left_out && most > 1)
        wr_source_host_count(text->source, WR_SOURCE_COUNT_REPEATS, left_out);
    return repeats;
}

/* ---- The parser's records -------------------------------------------------------------------- */

/* Before what is in the line is counted. */
static void count_lines(weir_text *text)
{
    uint64_t lines = wr_parser_lines(text->parser);
    atomic_fetch_add_explicit(&text->source->lines, lines - text->lines, memory_order_relaxed);
    text->lines = lines;
}

/* Returns enum weir_add_result: FULL until the record is added as often as it has to be. */
static int add_repeatedly(weir_text *text, const weir_record *record, const struct wr_parse_record *parsed)
{
    int result;
    if (!text->repeats)
        text->repeats = choose_repeats(text, parsed);
    do {
        result = text->source->add(text->source, record);
        if (result == WEIR_ADD_FULL)
            return result;
        text->added += result == WEIR_ADD_TAKEN ? record->count : 0;
    } while (--text->repeats && result == WEIR_ADD_TAKEN);
    text->repeats = 0;
    return result;
}

/* The same for a member of a set. */
static int take_member(weir_text *text, const weir_record *record, const char *member)
{
    weir_record set = *record;
    set.instrument = WEIR_GAUGE;
    set.unit = "members";
    set.metadata = NULL;
    int result = wr_source_sets_take(text->source, &set, member);
    text->added += result == WEIR_ADD_TAKEN;
    return result;
}

static bool take(void *context, const struct wr_parse_record *parsed)
{
    struct weir_text *text = context;
    count_lines(text);
    const char *colon = *text->where ? ": " : "";
    const weir_record record = {
        .size = sizeof record,
        .group = parsed->group,
        .labels = parsed->labels,
        .label_count = parsed->label_count,
        .values = parsed->values,
        .count = parsed->count,
        .time_ns = parsed->has_time ? parsed->time_ns : 0,
        .instrument = parsed->instrument,
        .flags =
            (parsed->cumulative ? WEIR_RECORD_CUMULATIVE : 0u) | (parsed->is_change ? WEIR_RECORD_CHANGE : 0u),
        .sample_rate = parsed->sample_rate,
        .unit = parsed->unit,
        .help = parsed->help,
        .metadata = parsed->member ? parsed->member : parsed->metadata,
    };
    bool counts_members = parsed->member && text->source->options.set_interval_ns;
    int result =
        counts_members ? take_member(text, &record, parsed->member) : add_repeatedly(text, &record, parsed);
    bool has_room = result != WEIR_ADD_FULL;
    text->refused += result == WEIR_ADD_REFUSED ? parsed->count : 0;
    if (!has_room && text->is_ending)
        wr_source_host_refuse(text->source, WR_SOURCE_FAULT_ROOM,
                              parsed->count * (text->repeats ? text->repeats : 1),
                              "%s%sline %llu: there was no room for it before the end", text->where, colon,
                              (unsigned long long)parsed->line);
    if (text->is_ending)
        text->repeats = 0;
    return has_room || text->is_ending;
}

static void refuse(void *context, const struct wr_parse_fault *fault)
{
    struct weir_text *text = context;
    count_lines(text);
    text->refused += fault->is_value;
    text->bad_lines += !fault->is_value;
    const char *colon = *text->where ? ": " : "";
    enum wr_source_fault kind = fault->is_value ? WR_SOURCE_FAULT_VALUE : WR_SOURCE_FAULT_LINE;
    if (fault->column)
        wr_source_host_refuse(text->source, kind, 1, "%s%sline %llu, column %u: %s", text->where, colon,
                              (unsigned long long)fault->line, fault->column, fault->text);
    else
        wr_source_host_refuse(text->source, kind, 1, "%s%sline %llu: %s", text->where, colon,
                              (unsigned long long)fault->line, fault->text);
}

/* ---- The service ----------------------------------------------------------------------------- */

static void free_text(weir_text *text)
{
    wr_parser_free(text->parser);
    free(text);
}

/* NULL: there is none of that name. */
static const struct wr_parser_type *find_type(const struct wr_source *source, const char *name)
{
    if (name)
        return wr_parser_type_find(name);
    return source->patterns.plugin ? source->patterns.plugin->type
                                   : wr_parser_type_at((size_t)source->options.parse);
}

bool wr_source_text_has_groups(const struct wr_source *source)
{
    if (!(source->type->is.flags & WEIR_SOURCE_TYPE_PARSES))
        return false;
    return wr_parser_type_has_groups(find_type(source, NULL), wr_source_options_parser(&source->options).split);
}

static weir_text *begin(const weir_host *host, const char *where, const weir_text_options *given)
{
    struct wr_source *source = wr_source_from_host(host);
    weir_text *text = calloc(1, sizeof *text);
    if (!text)
        return NULL;
    struct wr_parser_options options = wr_source_options_parser(&source->options);
    const struct wr_parser_sink sink = {take, refuse, text};
    options.patterns = source->patterns.patterns;
    options.now = wr_clock_wall_ns;
    text->source = source;
    text->random = (source->runtime->registry.seed ^ (uint64_t)(uintptr_t)text) | 1;
    text->has_scope = given;
    if (given)
        memcpy(&text->scope, given, given->size < sizeof text->scope ? given->size : sizeof text->scope);
    if (text->scope.time_unit_ns)
        options.time_unit_ns = text->scope.time_unit_ns;
    strncat(text->where, where ? where : "", WHERE_ROOM - 1);
    const struct wr_parser_type *type = find_type(source, text->scope.parse);
    text->parser = type ? wr_parser_new(type, &options, &sink) : NULL;
    if (text->parser)
        return text;
    free_text(text);
    return NULL;
}

/* What is added or refused until `leave` is of this text. */
static void enter(weir_text *text)
{
    text->source->scope = text->has_scope ? &text->scope : NULL;
    text->source->fault = text->fault;
}

static void leave(weir_text *text)
{
    count_lines(text);
    text->source->scope = NULL;
    text->source->fault = NULL;
}

static char *room(weir_text *text, size_t *room)
{
    return wr_parser_room(text->parser, room);
}

static bool parse(weir_text *text, size_t length)
{
    enter(text);
    atomic_fetch_add_explicit(&text->source->bytes, length, memory_order_relaxed);
    bool done = wr_parser_add(text->parser, length);
    leave(text);
    return done;
}

static bool resume(weir_text *text)
{
    enter(text);
    bool done = wr_parser_resume(text->parser);
    leave(text);
    return done;
}

static bool finish(weir_text *text, bool is_whole)
{
    enter(text);
    size_t torn = is_whole ? 0 : wr_parser_cut(text->parser);
    if (torn)
        wr_source_host_refuse(text->source, WR_SOURCE_FAULT_LINE, 1,
                              "%s%sthe last line is torn, after %zu bytes", text->where,
                              *text->where ? ": " : "", torn);
    text->bad_lines += torn > 0;
    bool done = wr_parser_end(text->parser);
    leave(text);
    return done;
}

static void end(weir_text *text)
{
    if (!text)
        return;
    text->is_ending = true;
    finish(text, false);
    free_text(text);
}

static void read_totals(const weir_text *text, weir_text_totals *totals)
{
    const weir_text_totals all = {
        totals->size,
        text->lines,
        text->bad_lines,
        text->added,
        text->refused,
        text->fault,
        wr_parser_pending(text->parser),
    };
    memcpy(totals, &all, all.size < sizeof all ? all.size : sizeof all);
}

static void cancel(weir_text *text)
{
    if (text)
        free_text(text);
}

static const weir_parser service = {
    .size = sizeof service,
    .begin = begin,
    .room = room,
    .parse = parse,
    .resume = resume,
    .finish = finish,
    .end = end,
    .read_totals = read_totals,
    .cancel = cancel,
};

const weir_parser *wr_source_text_service(void)
{
    return &service;
}
