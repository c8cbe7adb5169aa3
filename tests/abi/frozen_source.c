/* frozen_source: a source plugin built from the headers in 1/, copied when they were recorded, and from
 * no other header of weir. It uses all services.
 *
 * Three types: one with the frozen structs, one whose structs end early, and one with longer structs, as a
 * later version would have. Each adds some values, waits until they are delivered, and ends. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/source.h>

#if WEIR_SOURCE_ABI != 1
#error "these are not the headers of ABI 1"
#endif

struct options {
    const char *name;
    double level;
    weir_list list;
};

/* A row of a later version. */
struct row {
    weir_option known;
    const char *later;
};

#define ROW(name, type, flags, default_value, field)                                                           \
    {                                                                                                          \
        {name, type, flags, default_value, NULL, "of the frozen source", offsetof(struct options, field)},     \
            "later"                                                                                            \
    }

static const struct row rows[] = {
    ROW("about.name", WEIR_OPTION_STRING, WEIR_OPTION_REQUIRED, NULL, name),
    ROW("level", WEIR_OPTION_DOUBLE, 0, "2.5", level),
    ROW("list", WEIR_OPTION_LIST, 0, NULL, list),
    {{0}, NULL},
};

static weir_option plain_rows[sizeof rows / sizeof *rows];

static const weir_default defaults[] = {{"parse", "influx"}, {"series_limit", "50"}, {NULL, NULL}};

struct frozen {
    const weir_host *host;
    const weir_intake *intake;
    const struct options *options;
};

static void fail(int line)
{
    fprintf(stderr, "frozen_source.c:%d\n", line);
    abort();
}

#define NEED(condition)                                                                                        \
    do                                                                                                         \
        if (!(condition))                                                                                      \
            fail(__LINE__);                                                                                    \
    while (0)

static void *create(const weir_host *host, const void *given)
{
    const struct options *options = given;
    if (options->level < 0) {
        host->refuse(host, "level", "%g is not a level; allowed: 0 and more", options->level);
        return NULL;
    }
    struct frozen *frozen = calloc(1, sizeof *frozen);
    if (!frozen)
        return NULL;
    frozen->host = host;
    frozen->options = options;
    return frozen;
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct frozen *frozen = self;
    if (frozen->intake) /* it was opened before */
        return;
    frozen->intake = frozen->host->service(frozen->host, WEIR_SERVICE_INTAKE);
    outcome->code = WEIR_OUTCOME_RETRY;
    strcpy(outcome->reason, "not at once");
}

/* ---- What it adds ---------------------------------------------------------------------------- */

static void add_records(const struct frozen *frozen)
{
    const weir_label labels[] = {{"zone", "x"}};
    const weir_typed_value values[] = {{"level", WEIR_DOUBLE(frozen->options->level)},
                                       {"length", WEIR_INT((int64_t)frozen->options->list.count)}};
    weir_record record = {.size = sizeof record,
                          .group = frozen->options->name,
                          .labels = labels,
                          .label_count = 1,
                          .values = values,
                          .count = 2,
                          .time_ns = 1234567890000000000,
                          .instrument = WEIR_GAUGE,
                          .unit = "m",
                          .help = "a level"};
    NEED(frozen->intake->add(frozen->host, &record) == WEIR_ADD_TAKEN);
    record = (weir_record){.values = &(weir_typed_value){"total", WEIR_INT(7)}, .count = 1, .time_ns = -1};
    record.size = offsetof(weir_record, time_ns); /* nothing behind it is read */
    NEED(frozen->intake->add(frozen->host, &record) == WEIR_ADD_TAKEN);
    NEED(frozen->intake->add(frozen->host, &(weir_record){.size = sizeof record}) == WEIR_ADD_REFUSED);
    frozen->intake->refuse(frozen->host, 2, "there", "%d that cannot be read", 2);
}

