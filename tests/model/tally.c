#include "tally.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "world.h"

/* What a sample is of a series. */
enum part { WHOLE, COUNT, SUM, BUCKET, OTHER };

/* One that is being recorded. */
struct item {
    const weir_sample *sample;
    const weir_series *of;
    struct world_tally *tally;
    uint32_t series;
    enum part part;
    char where[160];
};

/* ---- Names ----------------------------------------------------------------------------------- */

static int find_group(const char *group)
{
    for (int i = WORLD_PLAIN_GROUPS; i < WORLD_GROUPS; i++)
        if (strcmp(group, world_groups[i]) == 0)
            return i;
    return -1;
}

static int find_name(const char *name, size_t length)
{
    for (int i = 0; i < WORLD_NAMES; i++)
        if (strlen(world_names[i]) == length && memcmp(name, world_names[i], length) == 0)
            return i;
    return -1;
}

static enum part find_part(const char *suffix)
{
    static const char *const suffixes[] = {"", ".count", ".sum", ".bucket"};
    for (int i = 0; i < OTHER; i++)
        if (strcmp(suffix, suffixes[i]) == 0)
            return (enum part)i;
    return OTHER;
}

static const char *label_of(const weir_series *series, const char *key)
{
    for (size_t i = 0; i < series->label_count; i++)
        if (strcmp(series->labels[i].key, key) == 0)
            return series->labels[i].value;
    return NULL;
}

static void find_series(struct item *item)
{
    const weir_series *of = item->of;
    size_t length = strcspn(of->name, ".");
    int group = find_group(of->group), name = find_name(of->name, length);
    item->part = find_part(of->name + length);
    if (group >= 0 && name >= 0)
        item->series = world_series((uint32_t)group, (enum world_name)name, label_of(of, "zone") != NULL);
    else if (group == WORLD_PLAIN_GROUPS && strncmp(of->name, "level", 5) == 0)
        item->series = WORLD_LEVELS + (uint32_t)atoi(of->name + 5);
    else
        world_fail("%s: there is no such series", item->where);
}

static void set_item(struct item *item, const struct tally *tally, const weir_batch *batch, uint32_t number)
{
    *item = (struct item){.sample = &batch->samples[number]};
    item->of = weir_batch_series(batch, item->sample);
    snprintf(item->where, sizeof item->where, "%s: %s of group %s", world_handlers[tally->handler],
             item->of->name, item->of->group);
    find_series(item);
    item->tally = &world->tallies[world_self][tally->handler][item->series];
}

/* ---- Totals ---------------------------------------------------------------------------------- */

static uint32_t check_of(const char *text)
{
    uint32_t check = 2166136261u;
    for (; *text; text++)
        check = (check ^ (unsigned char)*text) * 16777619u;
    return check;
}

/* Whether a total continues the last one: it is of this process, which goes without saying unless a spool or a
 * journal may have those of others. A journal may have several of a series for a handler that does not sum any
 * more. */
static bool continues(const struct item *item, int64_t since_ns, uint32_t origin)
{
    bool may_be_of_others = plan_terms.spool || plan_terms.journal;
    bool is_same_lane = origin && item->tally->origin == origin && !plan_terms.journal;
    return item->tally->has_total && (!may_be_of_others || item->tally->since_ns == since_ns || is_same_lane);
}

static void expect_to_grow(const struct item *item, const char *what, double before, double after)
{
    if (after < before)
        world_fail("%s: the total %s goes back from %.17g to %.17g", item->where, what, before, after);
}

static void note_since(const struct item *item, int64_t since_ns, uint32_t origin)
{
    if (!continues(item, since_ns, origin))
        item->tally->total = (struct world_sum){0};
    item->tally->has_total = true;
    item->tally->since_ns = since_ns;
    item->tally->origin = origin;
}

static void note_count(const struct item *item, uint64_t count)
{
    expect_to_grow(item, "count", (double)item->tally->total.count, (double)count);
    item->tally->total.count = count;
}

static void note_sum(const struct item *item, double sum)
{
    expect_to_grow(item, "sum", item->tally->total.sum, sum);
    item->tally->total.sum = sum;
}

static void note_level(const struct item *item, double level)
{
    atomic_store(&item->tally->level, level);
    atomic_store(&item->tally->has_level, true);
}

/* ---- Summaries ------------------------------------------------------------------------------- */

