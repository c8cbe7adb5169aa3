#include "source/source_text.h"

#include <stdlib.h>
#include <string.h>

#include "parse/parser.h"
#include "source/source_host.h"

enum { WHERE_ROOM = 256 };

struct weir_text {
    struct wr_source *source;
    struct wr_parser *parser;
    uint64_t lines;         /* that are counted */
    bool is_ending;         /* what finds no room is lost */
    char where[WHERE_ROOM]; /* "": nothing to add to the source's name */
};

/* ---- The parser's records -------------------------------------------------------------------- */

/* Before what is in the line is counted. */
static void count_lines(weir_text *text)
{
    uint64_t lines = wr_parser_lines(text->parser);
    atomic_fetch_add_explicit(&text->source->lines, lines - text->lines, memory_order_relaxed);
    text->lines = lines;
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
    bool has_room = wr_source_host_add(text->source, &record) != WEIR_ADD_FULL;
    if (!has_room && text->is_ending)
        wr_source_host_refuse(text->source, WR_SOURCE_FAULT_ROOM, parsed->count,
                              "%s%sline %llu: there was no room for it before the end", text->where, colon,
                              (unsigned long long)parsed->line);
    return has_room || text->is_ending;
}

static void refuse(void *context, const struct wr_parse_fault *fault)
{
    struct weir_text *text = context;
    count_lines(text);
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

static weir_text *begin(const weir_host *host, const char *where)
{
    struct wr_source *source = (struct wr_source *)host; /* shown is its first member */
    weir_text *text = calloc(1, sizeof *text);
    if (!text)
        return NULL;
    const struct wr_parser_options options = wr_source_options_parser(&source->options);
    const struct wr_parser_sink sink = {take, refuse, text};
    text->source = source;
    strncat(text->where, where ? where : "", WHERE_ROOM - 1);
    text->parser = wr_parser_new(wr_parser_type_at((size_t)source->options.parse), &options, &sink);
    if (text->parser)
        return text;
    free_text(text);
    return NULL;
}

static char *room(weir_text *text, size_t *room)
{
    return wr_parser_room(text->parser, room);
}

static bool parse(weir_text *text, size_t length)
{
    bool done = wr_parser_add(text->parser, length);
    count_lines(text);
    return done;
}

static bool resume(weir_text *text)
{
    bool done = wr_parser_resume(text->parser);
    count_lines(text);
    return done;
}

static bool finish(weir_text *text, bool is_whole)
{
    size_t torn = is_whole ? 0 : wr_parser_cut(text->parser);
    if (torn)
        wr_source_host_refuse(text->source, WR_SOURCE_FAULT_LINE, 1,
                              "%s%sthe last line is torn, after %zu bytes", text->where,
                              *text->where ? ": " : "", torn);
    bool done = wr_parser_end(text->parser);
    count_lines(text);
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

static const weir_parser service = {sizeof service, begin, room, parse, resume, finish, end};

const weir_parser *wr_source_text_service(void)
{
    return &service;
}
