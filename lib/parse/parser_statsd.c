#include <math.h>
#include <string.h>

#include "parse/parser_type.h"
#include "text/common.h"
#include "text/numeral.h"

/* StatsD: name:value|type|@rate, of which several may follow one name: name:320|ms:200|ms|@0.1. DogStatsD adds
 * |#key:value,key and |T, others with colons, and several values of one type: name:1:2:3|h. Counters are
 * increments, scaled by their rate; a gauge with a sign is a change of its level; timers, histograms and
 * distributions are histograms; a set's members are texts. Blanks around any part do not count. */

/* A part of a line. */
struct span {
    const char *at, *end;
};

/* What a line says of some of its values. */
struct parts {
    struct span type;
    double rate;
};

/* Values that share what follows them, which may be most of the line: it is read once. */
struct run {
    struct span name;
    struct parts parts;
    const char *bar, *end;         /* of what follows them */
    struct wr_parse_record record; /* as it is before a value is added, with text_used */
    size_t text_used;
};

/* ---- Parts ----------------------------------------------------------------------------------- */

static const char *find(const char *at, const char *end, char c)
{
    const char *found = memchr(at, c, (size_t)(end - at));
    return found ? found : end;
}

static struct span trim(const char *at, const char *end)
{
    at = wr_parse_skip_blanks(at, end);
    while (end > at && wr_parse_is_blank(end[-1]))
        end--;
    return (struct span){at, end};
}

static bool read_rate(struct wr_parser *parser, const char *at, const char *end, double *rate)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    if (wr_numeral_read_double(at, end, rate) && *rate > 0 && *rate <= 1)
        return true;
    return wr_parse_refuse(parser, at, "%s is not a sample rate (greater than 0, at most 1)",
                           wr_parse_quote(shown, at, end));
}

/* key:value or key; of a key that is given again, the last value holds. */
static bool read_tag(struct wr_parser *parser, const char *at, const char *end)
{
    const char *colon = find(at, end, ':');
    const char *key = wr_parse_keep_name(parser, at, colon, "tag");
    const char *value = colon < end ? wr_parse_keep(parser, colon + 1, end) : "";
    return key && (wr_parse_replace_label(parser, key, value) || wr_parse_add_label(parser, at, key, value));
}

static bool read_tags(struct wr_parser *parser, const char *at, const char *end)
{
    while (at < end) {
        const char *next = find(at, end, ',');
        if (next > at && !read_tag(parser, at, next))
            return false;
        at = next < end ? next + 1 : end;
    }
    return true;
}

/* What follows the type, from one '|' to the next. Unknown ones are skipped, as by servers. */
static bool read_extra(struct wr_parser *parser, struct span extra, struct parts *parts)
{
    if (extra.at < extra.end && *extra.at == '@')
        return read_rate(parser, extra.at + 1, extra.end, &parts->rate);
    if (extra.at < extra.end && *extra.at == '#')
        return read_tags(parser, extra.at + 1, extra.end);
    return extra.at == extra.end || *extra.at != 'T' || wr_parse_set_time(parser, extra.at + 1, extra.end);
}

/* Reads what follows the type, at `at`, and moves it to the colon before the next value, or to the end. Only
 * behind a type or a rate does a colon end something. */
static bool read_extras(struct wr_parser *parser, const char **at, struct parts *parts)
{
    while (*at < parser->line_end && **at == '|') {
        const char *next = find(*at + 1, parser->line_end, '|');
        struct span extra = trim(*at + 1, next);
        if (extra.at < extra.end && *extra.at == '@') {
            next = find(extra.at, next, ':');
            extra = trim(extra.at, next);
        }
        if (!read_extra(parser, extra, parts))
            return false;
        *at = next;
    }
    return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool is_type(const struct parts *parts, const char *type)
{
    size_t length = (size_t)(parts->type.end - parts->type.at);
    return strlen(type) == length && memcmp(parts->type.at, type, length) == 0;
}

static void scale(weir_number *value, double rate)
{
    double size = value->kind == WEIR_KIND_INT ? (double)value->is.i64 : value->is.f64;
    if (rate != 1) /* a rate of 0.1 counts each as exactly ten */
        *value = WEIR_DOUBLE(size / rate);
}

static bool read_number(struct wr_parser *parser, const char *at, const char *end, weir_number *value)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    return wr_numeral_read(at, end, WR_NUMERAL_PLUS, value) ||
           wr_parse_refuse(parser, at, "%s is not a finite number", wr_parse_quote(shown, at, end));
}

static bool read_counter(struct wr_parser *parser, const char *at, const char *end, const struct parts *parts,
                         weir_number *value)
{
    parser->record.instrument = WEIR_COUNTER;
    if (!read_number(parser, at, end, value))
        return false;
    scale(value, parts->rate);
    return value->kind == WEIR_KIND_INT || isfinite(value->is.f64) ||
           wr_parse_refuse(parser, at, "out of range with its sample rate");
}