static int instrument_of(uint32_t series)
{
    static const int instruments[WORLD_NAMES + 1] = {WEIR_COUNTER, WEIR_HISTOGRAM, WEIR_HISTOGRAM,
                                                     WEIR_GAUGE,   WEIR_VALUE,     WEIR_GAUGE};
    return instruments[world_name_of(series)];
}

static void check_buckets(const struct item *item, const weir_summary *summary)
{
    uint64_t values = 0, total = 0;
    if (summary->bucket_count != world_bucket_count(item->series))
        world_fail("%s has %zu buckets", item->where, summary->bucket_count);
    for (size_t i = 0; i < summary->bucket_count; i++) {
        values += summary->buckets[i];
        total += summary->total_buckets[i];
        if (i + 1 < summary->bucket_count && world_bucket(item->series, summary->bounds[i]) != i)
            world_fail("%s has the bound %g at %zu", item->where, summary->bounds[i], i);
    }
    if (values != summary->count || total != summary->total_count)
        world_fail("%s has %llu and %llu values in its buckets, but %llu and %llu in all", item->where,
                   (unsigned long long)values, (unsigned long long)total, (unsigned long long)summary->count,
                   (unsigned long long)summary->total_count);
}

static void check_summary(const struct item *item, const weir_summary *summary, uint64_t values)
{
    if (summary->instrument != instrument_of(item->series))
        world_fail("%s is of the instrument %d", item->where, summary->instrument);
    if (summary->count != values || summary->count != (uint64_t)item->sample->value.i64)
        world_fail("%s has %llu values, and the ledger %llu", item->where, (unsigned long long)summary->count,
                   (unsigned long long)values);
    if (summary->total_count < summary->count || summary->start_ns > item->sample->time_ns)
        world_fail("%s has a total of %llu values, and %llu of the interval", item->where,
                   (unsigned long long)summary->total_count, (unsigned long long)summary->count);
    if (!world_is_gauge(item->series) &&
        (summary->min < 0 || summary->max > WORLD_MOST || summary->min > summary->max))
        world_fail("%s is of values from %g to %g", item->where, summary->min, summary->max);
    if (world_is_histogram(item->series))
        check_buckets(item, summary);
}

static void note_summary(const struct item *item, const weir_summary *summary, const char *origin)
{
    if (world_is_gauge(item->series)) {
        note_level(item, summary->last);
        return;
    }
    if (world_name_of(item->series) == WORLD_RATE)
        return;
    note_since(item, summary->since_ns, check_of(origin));
    note_count(item, summary->total_count);
    note_sum(item, summary->total_sum);
    for (size_t i = 0; i < summary->bucket_count; i++) {
        expect_to_grow(item, "bucket", (double)item->tally->total.buckets[i],
                       (double)summary->total_buckets[i]);
        item->tally->total.buckets[i] = summary->total_buckets[i];
    }
}

static void add_settled(const struct item *item, const struct world_sum *sum)
{
    world_sum_add_all(&item->tally->settled, sum);
    world_sum_add_all(&item->tally->recent, sum);
}