static void add_block(const struct frozen *frozen)
{
    static const char origin[] = "0123456789abcdef0123456789abcdef";
    const weir_blocks *blocks = frozen->host->service(frozen->host, WEIR_SERVICE_BLOCKS);
    const weir_typed_value value = {"of_block", WEIR_INT(0)};
    const weir_record record = {.size = sizeof record, .values = &value, .count = 1};
    const weir_block_sample sample = {.series = blocks->resolve(frozen->host, &record),
                                      .time_ns = 5,
                                      .kind = WEIR_KIND_DOUBLE,
                                      .value.f64 = 0.5,
                                      .text = "note",
                                      .text_length = 4};
    const weir_block block = {
        .size = sizeof block, .origin = origin, .sequence = 9, .samples = &sample, .count = 1};
    uint64_t first, end;
    NEED(sample.series && blocks->missing(frozen->host, origin, 9, 10, &first, &end) && first == 9 &&
         end == 10);
    NEED(blocks->add(frozen->host, &block, NULL) == WEIR_ADD_TAKEN);
    NEED(!blocks->missing(frozen->host, origin, 9, 10, &first, &end) && !blocks->is_stored(frozen->host));
    NEED(blocks->mark_repeat(frozen->host));
    blocks->forget(frozen->host, origin);
}

/* By the parser that is the type's default. */
static void add_text(const struct frozen *frozen)
{
    static const char line[] = "parsed,zone=y value=3i 17\nparsed value=\n";
    const weir_parser *parser = frozen->host->service(frozen->host, WEIR_SERVICE_PARSER);
    weir_text *text = parser->begin(frozen->host, "here", NULL);
    weir_text_totals totals = {.size = sizeof totals};
    size_t room;
    char *to = parser->room(text, &room);
    NEED(to && room >= sizeof line);
    memcpy(to, line, sizeof line - 1);
    NEED(parser->parse(text, sizeof line - 1) && parser->resume(text) && parser->finish(text, true));
    parser->read_totals(text, &totals);
    NEED(totals.lines == 2 && totals.refused == 1 && totals.added == 1 && *totals.fault);
    parser->end(text);
}

static void show(const struct frozen *frozen)
{
    const weir_senders *senders = frozen->host->service(frozen->host, WEIR_SERVICE_SENDERS);
    const weir_status *status = frozen->host->service(frozen->host, WEIR_SERVICE_STATUS);
    const weir_sender sender = {.name = "far", .added = 3, .received = 3, .state = WEIR_SENDER_ENDED};
    senders->show(frozen->host, &sender, 1);
    char *text = status->read(frozen->host);
    NEED(text && strstr(text, "\"far\""));
    status->release(text);
    frozen->host->count(frozen->host, "shown", 1);
    NEED(!frozen->host->service(frozen->host, "unknown/1"));
}

static void run(void *self, weir_outcome *outcome)
{
    const struct frozen *frozen = self;
    const weir_intake *intake = frozen->intake;
    (void)outcome;
    add_records(frozen);
    add_block(frozen);
    add_text(frozen);
    show(frozen);
    uint64_t mark = intake->mark(frozen->host);
    while (intake->settled(frozen->host, mark) != WEIR_MARK_DELIVERED)
        if (intake->wait(frozen->host, NULL, 0, 1) & WEIR_WAIT_STOP)
            return;
    frozen->host->log(frozen->host, 3, "%s", "all is delivered");
}

static void close_it(void *self)
{
    (void)self;
}

/* ---- Its types ------------------------------------------------------------------------------- */

#define FUNCTIONS                                                                                              \
    .flags = WEIR_SOURCE_TYPE_PARSES, .summary = "as it was when the headers were recorded",                   \
    .options_size = sizeof(struct options), .defaults = defaults, .create = create, .open = open_it,           \
    .run = run, .close = close_it, .destroy = free

static const weir_source_type of_that_day = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .name = "frozen",
    .options = plain_rows,
    .option_row_size = sizeof(weir_option),
    FUNCTIONS,
    .abandon = close_it,
};

/* Memory beyond its size is not part of it. */
static const weir_source_type shorter = {
    .size = offsetof(weir_source_type, abandon),
    .abi = WEIR_SOURCE_ABI,
    .name = "frozen_short",
    .options = plain_rows,
    .option_row_size = sizeof(weir_option),
    FUNCTIONS,
    .abandon = (void (*)(void *))(uintptr_t)16,
};

static const struct {
    weir_source_type known;
    const void *later[6];
} longer = {
    .known =
        {
            .size = sizeof longer,
            .abi = WEIR_SOURCE_ABI,
            .name = "frozen_long",
            .options = &rows[0].known,
            .option_row_size = sizeof *rows,
            FUNCTIONS,
            .abandon = close_it,
        },
    .later = {&longer, &longer, &longer, &longer, &longer, &longer},
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    const weir_source_type *const types[] = {&of_that_day, &shorter, &longer.known};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        plain_rows[i] = rows[i].known;
    return index < 3 ? types[index] : NULL;
}