static bool read_gauge(struct wr_parser *parser, const char *at, const char *end, weir_number *value)
{
    parser->record.instrument = WEIR_GAUGE;
    parser->record.is_change = at < end && (*at == '+' || *at == '-');
    return read_number(parser, at, end, value);
}

static bool read_measurement(struct wr_parser *parser, const char *at, const char *end,
                             const struct parts *parts, weir_number *value)
{
    parser->record.instrument = WEIR_HISTOGRAM;
    parser->record.unit = is_type(parts, "ms") ? "ms" : NULL;
    parser->record.sample_rate = parts->rate;
    return read_number(parser, at, end, value);
}

static bool read_member(struct wr_parser *parser, const char *at, const char *end, weir_number *value)
{
    parser->record.member = wr_parse_keep(parser, at, end);
    *value = WEIR_INT(1);
    return true;
}

static bool read_value(struct wr_parser *parser, const char *at, const char *end, const struct parts *parts,
                       weir_number *value)
{
    char shown[WR_PARSE_SHOWN_ROOM];
    if (is_type(parts, "c"))
        return read_counter(parser, at, end, parts, value);
    if (is_type(parts, "g"))
        return read_gauge(parser, at, end, value);
    if (is_type(parts, "ms") || is_type(parts, "h") || is_type(parts, "d"))
        return read_measurement(parser, at, end, parts, value);
    if (is_type(parts, "s"))
        return read_member(parser, at, end, value);
    return wr_parse_refuse(parser, parts->type.at, "%s is not a type (c, g, ms, h, d or s)",
                           wr_parse_quote(shown, parts->type.at, parts->type.end));
}

/* ---- A line ---------------------------------------------------------------------------------- */

/* An event of DogStatsD: _e{5,4}:title|text */
static bool is_event(const struct wr_parser *parser)
{
    static const char digits[] = "0123456789";
    const char *at = parser->line;
    if (strncmp(at, "_e{", 3) != 0)
        return false;
    at += 3 + strspn(at + 3, digits);
    if (*at != ',')
        return false;
    at += 1 + strspn(at + 1, digits);
    return strncmp(at, "}:", 2) == 0;
}

static bool refuse_line(struct wr_parser *parser)
{
    bool is_other = is_event(parser) || strncmp(parser->line, "_sc|", 4) == 0;
    return wr_parse_refuse(parser, parser->line,
                           is_other ? "an event or a service check, not a value"
                                    : "not a line like name:12.5|g (name:value|type)");
}

/* The values from parser->at on have what follows the next bar. */
static bool start_run(struct wr_parser *parser, struct run *run)
{
    const char *at = parser->at, *end = parser->line_end;
    wr_parse_start(parser);
    run->parts = (struct parts){.rate = 1};
    run->bar = at < end ? find(at, end, '|') : end;
    if (run->bar == end || run->name.at == run->name.end || is_event(parser))
        return refuse_line(parser);
    run->end = run->bar + 1 + strcspn(run->bar + 1, "|:"); /* the line ends in a NUL and has no other */
    run->parts.type = trim(run->bar + 1, run->end);
    if (!read_extras(parser, &run->end, &run->parts))
        return false;
    run->record = parser->record;
    run->text_used = parser->text_used;
    return true;
}

/* The next value is at parser->at. */
static bool read_next(struct wr_parser *parser, const struct run *run)
{
    const char *end = is_type(&run->parts, "s") ? run->bar /* members may contain colons */
                                                : find(parser->at, run->bar, ':');
    const struct span value = trim(parser->at, end);
    weir_number number;
    parser->record = run->record;
    parser->text_used = run->text_used;
    parser->at = end < run->bar ? end + 1 : run->end < parser->line_end ? run->end + 1 : parser->line_end;
    return read_value(parser, value.at, value.end, &run->parts, &number) &&
           wr_parse_add_path(parser, run->name.at, run->name.end, &number);
}

/* The first value of the line is behind the name, the next ones behind each other. */
static bool next(struct wr_parser *parser)
{
    struct run *run = parser->state;
    if (wr_parse_skip_blanks(parser->at, parser->line_end) == parser->line_end)
        return false;
    bool is_first = parser->at == parser->line;
    if (is_first) {
        const char *colon = find(parser->line, parser->line_end, ':');
        run->name = trim(parser->line, colon);
        parser->at = colon + 1;
    }
    if ((is_first || parser->at > run->bar) && !start_run(parser, run))
        return false;
    return read_next(parser, run);
}

const struct wr_parser_type wr_parser_statsd = {
    .name = "statsd",
    .has_paths = true,
    .next = next,
    .state_bytes = sizeof(struct run),
};
