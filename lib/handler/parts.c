#include "handler/parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/encoder.h"
#include "registry/family.h"
#include "registry/labels_walk.h"
#include "registry/name.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "segment/segment.h"
#include "summary/buckets.h"
#include "summary/moments.h"
#include "text/array.h"
#include "text/common.h"
#include "text/error.h"
#include "text/number.h"

enum { NAME_ROOM = 256 + WR_PERCENTILE_SUFFIX };

/* ---- Percentiles ----------------------------------------------------------------------------- */

static bool refuse(struct wr_error *error, const char *text)
{
    return wr_error_refuse(error, WEIR_ERR_CONFIG,
                           "percentiles: must be at most %d numbers above 0 and below 100, got \"%s\"",
                           WR_PERCENTILES, text);
}

bool wr_percentiles_read(struct wr_percentiles *percentiles, const weir_list *texts, struct wr_error *error)
{
    *percentiles = (struct wr_percentiles){0};
    for (size_t i = 0; i < texts->count; i++) {
        const char *text = texts->items[i];
        double value;
        if (i == WR_PERCENTILES || !wr_number_read_double(text, &value) || !(value > 0 && value < 100))
            return refuse(error, text);
        char *suffix = percentiles->suffixes[i], number[32];
        number[wr_number_put_double(number, value)] = '\0';
        if (strlen(number) + 3 > WR_PERCENTILE_SUFFIX || strpbrk(number, "e-"))
            return refuse(error, text);
        snprintf(suffix, WR_PERCENTILE_SUFFIX, ".p%.*s", WR_PERCENTILE_SUFFIX - 3, number);
        char *dot = strchr(suffix + 1, '.');
        if (dot)
            *dot = '_';
        percentiles->quantiles[i] = value / 100;
        percentiles->count = i + 1;
    }
    return true;
}

/* ---- Parts that may be left out --------------------------------------------------------------- */

static uint32_t find_part(const char *name)
{
    static const struct {
        const char *name;
        uint32_t part;
    } parts[] = {{"min", WR_PART_MIN}, {"max", WR_PART_MAX}, {"last", WR_PART_LAST}};
    for (size_t i = 0; i < WR_COUNT_OF(parts); i++)
        if (strcmp(name, parts[i].name) == 0)
            return parts[i].part;
    return 0;
}

