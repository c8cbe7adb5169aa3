/* frozen: a plugin built from the headers in 1/, copied when they were recorded, and from no other header of
 * weir. It uses the whole ABI.
 *
 * Three types: one with the frozen structs, one whose struct ends after the last required member, and one with
 * longer structs, as a later version would have. Each writes what it receives to a file. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>

#if WEIR_ABI != 1
#error "these are not the headers of ABI 1"
#endif

enum mode { PLAIN, ENCODED };

struct options {
    const char *path, *title;
    int64_t mode, retries, pause_ns, limit;
    double factor;
    bool loud;
    weir_list list;
    weir_map map;
};

/* A row of a later version. */
struct row {
    weir_option known;
    const char *later;
};

#define ROW(name, type, flags, default_value, allowed, field)                                                  \
    {                                                                                                          \
        {name, type, flags, default_value, allowed, "of the frozen plugin", offsetof(struct options, field)},  \
            "later"                                                                                            \
    }

static const struct row rows[] = {
    ROW("path", WEIR_OPTION_PATH, WEIR_OPTION_REQUIRED, NULL, NULL, path),
    ROW("about.title", WEIR_OPTION_STRING, WEIR_OPTION_SECRET, "untitled", NULL, title),
    ROW("mode", WEIR_OPTION_ENUM, 0, "plain", "plain|encoded", mode),
    ROW("retries", WEIR_OPTION_INT, 0, "0", "0..9", retries),
    ROW("pause", WEIR_OPTION_DURATION, 0, "1ms", "0s..1m", pause_ns),
    ROW("limit", WEIR_OPTION_SIZE, 0, "4KiB", NULL, limit),
    ROW("factor", WEIR_OPTION_DOUBLE, 0, "1.5", NULL, factor),
    ROW("loud", WEIR_OPTION_BOOL, 0, "false", NULL, loud),
    ROW("list", WEIR_OPTION_LIST, 0, NULL, NULL, list),
    ROW("map", WEIR_OPTION_MAP, 0, NULL, NULL, map),
    {{0}, NULL},
};

static weir_option plain_rows[sizeof rows / sizeof *rows];

static const weir_default defaults[] = {{"retry_min", "1ms"}, {"retry_max", "2ms"}, {NULL, NULL}};

struct frozen {
    const weir_host *host;
    const weir_encoder *encoder;
    const struct options *options;
    int64_t retries;
    FILE *file;
};

static int prepared;

static bool prepare(const weir_host *host)
{
    prepared += host->service(host, WEIR_SERVICE_ENCODER) == NULL;
    return true;
}

static void *create(const weir_host *host, const void *given)
{
    const struct options *options = given;
    if (options->limit < 16) {
        host->refuse(host, "limit", "%" PRId64 " is not a limit; allowed: 16B and more", options->limit);
        return NULL;
    }
    struct frozen *frozen = calloc(1, sizeof *frozen);
    if (!frozen)
        return NULL;
    frozen->host = host;
    frozen->options = options;
    frozen->retries = options->retries;
    frozen->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    const weir_try_timeout *patience = host->service(host, WEIR_SERVICE_TRY_TIMEOUT);
    patience->set(host, 1000);
    if (host->service(host, WEIR_SERVICE_COLOR))
        ((const weir_color *)host->service(host, WEIR_SERVICE_COLOR))->set(host, false);
    return frozen;
}

static void show_options(const struct frozen *frozen)
{
    const struct options *options = frozen->options;
    fprintf(frozen->file, "options %s %s %" PRId64 " %" PRId64 " %" PRId64 " %g %d", frozen->host->name,
            options->title, options->mode, options->pause_ns, options->limit, options->factor, options->loud);
    for (size_t i = 0; i < options->list.count; i++)
        fprintf(frozen->file, " %s", options->list.items[i]);
    for (size_t i = 0; i < options->map.count; i++)
        fprintf(frozen->file, " %s=%s", options->map.items[i].key, options->map.items[i].value);
    fprintf(frozen->file, "\nhost abi=%u unknown=%d type=%s prepared=%d\n", frozen->host->abi,
            frozen->host->service(frozen->host, "unknown/1") != NULL, frozen->host->type->name, prepared);
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct frozen *frozen = self;
    frozen->file = fopen(frozen->options->path, "a");
    if (!frozen->file) {
        outcome->code = WEIR_OUTCOME_RETRY;
        outcome->error = -8; /* WEIR_ERR_TIMEOUT */
        snprintf(outcome->reason, sizeof outcome->reason, "open %.200s", frozen->options->path);
        return;
    }
    show_options(frozen);
    frozen->host->wake_in(frozen->host, 0);
}