static void settle_summary(struct tally *tally, const weir_batch *batch, const struct item *item,
                           uint64_t values)
{
    const weir_summaries *summaries = tally->host->service(tally->host, WEIR_SERVICE_SUMMARIES);
    weir_summary summary = {.size = sizeof summary};
    if (!summaries->read(tally->host, batch, item->sample, &summary))
        world_fail("%s: the summary cannot be read", item->where);
    check_summary(item, &summary, values);
    note_summary(item, &summary, batch->origin);
    struct world_sum sum = {.count = summary.count, .sum = summary.sum};
    for (size_t i = 0; i < summary.bucket_count; i++)
        sum.buckets[i] = summary.buckets[i];
    add_settled(item, &sum);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* As they come: each bucket includes those below. */
static void note_bucket(const struct item *item, double count)
{
    const char *bound = label_of(item->of, "le");
    uint32_t last = world_bucket_count(item->series) - 1;
    if (!bound)
        world_fail("%s has no bound", item->where);
    uint32_t bucket = strcmp(bound, "+Inf") == 0 ? last : world_bucket(item->series, atof(bound));
    expect_to_grow(item, "bucket", (double)item->tally->total.buckets[bucket], count);
    item->tally->total.buckets[bucket] = (uint64_t)count;
}

static void check_other(const struct item *item, double value)
{
    const char *suffix = strchr(item->of->name, '.');
    static const char *const suffixes[] = {".min", ".max", ".last", ".p50", ".p90", ".p99", ".p99_9"};
    bool known = false;
    for (int i = 0; i < 7; i++)
        known |= strcmp(suffix, suffixes[i]) == 0;
    if (!known || !(value >= 0 && value <= WORLD_MOST))
        world_fail("%s is %g", item->where, value);
}

static void note_part(const struct tally *tally, const struct item *item)
{
    const weir_summaries *summaries = tally->host->service(tally->host, WEIR_SERVICE_SUMMARIES);
    double value = item->sample->value.f64;
    bool adds_up = !world_is_gauge(item->series) && world_name_of(item->series) != WORLD_RATE;
    if (adds_up && item->part != OTHER)
        note_since(item, summaries->since(tally->host, item->sample), 0);
    if (world_is_gauge(item->series))
        note_level(item, value);
    else if (item->part == OTHER)
        check_other(item, value);
    else if (adds_up && item->part == COUNT)
        note_count(item, (uint64_t)value);
    else if (adds_up && item->part == BUCKET)
        note_bucket(item, value);
    else if (adds_up)
        note_sum(item, value);
}

/* A summary is rejected as a whole. Its first part may come again, after which the others do. */
static bool is_rejected(struct tally *tally, const struct item *item, bool rejected)
{
    bool is_first = item->part == WHOLE || item->part == COUNT;
    bool is_same = tally->rejected_series == item->series && tally->rejected_ns == item->sample->time_ns;
    if (rejected) {
        tally->rejected_series = item->series;
        tally->rejected_ns = item->sample->time_ns;
    } else if (is_first && is_same) {
        tally->rejected_ns = 0;
    }
    return rejected || (is_same && !is_first);
}

/* ---- Batches --------------------------------------------------------------------------------- */

/* What is repeated if the outcome of this batch is not known to the next process. */
static void begin_recent(const struct tally *tally, const weir_batch *batch, uint32_t end)
{
    _Atomic int64_t *recent_ns = &world->recent_ns[world_self][tally->handler];
    if (batch->samples[0].time_ns != atomic_load(recent_ns))
        for (int i = 0; i < WORLD_SERIES; i++)
            world->tallies[world_self][tally->handler][i].recent = (struct world_sum){0};
    atomic_store(recent_ns, batch->samples[end - 1].time_ns);
}

bool tally_weigh(struct tally *tally, const weir_batch *batch)
{
    const weir_ledger *ledger = tally->host->service(tally->host, WEIR_SERVICE_LEDGER);
    if (batch->count > TALLY_SAMPLES)
        world_fail("too many samples for the model");
    if (ledger->values(tally->host, batch->samples, batch->count, tally->values))
        return true;
    for (uint32_t i = 0; i < batch->count; i++)
        tally->values[i] = 1;
    return false;
}

static void settle_value(const struct item *item)
{
    const weir_sample *sample = item->sample;
    double value = sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
    struct world_sum sum = {0};
    world_sum_add(&sum, item->series, value);
    add_settled(item, &sum);
    if (world_is_gauge(item->series))
        note_level(item, value);
}

static bool is_part(const struct tally *tally, const struct item *item)
{
    const weir_summaries *summaries = tally->host->service(tally->host, WEIR_SERVICE_SUMMARIES);
    return tally->takes_parts && summaries->since(tally->host, item->sample) != 0;
}

void tally_settle(struct tally *tally, const weir_batch *batch, uint32_t end, uint32_t delivered,
                  uint64_t values[3])
{
    if (end)
        begin_recent(tally, batch, end);
    for (uint32_t i = 0; i < end; i++) {
        struct item item;
        bool rejected = i >= delivered;
        set_item(&item, tally, batch, i);
        if (item.sample->kind == WEIR_KIND_SUMMARY) {
            settle_summary(tally, batch, &item, tally->values[i]);
        } else if (is_part(tally, &item)) {
            note_part(tally, &item);
            rejected = is_rejected(tally, &item, rejected);
            add_settled(&item, &(struct world_sum){.count = tally->values[i]});
        } else {
            settle_value(&item);
        }
        values[rejected ? WORLD_REJECTED : WORLD_DELIVERED] += tally->values[i];
    }
}