bool wr_parts_read_left_out(uint32_t *left_out, const weir_list *wanted, struct wr_error *error)
{
    *left_out = WR_PART_MIN | WR_PART_MAX | WR_PART_LAST;
    for (size_t i = 0; i < wanted->count; i++) {
        uint32_t part = find_part(wanted->items[i]);
        if (!part)
            return wr_error_refuse(error, WEIR_ERR_CONFIG, "parts: must be of min, max and last, got \"%s\"",
                                   wanted->items[i]);
        *left_out &= ~part;
    }
    return true;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* What is being taken apart. */
struct work {
    struct wr_parts *parts;
    struct wr_registry *registry;
    const struct wr_parts_rules *rules;
    const weir_sample *sample;
    const struct weir_metric *metric;
    struct wr_summary summary;
    const struct wr_sketch *values; /* for what does not add up */
    char stem[NAME_ROOM];           /* what the names of its parts begin with */
    uint32_t event;                 /* where its event begins */
    bool no_memory, refused;
};

void wr_parts_fini(struct wr_parts *parts)
{
    free(parts->samples);
    free(parts->ends);
    free(parts->reading);
    wr_windows_fini(&parts->windows);
    *parts = (struct wr_parts){0};
}

static void append(struct work *work, const weir_sample *sample)
{
    struct wr_parts *parts = work->parts;
    if (WR_ARRAY_HAS_ROOM(&parts->samples, &parts->room, parts->count + 1))
        parts->samples[parts->count++] = *sample;
    else
        work->no_memory = true;
}

/* What a part is: bits. */
enum {
    TOTAL = 1,     /* of a series of running totals */
    INCREMENT = 2, /* adds to those before */
    COUNTS = 4,    /* counts values, and so has no unit unless it is a total */
};

static void put(struct work *work, const struct weir_metric *metric, double value, unsigned is)
{
    bool is_total = (is & (TOTAL | INCREMENT)) == TOTAL;
    unsigned flags = WEIR_SAMPLE_MORE | (work->sample->flags & WEIR_SAMPLE_ENDED) |
                     (is_total ? WEIR_SAMPLE_CUMULATIVE : 0u) | (is & INCREMENT ? WR_SAMPLE_INCREMENT : 0u);
    weir_sample part = {
        .series = metric->series,
        .kind = WEIR_KIND_DOUBLE,
        .flags = (uint16_t)flags,
        .time_ns = work->sample->time_ns,
        .value.f64 = value,
    };
    append(work, &part);
}

/* The instrument distinguishes the parts of a histogram that are totals from other totals. */
static struct wr_meaning meaning_of(const struct work *work, unsigned is)
{
    const weir_series *view = atomic_load_explicit(&work->metric->view, memory_order_acquire);
    return (struct wr_meaning){
        .instrument = is & TOTAL ? (enum weir_instrument)view->instrument : WEIR_VALUE,
        .unit = (is & (TOTAL | COUNTS)) == COUNTS ? NULL : view->unit,
        .help = view->help,
    };
}

static bool wants(const struct work *work, uint32_t what)
{
    return work->rules->wanted & what;
}

/* Returns false if the name does not fit: not after check_parts. */
static bool make_name(const struct work *work, const char *suffix, char name[NAME_ROOM])
{
    int length = snprintf(name, NAME_ROOM, "%s%s", *suffix ? work->stem : work->metric->name, suffix);
    return length >= 0 && length < NAME_ROOM;
}

static void put_in(struct work *work, const struct weir_stream *stream, const char *suffix, double value,
                   unsigned is)
{
    char name[NAME_ROOM];
    if (!make_name(work, suffix, name))
        return;
    const struct wr_meaning meaning = meaning_of(work, is);
    unsigned flags = (is & TOTAL ? WEIR_SAMPLE_CUMULATIVE : 0u) |
                     (wants(work, WR_WANTS_STATSD) ? WR_METRIC_KEEPS_MEANING : 0u);
    struct weir_metric *metric = wr_series_derive(work->registry, stream, name, (uint16_t)flags, &meaning);
    if (metric)
        put(work, metric, value, is);
    else
        work->no_memory = true;
}

static void put_part(struct work *work, const char *suffix, double value, unsigned is)
{
    put_in(work, work->metric->stream, suffix, value, is);
}

/* What adds up: as a total, or as what the interval has added to it. Both are of the total's series. */
static void put_sum(struct work *work, const char *suffix, double total, double delta, unsigned is)
{
    if (wants(work, WR_WANTS_DELTAS))
        put_part(work, suffix, delta, TOTAL | INCREMENT | is);
    else
        put_part(work, suffix, total, TOTAL | is);
}

/* A part that may be left out. */
static void put_optional(struct work *work, uint32_t part, const char *suffix, double value)
{
    if (!(work->rules->left_out & part))
        put_part(work, suffix, value, 0);
}

static void end_event(struct work *work)
{
    struct wr_parts *parts = work->parts;
    if (parts->count > work->event)
        parts->samples[parts->count - 1].flags &= (uint16_t)~WEIR_SAMPLE_MORE;
    work->event = parts->count;
}

static void put_distribution(struct work *work)
{
    const struct wr_sketch *sketch = work->values;
    const struct wr_percentiles *percentiles = &work->rules->percentiles;
    if (!sketch->count)
        return;
    put_optional(work, WR_PART_MIN, ".min", sketch->min);
    put_optional(work, WR_PART_MAX, ".max", sketch->max);
    if (work->summary.kind == WEIR_VALUE)
        put_optional(work, WR_PART_LAST, ".last", work->summary.last);
    for (size_t i = 0; i < percentiles->count; i++)
        put_part(work, percentiles->suffixes[i], wr_sketch_quantile(sketch, percentiles->quantiles[i]), 0);
}

static void put_bucket(struct work *work, const char *bound, double count)
{
    const weir_label le = {"le", bound};
    char name[NAME_ROOM];
    const struct weir_stream *stream = make_name(work, ".bucket", name)
                                           ? wr_stream_derive(work->registry, work->metric->stream, &le, name)
                                           : NULL;
    if (stream)
        put_in(work, stream, ".bucket", count,
               TOTAL | COUNTS | (wants(work, WR_WANTS_DELTAS) ? INCREMENT : 0u));
    else
        work->no_memory = true;
    end_event(work);
}

/* As Prometheus counts: each bucket includes those below. */
static void put_buckets(struct work *work)
{
    const struct wr_summary *summary = &work->summary;
    const uint64_t *counts = wants(work, WR_WANTS_DELTAS) ? summary->buckets : summary->total_buckets;
    size_t bounds;
    const weir_series *view = atomic_load_explicit(&work->metric->view, memory_order_acquire);
    const double *upper = wr_buckets_of(view, &bounds);
    if (summary->bucket_count != bounds + 1 || summary->bounds_check != wr_buckets_check(upper, bounds))
        return; /* declared anew since */
    uint64_t below = 0;
    for (size_t i = 0; i <= bounds; i++) {
        char text[32] = "+Inf";
        if (i < bounds)
            text[wr_number_put_double(text, upper[i])] = '\0';
        below += counts[i];
        put_bucket(work, text, (double)below);
    }
}

static bool has_buckets(const struct work *work)
{
    return work->summary.kind == WEIR_HISTOGRAM && work->summary.bucket_count &&
           !(work->rules->wanted & (WR_WANTS_NO_BUCKETS | WR_WANTS_STATSD));
}

/* ---- As StatsD calls them -------------------------------------------------------------------- */

static void put_named(struct work *work, const char *what, const char *percent, double value, unsigned is)
{
    char suffix[WR_PERCENTILE_SUFFIX + sizeof ".sum_squares_"];
    snprintf(suffix, sizeof suffix, "%s%s", what, percent);
    put_part(work, suffix, value, is);
}

/* JavaScript's Math.round of what is not negative: a half is rounded up. */
static uint64_t round_number(double number)
{
    uint64_t whole = (uint64_t)number;
    return whole + (number - (double)whole >= 0.5);
}

/* https://github.com/statsd/statsd, lib/process_metrics.js and docs/metric_types.md: a percentile is that of
 * the nearest rank, to which the rank is rounded; of too few values there is none. */
static void put_ranks(struct work *work, const struct wr_sketch *values)
{
    const struct wr_percentiles *percentiles = &work->rules->percentiles;
    for (size_t i = 0; i < percentiles->count; i++) {
        const char *percent = percentiles->suffixes[i] + strlen(".p");
        uint64_t rank =
            values->count == 1 ? 1 : round_number(percentiles->quantiles[i] * (double)values->count);
        if (!rank)
            continue;
        put_named(work, ".count_", percent, (double)rank, COUNTS);
        put_named(work, ".upper_", percent, wr_sketch_at_rank(values, rank), 0);
        const struct wr_moments moments = wr_moments_of(values, rank);
        put_named(work, ".sum_", percent, moments.sum, 0);
        put_named(work, ".sum_squares_", percent, moments.squares, 0);
        put_named(work, ".mean_", percent, moments.sum / (double)rank, 0);
    }
}

/* Between the two in the middle. */
static double find_median(const struct wr_sketch *values)
{
    uint64_t half = values->count / 2;
    double above = wr_sketch_at_rank(values, half + 1);
    return values->count % 2 ? above : (wr_sketch_at_rank(values, half) + above) / 2;
}

static void put_timer(struct work *work, double seconds)
{
    const struct wr_summary *summary = &work->summary;
    const struct wr_sketch *values = work->values;
    put_part(work, ".count", (double)summary->count, COUNTS);
    put_part(work, ".count_ps", (double)summary->count / seconds, COUNTS);
    if (summary->count) {
        put_part(work, ".sum", summary->sum, 0);
        put_part(work, ".mean", summary->sum / (double)summary->count, 0);
    }
    if (!values->count)
        return;
    put_optional(work, WR_PART_MIN, ".lower", values->min);
    put_optional(work, WR_PART_MAX, ".upper", values->max);
    put_part(work, ".median", find_median(values), 0);
    put_part(work, ".sum_squares", wr_moments_of(values, values->count).squares, 0);
    put_part(work, ".std", wr_moments_deviation(values), 0);
    put_ranks(work, values);
}

static void put_as_statsd(struct work *work)
{
    const struct wr_summary *summary = &work->summary;
    int64_t took_ns = summary->end_ns - summary->start_ns;
    double seconds = (double)(took_ns > 0 ? took_ns : 1) / 1e9;
    if (summary->kind == WEIR_COUNTER) {
        put_part(work, ".rate", summary->sum / seconds, TOTAL | INCREMENT);
        put_part(work, ".count", summary->sum, TOTAL | INCREMENT);
    } else if (summary->kind == WEIR_GAUGE) {
        put(work, work->metric, summary->last, 0);
    } else
        put_timer(work, seconds);
    end_event(work);
}

static void put_summary(struct work *work)
{
    const struct wr_summary *summary = &work->summary;
    if (wants(work, WR_WANTS_STATSD)) {
        put_as_statsd(work);
        return;
    }
    if (wants(work, WR_WANTS_WHOLE) && summary->kind != WEIR_VALUE) {
        append(work, work->sample);
        return;
    }
    switch (summary->kind) {
    case WEIR_COUNTER: put_sum(work, "", summary->total_sum, summary->sum, 0); break;
    case WEIR_GAUGE:
        put(work, work->metric, summary->last, work->sample->flags & WEIR_SAMPLE_CUMULATIVE ? TOTAL : 0);
        break;
    case WEIR_HISTOGRAM:
        put_sum(work, ".count", (double)summary->total_count, (double)summary->count, COUNTS);
        put_sum(work, ".sum", summary->total_sum, summary->sum, 0);
        put_distribution(work);
        break;
    default:
        put_part(work, ".count", (double)summary->count, COUNTS | INCREMENT);
        put_part(work, ".sum", summary->sum, INCREMENT);
        put_distribution(work);
    }
    end_event(work);
    if (has_buckets(work))
        put_buckets(work);
}

static bool refuse_parts(struct work *work, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Notes why; returns false. */
static bool refuse_parts(struct work *work, const char *format, ...)
{
    char *why = work->parts->why;
    size_t room = sizeof work->parts->why;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(why, room, format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length < room)
        snprintf(why + length, room - (size_t)length, ": summaries of \"%s\" in group \"%s\"",
                 work->metric->name, work->metric->stream->group->name);
    work->refused = true;
    return false;
}

/* The longest of the suffixes of a summary's parts. */
static const char *find_longest_suffix(const struct work *work)
{
    const struct wr_percentiles *percentiles = &work->rules->percentiles;
    if (wants(work, WR_WANTS_STATSD))
        return ".sum_squares_99_9999999999"; /* as long as any */
    const char *longest = has_buckets(work) ? ".bucket" : ".count";
    for (size_t i = 0; work->values->count && i < percentiles->count; i++)
        if (strlen(percentiles->suffixes[i]) > strlen(longest))
            longest = percentiles->suffixes[i];
    return longest;
}

/* Sets what the names of the parts begin with, which is the same if an interval has no values; returns its
 * length. */
static size_t put_stem(struct work *work)
{
    if (wants(work, WR_WANTS_STATSD)) /* paths of counters, gauges and timers begin differently */
        return (size_t)snprintf(work->stem, sizeof work->stem, "%s", work->metric->name);
    unsigned parts = WR_PART_COUNT | WR_PART_SUM | WR_PART_MIN | WR_PART_MAX |
                     (has_buckets(work) ? WR_PART_BUCKET : 0u) |
                     (work->summary.kind == WEIR_VALUE ? WR_PART_LAST : 0u) |
                     (work->rules->percentiles.count ? WR_PART_PERCENTILE : 0u);
    parts &= ~work->rules->left_out;
    size_t length = wr_family_put_stem(work->registry, work->metric->stream->group, work->metric->name, parts,
                                       work->stem, sizeof work->stem);
    if (length > work->metric->length)
        work->parts->apart = work->metric;
    return length;
}

/* Whether all parts of a summary can have their names and labels: of one that lacks some, the others would seem
 * to be all. Names and labels may have come from anywhere. */
static bool check_parts(struct work *work)
{
    const struct weir_stream *stream = work->metric->stream;
    bool is_counter = work->summary.kind == WEIR_COUNTER && wants(work, WR_WANTS_STATSD);
    if (work->summary.kind != WEIR_HISTOGRAM && work->summary.kind != WEIR_VALUE && !is_counter)
        return true;
    if (wants(work, WR_WANTS_WHOLE) && work->summary.kind == WEIR_HISTOGRAM)
        return true;
    const char *suffix = find_longest_suffix(work);
    size_t length = put_stem(work) + strlen(suffix);
    if (length > WR_NAME_LONGEST)
        return refuse_parts(work, "the name of a part would have %zu bytes with \"%s\", allowed are %d", length,
                            suffix, WR_NAME_LONGEST);
    if (!has_buckets(work))
        return true;
    if (wr_labels_find(stream->labels, stream->label_count, "le"))
        return refuse_parts(work, "the label \"le\" is that of the buckets");
    if (stream->label_count >= WR_STREAM_LABELS)
        return refuse_parts(work, "%" PRIu32 " labels leave no room for \"le\" of the buckets",
                            stream->label_count);
    return true;
}

/* Sets the values of the summary's window. Returns false if out of memory. */
static bool add_to_window(struct work *work, const struct wr_sample_id *first)
{
    const struct wr_parts_rules *rules = work->rules;
    work->values = &work->summary.sketch;
    bool has_none = !(~rules->left_out & (WR_PART_MIN | WR_PART_MAX)) && !rules->percentiles.count &&
                    !wants(work, WR_WANTS_STATSD);
    if (has_none || (work->summary.kind == WEIR_HISTOGRAM && wants(work, WR_WANTS_WHOLE)))
        return true;
    const struct wr_sample_id id = wr_sample_id_behind(first, work->parts->originals);
    const weir_series *view = atomic_load_explicit(&work->metric->view, memory_order_acquire);
    work->values =
        wr_windows_add(&work->parts->windows, view, &id, work->summary.end_ns, &work->summary.sketch);
    work->no_memory |= !work->values;
    return work->values;
}

static void take_apart(struct work *work, const weir_batch *batch, const struct wr_sample_id *first)
{
    struct wr_error error = {0};
    work->metric = wr_registry_series(work->registry, work->sample->series);
    work->event = work->parts->count;
    if (wr_summary_read(&work->summary, work->parts->reading, batch->notes[work->sample->note], &error)) {
        if (add_to_window(work, first) && check_parts(work))
            put_summary(work);
        if (work->sample->flags & WEIR_SAMPLE_ENDED)
            wr_windows_forget(&work->parts->windows, work->sample->series);
    } else if (error.code == WEIR_ERR_MEMORY) {
        work->no_memory = true;
    } else {
        refuse_parts(work, "damaged"); /* on disk */
    }
    wr_sketch_fini(&work->summary.sketch);
}

static bool has_room(struct wr_parts *parts, uint32_t count)
{
    if (!parts->reading)
        parts->reading = malloc(sizeof *parts->reading);
    return WR_ARRAY_HAS_ROOM(&parts->ends, &parts->ends_room, count) && parts->reading;
}

/* ---- Identities ------------------------------------------------------------------------------ */

/* An instance that gets other samples than expected, since those were dropped or are on disk now, does not use
 * numbers again that parts of them may have had. */
static void number(struct wr_parts *parts, const struct wr_sample_id *first)
{
    if (!parts->origin[0]) {
        struct wr_origin origin = wr_origin_new();
        wr_origin_put_text(&origin, parts->origin);
    }
    if (!wr_sample_id_follows(first, &parts->first, 0)) {
        parts->sequence = parts->used;
        parts->is_begun = false;
    }
    if (!parts->is_begun)
        parts->done = parts->rejected = parts->rejected_to = 0;
    if (parts->originals && parts->done > parts->ends[0].end) /* its buckets were declared anew since */
        parts->done = parts->ends[0].end;
    parts->first = *first;
    if (parts->sequence + parts->count > parts->used)
        parts->used = parts->sequence + parts->count;
}

enum wr_parts_result wr_parts_make(struct wr_parts *parts, const weir_batch *batch,
                                   const struct wr_sample_id *first, struct wr_registry *registry,
                                   const struct wr_parts_rules *rules)
{
    struct work work = {.parts = parts, .registry = registry, .rules = rules};
    parts->count = parts->originals = 0;
    parts->windows.length_ns = rules->window_ns;
    if (!has_room(parts, batch->count))
        return WR_PARTS_NO_MEMORY;
    while (parts->originals < batch->count) {
        work.sample = &batch->samples[parts->originals];
        if (work.sample->kind == WEIR_KIND_SUMMARY)
            take_apart(&work, batch, first);
        else
            append(&work, work.sample);
        if (work.no_memory)
            return WR_PARTS_NO_MEMORY;
        if (work.refused)
            break;
        parts->ends[parts->originals++] =
            (struct wr_parts_end){parts->count, wr_sample_values(work.sample),
                                  work.sample->kind == WEIR_KIND_SUMMARY ? work.summary.since_ns : 0};
    }
    number(parts, first);
    parts->batch = *batch;
    parts->batch.samples = parts->samples;
    parts->batch.count = parts->count;
    parts->batch.sequence = parts->sequence;
    parts->batch.origin = parts->origin;
    return parts->originals ? WR_PARTS_MADE : WR_PARTS_REFUSED;
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

/* How many samples of the original are complete within the first `count` parts: the number of the one that has
 * the next part. */
static uint32_t find_original(const struct wr_parts *parts, uint32_t count)
{
    uint32_t low = 0, high = parts->originals;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (parts->ends[middle].end <= count)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

weir_batch wr_parts_rest(const struct wr_parts *parts)
{
    weir_batch rest = parts->batch;
    uint32_t begun = find_original(parts, parts->done);
    if (begun < parts->rejected_to) /* it is the last one of its outcome */
        rest.count = parts->ends[begun].end;
    rest.samples += parts->done;
    rest.count -= parts->done;
    rest.sequence += parts->done;
    return rest;
}

bool wr_parts_has_rejected(const struct wr_parts *parts)
{
    return parts->rejected_to && find_original(parts, parts->done) >= parts->rejected_to;
}

/* One without parts is complete with the sample before it. */
uint64_t wr_parts_values(const struct wr_parts *parts, uint32_t part)
{
    uint64_t values = 0;
    for (uint32_t i = find_original(parts, part); i < parts->originals && parts->ends[i].end == part + 1; i++)
        values += parts->ends[i].values;
    return values;
}

int64_t wr_parts_since(const struct wr_parts *parts, uint32_t part)
{
    return parts->ends[find_original(parts, part)].since_ns;
}

void wr_parts_advance(struct wr_parts *parts, uint32_t done, uint32_t rejected)
{
    parts->done += done;
    if (!rejected)
        return;
    uint32_t from = find_original(parts, parts->done - rejected),
             to = find_original(parts, parts->done - 1) + 1;
    if (from < parts->rejected_to)
        from = parts->rejected_to;
    parts->rejected += to > from ? to - from : 0;
    parts->rejected_to = to;
}

void wr_parts_convert(struct wr_parts *parts, weir_outcome *outcome)
{
    uint32_t complete = find_original(parts, parts->done);
    bool begun_is_rejected = parts->rejected_to > complete;
    outcome->done = complete;
    outcome->rejected = parts->rejected - begun_is_rejected;
    uint32_t parts_complete = complete ? parts->ends[complete - 1].end : 0;
    parts->first = wr_sample_id_behind(&parts->first, complete);
    parts->sequence += parts_complete;
    parts->done -= parts_complete;
    parts->is_begun = parts->done > 0;
    parts->rejected = parts->rejected_to = begun_is_rejected;
}