static void show(const struct frozen *frozen, const weir_batch *batch, const weir_sample *sample)
{
    const weir_series *series = weir_batch_series(batch, sample);
    bool whole = sample->kind == WEIR_KIND_INT;
    fprintf(frozen->file, "%s %s %g %s", series->group, series->name,
            whole ? (double)sample->value.i64 : sample->value.f64, whole ? "int" : "double");
    for (size_t i = 0; i < series->label_count; i++)
        fprintf(frozen->file, " %s=%s", series->labels[i].key, series->labels[i].value);
    for (size_t i = 0; i < batch->label_count; i++)
        fprintf(frozen->file, " %s=%s", batch->labels[i].key, batch->labels[i].value);
    fprintf(frozen->file, " unit=%s help=%s note=%s cumulative=%d more=%d\n", series->unit ? series->unit : "-",
            series->help ? series->help : "-", sample->note ? batch->notes[sample->note] : "-",
            series->cumulative && sample->flags & WEIR_SAMPLE_CUMULATIVE,
            (sample->flags & WEIR_SAMPLE_MORE) != 0);
}

static void show_encoded(const struct frozen *frozen, const weir_batch *batch)
{
    weir_encoded encoded;
    size_t end;
    for (uint32_t done = 0; done < batch->count; done += encoded.count) {
        if (!frozen->encoder->encode(frozen->host, batch, done, (size_t)frozen->options->limit, &encoded))
            abort();
        if (frozen->encoder->settled(frozen->host, encoded.length, &end) != encoded.count ||
            end != encoded.length)
            abort();
        fprintf(frozen->file, "%s %u %.*s", frozen->encoder->content_type(frozen->host),
                frozen->encoder->format(frozen->host), (int)encoded.length, encoded.data);
    }
}

/* Returns RETRY first, as often as the option "retries" says. */
static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct frozen *frozen = self;
    const weir_blocking_call *waiting = frozen->host->service(frozen->host, WEIR_SERVICE_BLOCKING_CALL);
    waiting->begin(frozen->host);
    waiting->end(frozen->host);
    if (frozen->retries > 0) {
        frozen->retries--;
        outcome->code = frozen->retries % 2 ? WEIR_OUTCOME_REOPEN : WEIR_OUTCOME_RETRY;
        outcome->done = 0;
        outcome->retry_after_ms = 1;
        snprintf(outcome->reason, sizeof outcome->reason, "retry requested");
        return;
    }
    frozen->host->count(frozen->host, "batches", 1);
    if (frozen->options->mode == ENCODED)
        show_encoded(frozen, batch);
    else
        for (uint32_t i = 0; i < batch->count; i++)
            show(frozen, batch, &batch->samples[i]);
}

static void flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct frozen *frozen = self;
    (void)timeout_ms;
    if (fflush(frozen->file) != 0)
        outcome->code = WEIR_OUTCOME_RETRY;
}

static void close_it(void *self)
{
    struct frozen *frozen = self;
    if (frozen->file)
        fclose(frozen->file);
    frozen->file = NULL;
}

static void wake(void *self, int why, weir_outcome *outcome)
{
    struct frozen *frozen = self;
    (void)outcome;
    if (why == WEIR_WAKE_TIMER && !frozen->host->stopping(frozen->host))
        frozen->host->log(frozen->host, 4, "woken after %s", "the timer");
}

static void abandon(void *self)
{
    const struct frozen *frozen = self;
    if (frozen->file)
        close(fileno(frozen->file));
}

#define FUNCTIONS                                                                                              \
    .summary = "as it was when the headers were recorded", .kinds = WEIR_KINDS_DOUBLE | WEIR_KINDS_INT,        \
    .formats = WEIR_FORMAT_LINES, .options_size = sizeof(struct options), .defaults = defaults,                \
    .prepare = prepare, .create = create, .open = open_it, .emit = emit, .flush = flush, .close = close_it,    \
    .destroy = free

static const weir_handler_type of_that_day = {
    .size = sizeof(weir_handler_type),
    .abi = WEIR_ABI,
    .name = "frozen",
    .options = plain_rows,
    .option_row_size = sizeof(weir_option),
    FUNCTIONS,
    .wake = wake,
    .abandon = abandon,
};

/* Memory beyond its size is not part of it. */
static const weir_handler_type shorter = {
    .size = offsetof(weir_handler_type, wake),
    .abi = WEIR_ABI,
    .name = "frozen_short",
    .options = plain_rows,
    .option_row_size = sizeof(weir_option),
    FUNCTIONS,
    .wake = (void (*)(void *, int, weir_outcome *))(uintptr_t)16,
    .abandon = (void (*)(void *))(uintptr_t)16,
};

static const struct {
    weir_handler_type known;
    const void *later[6];
} longer = {
    .known =
        {
            .size = sizeof longer,
            .abi = WEIR_ABI,
            .name = "frozen_long",
            .options = &rows[0].known,
            .option_row_size = sizeof *rows,
            FUNCTIONS,
            .wake = wake,
            .abandon = abandon,
        },
    .later = {&longer, &longer, &longer, &longer, &longer, &longer},
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    const weir_handler_type *const types[] = {&of_that_day, &shorter, &longer.known};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        plain_rows[i] = rows[i].known;
    return index < 3 ? types[index] : NULL;
}
