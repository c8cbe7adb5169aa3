#include "top_page.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "common/http_client.h"
#include "os/clock.h"
#include "registry/labels_walk.h"
#include "text/buffer.h"
#include "top_series.h"

enum { PAGE_BYTES = 256 * 1024 * 1024 };

struct reading {
    struct top_table *table;
    const char *pattern;
    struct wr_buffer key;
    bool has_started; /* there was a sample */
    uint64_t bad_lines;
    char fault[WR_PARSE_FAULT_ROOM]; /* the first one */
};

/* ---- Samples --------------------------------------------------------------------------------- */

enum part { VALUE, COUNT, SUM, BUCKET };

/* A part of a family is the series of the family. */
struct sample {
    enum top_kind kind;
    enum part part;
    size_t name_length;
    const char *bound; /* of a bucket */
};

static const char *find_label(const struct wr_parse_record *record, const char *key)
{
    return wr_labels_find(record->labels, record->label_count, key);
}

/* Cuts NAME.bucket, NAME_count and the like. */
static bool take_ending(struct sample *sample, const char *name, const char *ending, enum part part)
{
    bool has_it = command_has_ending(name, sample->name_length, ending);
    if (has_it) {
        sample->part = part;
        sample->name_length -= strlen(ending);
    }
    return has_it;
}

/* Returns false for a sample that is left out: what is neither declared as a part of a histogram or a summary
 * nor belongs to anything else. */
static bool classify(const struct wr_parse_record *record, struct sample *sample)
{
    const char *name = record->values->name;
    *sample = (struct sample){.kind = TOP_GAUGE, .name_length = strlen(name)};
    if (record->instrument == WEIR_HISTOGRAM) {
        sample->kind = TOP_HISTOGRAM;
        sample->bound = find_label(record, "le");
        return take_ending(sample, name, ".bucket", BUCKET) || take_ending(sample, name, ".count", COUNT) ||
               take_ending(sample, name, ".sum", SUM);
    }
    if (record->is_summary) {
        sample->kind = TOP_SUMMARY;
        return take_ending(sample, name, "_count", COUNT) || take_ending(sample, name, "_sum", SUM);
    }
    bool is_declared = record->instrument != WEIR_VALUE;
    if (record->cumulative || (!is_declared && command_has_ending(name, sample->name_length, "_total")))
        sample->kind = TOP_COUNTER;
    return sample->kind == TOP_COUNTER || (!find_label(record, "le") && !find_label(record, "quantile"));
}

static void make_key(struct wr_buffer *key, const struct wr_parse_record *record, const struct sample *sample)
{
    wr_buffer_clear(key);
    wr_buffer_put(key, record->values->name, sample->name_length);
    wr_buffer_put_char(key, '\0');
    for (size_t i = 0; i < record->label_count; i++) {
        const weir_label *label = &record->labels[i];
        if (sample->part == BUCKET && strcmp(label->key, "le") == 0)
            continue;
        wr_buffer_put(key, label->key, strlen(label->key) + 1);
        wr_buffer_put(key, label->value, strlen(label->value) + 1);
    }
    if (key->failed)
        command_out_of_memory();
}

static void set(struct top_series *series, const struct sample *sample, double value)
{
    switch (sample->part) {
    case VALUE:
    case COUNT: series->value = value; break;
    case SUM: series->sum = value; break;
    case BUCKET: top_series_set_bucket(series, strtod(sample->bound, NULL), value); break;
    }
}

static bool take(void *ctx, const struct wr_parse_record *record)
{
    struct reading *reading = ctx;
    const weir_typed_value *value = record->values;
    struct sample sample;
    if (!reading->has_started)
        top_series_start_page(reading->table);
    reading->has_started = true;
    if (!classify(record, &sample))
        return true;
    make_key(&reading->key, record, &sample);
    if (reading->pattern && fnmatch(reading->pattern, reading->key.data, 0) != 0)
        return true;
    set(top_series_get(reading->table, sample.kind, reading->key.data, reading->key.length), &sample,
        value->number.kind == WEIR_KIND_INT ? (double)value->number.is.i64 : value->number.is.f64);
    return true;
}

static void refuse(void *ctx, const struct wr_parse_fault *fault)
{
    struct reading *reading = ctx;
    if (!reading->bad_lines++)
        snprintf(reading->fault, sizeof reading->fault, "%s", fault->text);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static void parse(struct reading *reading, const struct http_reply *reply)
{
    bool is_openmetrics = strncmp(reply->type, "application/openmetrics-text", 28) == 0;
    const struct wr_parser_sink sink = {take, refuse, reading};
    struct wr_parser *parser =
        command_must(wr_parser_new(wr_parser_type_find(is_openmetrics ? "openmetrics" : "prometheus"),
                                   &(struct wr_parser_options){0}, &sink));
    size_t used;
    if (!wr_parser_put(parser, reply->body.data, reply->body.length, &used))
        command_out_of_memory();
    wr_parser_end(parser);
    wr_parser_free(parser);
}

/* A page without samples is one whose program has none yet, unless there is something else on it. */
static bool read_body(struct top_page *page, struct top_table *table, const struct http_reply *reply)
{
    struct reading reading = {.table = table, .pattern = page->pattern};
    if (reply->body.length)
        parse(&reading, reply);
    bool is_page = reading.has_started || !reading.bad_lines;
    if (is_page) {
        if (!reading.has_started)
            top_series_start_page(table);
        top_series_end_page(table);
    }
    page->bad_lines = reading.bad_lines;
    if (!is_page)
        snprintf(page->problem, sizeof page->problem, "not a page in Prometheus' format: %s", reading.fault);
    wr_buffer_fini(&reading.key);
    return is_page;
}

bool top_page_read(struct top_page *page, struct top_table *table)
{
    const struct http_call call = {
        .url = page->url,
        .method = "GET",
        .headers =
            {"Accept: text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"},
        .reply_bytes = PAGE_BYTES};
    struct http_reply reply;
    bool is_page = false;
    if (!http_client_send(&call, &reply))
        snprintf(page->problem, sizeof page->problem, "%s", reply.problem);
    else if (reply.status != 200)
        snprintf(page->problem, sizeof page->problem, "the server returns status %ld", reply.status);
    else if (strncmp(reply.type, "text/html", 9) == 0)
        snprintf(page->problem, sizeof page->problem, "not a page in Prometheus' format, but HTML");
    else if (reply.body.failed)
        command_out_of_memory();
    else {
        page->time_ns = wr_clock_monotonic_ns();
        is_page = read_body(page, table, &reply);
    }
    wr_buffer_fini(&reply.body);
    return is_page;
}
