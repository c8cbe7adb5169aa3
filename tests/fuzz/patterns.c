/* The parser "patterns": any lines become the same records and faults whole and in pieces, and, if they are
 * UTF-8, with expressions that are interpreted in place of compiled; what a record says is valid.
 *
 * The first byte selects the patterns (its low three bits) and the size of the pieces. */

#include "fuzz.h"
#include "parse/parser.h"
#include "registry/name.h"
#include "../support/parse_fixture.h"
#include "../../plugins/patterns/patterns.h"
#include "text/error.h"
#include "text/utf8.h"

/* Both forms of a set: JIT is "" or a verb that switches the just-in-time compiler off. */
#define PATTERN(JIT, expression, more) "{\"name\": \"x\", \"pattern\": \"" JIT expression "\"" more "}"
#define NO_JIT "(*NO_JIT)"
#define BOTH(set)                                                                                              \
    {                                                                                                          \
        set(""), set(NO_JIT)                                                                                   \
    }

#define NUMBERS(JIT) PATTERN(JIT, "([-+]?\\\\d*\\\\.\\\\d+|\\\\d+)", "")
#define PAIRS(JIT)                                                                                             \
    PATTERN(JIT, "(?<key>[^=\\\\s]*)=(?<value>\\\\S*)(?: (?<rest>.+))?",                                       \
            ", \"replace\": {\",\": \"\", \"K\": \"e3\"}")
#define EMPTY(JIT) PATTERN(JIT, "a*|(?=\\\\W)|\\\\b", ", \"value\": 1")
#define TIMES(JIT)                                                                                             \
    PATTERN(JIT, "(?<time>[-\\\\d]+ [\\\\d:.]+)(?<value>.*)", ", \"time\": \"%Y-%m-%d %H:%M:%S.%f\"")
#define SEVERAL(JIT)                                                                                           \
    "[" PATTERN(JIT, "(?<=(?<before>.))(\\\\d)\\\\K", "") ", " PATTERN(                                        \
        JIT, ".*?(?<c>\\\\p{L}+)", ", \"value\": 2") ", " PATTERN(JIT, "^(?:a|b|\\\\d)*(?<value>\\\\w)$",      \
                                                                  ", \"instrument\": \"counter\"") "]"
#define TICKS(JIT) PATTERN(JIT, "(?<time>\\\\S+) (.*)", ", \"time\": \"ms\", \"unit\": \"s\"")

static const char *const sets[][2] = {
    BOTH(NUMBERS),
    BOTH(PAIRS),
    BOTH(EMPTY),
    BOTH(TIMES),
    BOTH(SEVERAL),
    BOTH(TICKS),
    {"\"nginx\"", "\"nginx\""},
    {"{\"name\": \"x\", \"pattern\": \"YWNjPSguKik=\", \"units\": \"\"}", NULL}};

static struct wr_patterns *find_patterns(unsigned set, unsigned form)
{
    static struct wr_patterns *kept[sizeof sets / sizeof *sets][2];
    struct wr_error error;
    const char *text = sets[set][form] ? sets[set][form] : sets[set][0];
    if (!kept[set][form])
        kept[set][form] = wr_patterns_read("set", text, strlen(text), &error);
    if (!kept[set][form])
        fuzz_fail(__FILE__, __LINE__, error.text);
    return kept[set][form];
}

/* ---- Valid records --------------------------------------------------------------------------- */

static bool check_record(void *context, const struct wr_parse_record *record)
{
    struct wr_error error;
    uint64_t *last_line = context;
    FUZZ_CHECK(record->count == 1 && !record->group && !record->metadata && !record->member);
    FUZZ_CHECK(record->line && record->line >= *last_line && record->sample_rate == 1);
    FUZZ_CHECK(wr_name_check(record->values->name, "name", &error));
    for (size_t i = 0; i < record->label_count; i++) {
        const char *value = record->labels[i].value;
        FUZZ_CHECK(wr_name_check(record->labels[i].key, "key", &error));
        FUZZ_CHECK(wr_name_check_text(value, WR_NAME_VALUE_LONGEST, "label", &error));
    }
    *last_line = record->line;
    return true;
}

static void check_fault(void *context, const struct wr_parse_fault *fault)
{
    size_t length = strlen(fault->text);
    (void)context;
    FUZZ_CHECK(fault->line && length && length < WR_PARSE_FAULT_ROOM);
    FUZZ_CHECK(wr_utf8_is_valid(fault->text, length, NULL));
    for (size_t i = 0; i < length; i++)
        FUZZ_CHECK((unsigned char)fault->text[i] >= ' ');
}

static void check_whole(const struct wr_patterns *patterns, const char *data, size_t size)
{
    uint64_t last_line = 0;
    const struct wr_parser_sink sink = {check_record, check_fault, &last_line};
    const struct wr_parser_options options = {.patterns = patterns};
    struct wr_parser *parser = wr_parser_new(wr_patterns_type(), &options, &sink);
    size_t used;
    FUZZ_CHECK(parser && wr_parser_put(parser, data, size, &used) && used == size && wr_parser_end(parser));
    wr_parser_free(parser);
}

/* ---- The same each time ---------------------------------------------------------------------- */

static char *show(const struct wr_patterns *patterns, const char *data, size_t size, size_t piece,
                  unsigned refused_each)
{
    struct parse_fixture fixture = {.type = wr_patterns_type(),
                                    .options = {.line_bytes = 300, .patterns = patterns},
                                    .refused_each = refused_each};
    return parse_fixture_run(&fixture, NULL, data, size, piece);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    unsigned set = data[0] & 7, choice = data[0] >> 3;
    const char *text = (const char *)data + 1;
    setenv("TZ", "UTC", 1);
    check_whole(find_patterns(set, 0), text, size - 1);
    char *whole = show(find_patterns(set, 0), text, size - 1, size, 0);
    char *pieces = show(find_patterns(set, 0), text, size - 1, 1 + choice * 7, choice % 3);
    char *interpreted = show(find_patterns(set, 1), text, size - 1, size, 0);
    FUZZ_CHECK(strcmp(whole, pieces) == 0);
    /* beside other bytes than UTF-8 the two differ in empty matches */
    FUZZ_CHECK(!wr_utf8_is_valid(text, size - 1, NULL) || strcmp(whole, interpreted) == 0);
    free(whole);
    free(pieces);
    free(interpreted);
    return 0;
}
