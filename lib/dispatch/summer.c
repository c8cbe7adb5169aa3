#include "dispatch/summer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/pages.h"
#include "os/slab.h"
#include "dispatch/taken.h"
#include "producer/instrument.h"
#include "registry/series.h"
#include "segment/inputs.h"
#include "summary/buckets.h"
#include "summary/neumaier.h"
#include "summary/summary.h"
#include "text/error.h"
#include "text/common.h"

enum {
    FORGET_AFTER = 60, /* intervals without a value, of what is not declared */
};

/* The most that a lane holds in a journal, and the most of the open interval: 4 and 2 million values. */
enum { MOST_HELD_BYTES = 128 * 1024 * 1024, MOST_OPEN_BYTES = MOST_HELD_BYTES / 2 };

/* What a series' values are added up as: its instrument, but running totals are levels. */
enum { TOTAL = WEIR_HISTOGRAM + 1 };

/* A double that grows by many small steps. */
struct exact {
    double sum, compensation;
};

/* Of one series. */
struct sum {
    uint32_t series;
    bool unrouted;    /* nothing leads here any more: it has no summary without values */
    bool has_ended;   /* see wr_summer_end_series */
    uint16_t ends;    /* of the series, when it began */
    int kind;         /* enum weir_instrument, or TOTAL */
    uint32_t idle;    /* intervals without a value, up to now */
    int64_t used_ns;  /* end of the last interval with a value, or of its first; monotonic; 0: not known yet */
    int64_t since_ns; /* since when the totals are counted: wall clock */
    uint64_t count, total_count;
    struct exact sum, total_sum;
    bool has_last;
    bool was_negative;    /* a value was, so that its sum may go back */
    double last;          /* of a gauge: its level */
    const double *bounds; /* of the buckets */
    size_t bucket_count;  /* one more than there are bounds; 0: none */
    uint32_t bounds_check;
    uint64_t *buckets, *total_buckets;
    struct wr_sketch sketch;
};

struct wr_summer {
    struct wr_registry *registry;
    struct sum *sums;
    uint32_t count, room;
    uint32_t distributed; /* sums that have percentiles */
    uint64_t further;     /* parts of all, beside the first of each and percentiles */
    uint32_t *by_series;  /* place in sums, plus 1 */
    uint32_t by_series_room;
    uint32_t declared;      /* series below this were looked at by wr_summer_next_declared */
    uint64_t redefinitions; /* of the registry, when adopt_declarations was called last */
    uint64_t looked_at;     /* the registry's changes, when wr_summer_next_declared began last */
    struct wr_slab slab;
    struct wr_inputs *inputs; /* of the open interval, as far as they are in a journal */
    _Atomic uint64_t held;    /* bytes of all inputs; relaxed: other threads only lower it */
    bool has_recovered;       /* see wr_summer_has_recovered */
    int64_t every_ns;         /* 0: nothing has begun */
    int64_t planned_ns;       /* see wr_summer_plan */
    int64_t start_ns, end_ns; /* wall clock */
    int64_t due_ns;           /* monotonic */
    int64_t last_ns;          /* of the last summary */
    struct wr_taken work;     /* of what is being added or written */
    struct wr_summary_room reading;
};

struct wr_summer *wr_summer_new(struct wr_registry *registry)
{
    struct wr_summer *summer = calloc(1, sizeof *summer);
    if (!summer)
        return NULL;
    summer->registry = registry;
    summer->work.sketch.slab = &summer->slab;
    return summer;
}

void wr_summer_free(struct wr_summer *summer)
{
    free(summer);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static int kind_of(const struct weir_metric *metric)
{
    if (metric->flags & WEIR_SAMPLE_CUMULATIVE)
        return TOTAL;
    int instrument = atomic_load_explicit(&metric->instrument, memory_order_acquire);
    if (instrument == WEIR_VALUE) /* the calls are those of another series, or of an earlier process */
        return atomic_load_explicit(&metric->view, memory_order_acquire)->instrument;
    return instrument;
}

static bool has_room(struct wr_summer *summer, uint32_t series)
{
    return WR_PAGES_HAS_ROOM(&summer->sums, &summer->room, summer->count + 1) &&
           WR_PAGES_HAS_ROOM(&summer->by_series, &summer->by_series_room, series + 1);
}

static size_t bucket_bytes(const struct sum *sum)
{
    return 2 * sum->bucket_count * sizeof *sum->buckets;
}

/* Without memory for them a histogram has no buckets. */
static void make_buckets(struct wr_summer *summer, struct sum *sum, const struct weir_metric *metric)
{
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    size_t count;
    sum->bounds = wr_buckets_of(view, &count);
    sum->bucket_count = count + 1;
    sum->bounds_check = wr_buckets_check(sum->bounds, count);
    sum->buckets = wr_slab_get(&summer->slab, bucket_bytes(sum));
    if (sum->buckets)
        sum->total_buckets = sum->buckets + sum->bucket_count;
    else
        sum->bucket_count = 0;
}

static void free_buckets(struct wr_summer *summer, struct sum *sum)
{
    wr_slab_put(&summer->slab, sum->buckets, bucket_bytes(sum));
    sum->buckets = sum->total_buckets = NULL;
    sum->bucket_count = 0;
}

static bool has_distribution(const struct sum *sum)
{
    return sum->kind == WEIR_VALUE || sum->kind == WEIR_HISTOGRAM;
}

/* As handler/parts makes them. number: 1 or -1. */
static void count_parts(struct wr_summer *summer, const struct sum *sum, int number)
{
    if (!has_distribution(sum))
        return;
    size_t further = sum->kind == WEIR_VALUE ? 4 : 3 + sum->bucket_count;
    summer->distributed += (uint32_t)number;
    summer->further += (uint64_t)number * further;
}

static bool is_full(const struct wr_summer *summer, const struct wr_summing *summing)
{
    uint64_t percentiles = (uint64_t)summer->distributed * summing->percentiles;
    return summer->count + summer->further + percentiles >= summing->parts;
}

static void set_kind(struct wr_summer *summer, struct sum *sum, const struct weir_metric *metric)
{
    sum->kind = kind_of(metric);
    if (sum->kind == WEIR_HISTOGRAM)
        make_buckets(summer, sum, metric);
    count_parts(summer, sum, 1);
}

static void unset_kind(struct wr_summer *summer, struct sum *sum)
{
    count_parts(summer, sum, -1);
    free_buckets(summer, sum);
}

static int64_t begin_of_interval(const struct wr_summer *summer)
{
    return summer->every_ns ? summer->start_ns : wr_clock_wall_ns();
}

static uint16_t ends_of(const struct wr_summer *summer, uint32_t series)
{
    return atomic_load_explicit(&wr_registry_series(summer->registry, series)->ends, memory_order_relaxed);
}

/* Returns NULL without memory. */
static struct sum *add_sum(struct wr_summer *summer, uint32_t series)
{
    if (!has_room(summer, series) || !summer->sums)
        return NULL;
    struct sum *sum = &summer->sums[summer->count++];
    *sum = (struct sum){
        .series = series,
        .ends = ends_of(summer, series),
        .since_ns = begin_of_interval(summer),
        .sketch.slab = &summer->slab,
    };
    set_kind(summer, sum, wr_registry_series(summer->registry, series));
    summer->by_series[series] = summer->count;
    return sum;
}

static void remove_sum(struct wr_summer *summer, struct sum *sum)
{
    struct sum *last = &summer->sums[--summer->count];
    unset_kind(summer, sum);
    wr_sketch_fini(&sum->sketch);
    summer->by_series[sum->series] = 0;
    if (sum == last)
        return;
    *sum = *last;
    summer->by_series[sum->series] = (uint32_t)(sum - summer->sums) + 1;
}

static struct sum *find(const struct wr_summer *summer, uint32_t series)
{
    uint32_t place = series < summer->by_series_room ? summer->by_series[series] : 0;
    return place ? &summer->sums[place - 1] : NULL;
}

bool wr_summer_next_declared(struct wr_summer *summer, uint32_t *series)
{
    /* acquire: pairs with the release in wr_series_meet */
    uint64_t changes = atomic_load_explicit(&summer->registry->redefinitions, memory_order_relaxed) +
                       atomic_load_explicit(&summer->registry->met, memory_order_acquire);
    if (changes != summer->looked_at) /* also what was declared, or met, after it was looked at */
        summer->declared = 0;
    summer->looked_at = changes;
    /* acquire: pairs with the release where the id counts from */
    uint32_t count = atomic_load_explicit(&summer->registry->series, memory_order_acquire);
    while (summer->declared < count) {
        *series = summer->declared++;
        const struct weir_metric *metric = wr_registry_series(summer->registry, *series);
        int kind = kind_of(metric);
        bool is_hidden = metric->is_derived || metric->flags & WR_METRIC_PART ||
                         atomic_load_explicit(&metric->is_ended, memory_order_acquire) ||
                         (kind != WEIR_GAUGE && wr_series_is_of_others(metric)); /* a level is this process's */
        if (kind != WEIR_VALUE && kind != TOTAL && !is_hidden)
            return true;
    }
    return false;
}

/* A level is not known before it is set; and a forked child does not repeat its parent's. */
static bool is_level_known(const struct wr_summer *summer, uint32_t series)
{
    const struct weir_metric *metric = wr_registry_series(summer->registry, series);
    double level;
    return atomic_load_explicit(&metric->view, memory_order_acquire)->serial > summer->registry->inherited &&
           wr_instrument_read_level(metric, &level);
}

void wr_summer_declare(struct wr_summer *summer, const struct wr_summing *summing, uint32_t series, bool routed)
{
    struct sum *sum = find(summer, series);
    if (sum)
        sum->unrouted = !routed;
    else if (routed && !is_full(summer, summing) &&
             (kind_of(wr_registry_series(summer->registry, series)) != WEIR_GAUGE ||
              is_level_known(summer, series)))
        add_sum(summer, series);
}

void wr_summer_plan(struct wr_summer *summer, int64_t every_ns)
{
    summer->planned_ns = every_ns;
}

bool wr_summer_changes(const struct wr_summer *summer, const struct wr_summing *summing)
{
    return summer->planned_ns != summing->every_ns;
}

void wr_summer_follow_plan(struct wr_summer *summer)
{
    summer->declared = 0;
    for (uint32_t i = 0; i < summer->count; i++) /* until their series are looked at */
        summer->sums[i].unrouted = true;
    if (!summer->planned_ns)
        summer->every_ns = 0;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static double value_of(const struct exact *exact)
{
    return exact->sum + exact->compensation;
}

static void add_exactly(struct exact *to, double value)
{
    wr_neumaier_add(&to->sum, &to->compensation, value);
}

/* Whether the sums stay finite. */
static bool is_summable(const struct sum *sum, double value)
{
    return isfinite(sum->sum.sum + value) && isfinite(sum->total_sum.sum + value);
}

/* Adds `count` values: `value` is each of them, `all` what they add up to. */
WR_ALWAYS_INLINE enum wr_summed add_values(struct sum *sum, double value, double all, uint64_t count)
{
    all = sum->kind == WEIR_GAUGE ? 0 : all; /* levels are not summed */
    if (!isfinite(value) || !is_summable(sum, all) || (sum->kind == WEIR_COUNTER && value < 0))
        return WR_SUMMED_NOT;
    if (has_distribution(sum) && wr_sketch_add_many(&sum->sketch, value, count) != WR_SKETCH_OK)
        return WR_SUMMED_NO_MEMORY;
    if (sum->bucket_count) {
        size_t bucket = wr_buckets_find(sum->bounds, sum->bucket_count - 1, value);
        sum->buckets[bucket] += count;
        sum->total_buckets[bucket] += count;
    }
    add_exactly(&sum->sum, all);
    add_exactly(&sum->total_sum, all);
    sum->count += count;
    sum->total_count += count;
    sum->was_negative |= value < 0;
    sum->last = value;
    sum->has_last = true;
    return WR_SUMMED;
}

static void add_to_bucket(struct sum *sum, size_t bucket, uint64_t count)
{
    sum->buckets[bucket] += count;
    sum->total_buckets[bucket] += count;
}

static bool has_same_buckets(const struct sum *sum, size_t count, uint32_t bounds_check)
{
    return sum->bucket_count == count && sum->bounds_check == bounds_check;
}

static enum wr_summed add_value(struct sum *sum, double value)
{
    return add_values(sum, value, value, 1);
}

/* What had no instrument becomes a counter or gauge at once: with the values of this interval so far, as if
 * they had been added to that. Others change when the interval has ended. */
static void adopt_declaration(struct wr_summer *summer, struct sum *sum)
{
    int kind =
        sum->kind == WEIR_VALUE ? kind_of(wr_registry_series(summer->registry, sum->series)) : WEIR_VALUE;
    bool grows = kind == WEIR_COUNTER && sum->sum.sum >= 0;
    if (!grows && kind != WEIR_GAUGE)
        return;
    wr_sketch_clear(&sum->sketch);
    count_parts(summer, sum, -1);
    sum->kind = kind;
    sum->total_count = sum->count;
    sum->total_sum = sum->sum;
}

static void adopt_declarations(struct wr_summer *summer, uint64_t redefinitions)
{
    summer->redefinitions = redefinitions;
    for (uint32_t i = 0; i < summer->count; i++)
        adopt_declaration(summer, &summer->sums[i]);
}

static void clear_totals(struct sum *sum, int64_t now_ns)
{
    sum->since_ns = now_ns;
    sum->total_count = 0;
    sum->total_sum = (struct exact){0, 0};
    sum->was_negative = false;
    if (sum->total_buckets)
        memset(sum->total_buckets, 0, sum->bucket_count * sizeof *sum->total_buckets);
}

/* Of a series that has ended, or that is not known here: there is a value. NULL: no memory for it. */
static struct sum *begin_sum(struct wr_summer *summer, struct sum *sum, uint32_t series)
{
    wr_series_begin(summer->registry, wr_registry_series(summer->registry, series));
    if (!sum)
        return add_sum(summer, series);
    sum->has_ended = false;
    sum->ends = ends_of(summer, series);
    clear_totals(sum, wr_clock_wall_ns());
    return sum;
}

/* Finds the sum of a series, or makes it. Returns NULL with the reason in *failed. */
static inline struct sum *get_sum(struct wr_summer *summer, const struct wr_summing *summing, uint32_t series,
                                  enum wr_summed *failed)
{
    struct sum *sum = find(summer, series);
    /* the ring or cell that values came by makes visible what was declared before them */
    uint64_t redefinitions = atomic_load_explicit(&summer->registry->redefinitions, memory_order_relaxed);
    if (WR_UNLIKELY(redefinitions != summer->redefinitions))
        adopt_declarations(summer, redefinitions);
    if (WR_LIKELY(sum && !sum->has_ended))
        return sum;
    *failed = WR_SUMMED_BEYOND_LIMIT;
    if (!sum && is_full(summer, summing))
        return NULL;
    *failed = WR_SUMMED_NO_MEMORY;
    return begin_sum(summer, sum, series);
}

/* Under the bounds that the values had, or under others, which were declared meanwhile: then by the sketch,
 * whose values are fewer than it keeps as they are. */
static void add_to_buckets(struct sum *sum, const struct wr_summary *summary)
{
    bool is_same = has_same_buckets(sum, summary->bucket_count, summary->bounds_check);
    const struct wr_sketch *shares = &summary->sketch;
    for (size_t i = 0; is_same && i < sum->bucket_count; i++)
        add_to_bucket(sum, i, summary->buckets[i]);
    for (uint32_t i = 0; !is_same && !shares->is_binned && sum->bucket_count && i < shares->entries; i++)
        add_to_bucket(sum, wr_buckets_find(sum->bounds, sum->bucket_count - 1, shares->values[i]),
                      shares->counts[i]);
}

static enum wr_summed add_summary(struct sum *sum, const struct wr_summary *summary)
{
    double mean = summary->sum / (double)summary->count;
    if (!summary->bucket_count || !has_distribution(sum))
        return add_values(sum, mean, summary->sum, summary->count);
    if (!is_summable(sum, summary->sum))
        return WR_SUMMED_NOT;
    if (!wr_sketch_merge(&sum->sketch, &summary->sketch))
        return WR_SUMMED_NO_MEMORY;
    add_to_buckets(sum, summary);
    add_exactly(&sum->sum, summary->sum);
    add_exactly(&sum->total_sum, summary->sum);
    sum->count += summary->count;
    sum->total_count += summary->count;
    sum->was_negative |= summary->sketch.min < 0;
    sum->last = summary->sketch.max;
    sum->has_last = true;
    return WR_SUMMED;
}

/* The calls have checked the increments. What the series is now may be something else than what it was for
 * them: then they are values of their mean. */
enum wr_summed wr_summer_add_taken(struct wr_summer *summer, const struct wr_summing *summing, uint32_t series,
                                   const struct wr_cell_taken *taken)
{
    enum wr_summed failed;
    struct sum *sum = get_sum(summer, summing, series, &failed);
    if (!sum)
        return failed;
    if (!taken->buckets || !has_distribution(sum))
        return add_values(sum, taken->sum / (double)taken->values, taken->sum, taken->values);
    struct wr_summary summary;
    if (!wr_taken_summarise(&summer->work, taken, summer->start_ns, &summary))
        return WR_SUMMED_NO_MEMORY;
    enum wr_summed summed = add_summary(sum, &summary);
    wr_sketch_clear(&summer->work.sketch);
    return summed;
}

enum wr_summed wr_summer_add_summary(struct wr_summer *summer, const struct wr_summing *summing,
                                     uint32_t series, const char *text)
{
    enum wr_summed failed;
    struct wr_error error;
    struct wr_summary summary;
    struct sum *sum = get_sum(summer, summing, series, &failed);
    if (!sum)
        return failed;
    /* what this process has written, or what was read before */
    if (!wr_summary_read_into(&summary, &summer->reading, &summer->slab, text, &error))
        return WR_SUMMED_NO_MEMORY;
    enum wr_summed summed = add_summary(sum, &summary);
    wr_sketch_fini(&summary.sketch);
    return summed;
}

enum wr_summed wr_summer_add(struct wr_summer *summer, const struct wr_summing *summing,
                             const weir_sample *sample)
{
    enum wr_summed failed;
    if (sample->kind != WEIR_KIND_DOUBLE && sample->kind != WEIR_KIND_INT)
        return WR_SUMMED_NOT;
    struct sum *sum = get_sum(summer, summing, sample->series, &failed);
    if (WR_UNLIKELY(!sum))
        return failed;
    double value = sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
    return add_value(sum, value);
}

/* ---- Totals ---------------------------------------------------------------------------------- */

void wr_summer_end_series(struct wr_summer *summer, uint32_t series)
{
    struct sum *sum = find(summer, series);
    if (sum)
        sum->has_ended = true;
}

bool wr_summer_let_go(struct wr_summer *summer, uint32_t series)
{
    struct sum *sum = find(summer, series);
    bool awaits_summary = sum && (sum->count || (sum->has_ended && summer->every_ns));
    if (sum && !awaits_summary)
        remove_sum(summer, sum);
    return !awaits_summary;
}

void wr_summer_return(struct wr_summer *summer)
{
    for (uint32_t i = summer->count; i-- > 0;) {
        struct sum *sum = &summer->sums[i];
        if (!sum->has_ended && !sum->count && sum->ends != ends_of(summer, sum->series))
            remove_sum(summer, sum);
    }
}

/* What an object in a route makes of a series does not end: nor does weir_metric_remove end it. */
static bool may_expire(const struct wr_summer *summer, const struct sum *sum)
{
    const struct weir_metric *metric = wr_registry_series(summer->registry, sum->series);
    bool counts_up = sum->kind == WEIR_COUNTER || sum->kind == WEIR_HISTOGRAM;
    if (sum->has_ended || metric->is_derived || wr_registry_is_shared(metric))
        return false;
    return !counts_up || metric->stream->label_count;
}

bool wr_summer_is_used(const struct wr_summer *summer, uint32_t series, int64_t now_ns, int64_t within_ns)
{
    const struct sum *sum = find(summer, series);
    return sum && (sum->count || !sum->used_ns || now_ns - sum->used_ns < within_ns);
}

bool wr_summer_next_expired(const struct wr_summer *summer, const struct wr_summing *summing, uint32_t *place,
                            int64_t now_ns, uint32_t *series)
{
    while (summing->expiry_ns && *place < summer->count) {
        const struct sum *sum = &summer->sums[(*place)++];
        *series = sum->series;
        if (!wr_summer_is_used(summer, sum->series, now_ns, summing->expiry_ns) && may_expire(summer, sum))
            return true;
    }
    return false;
}

static bool has_totals(const struct sum *sum)
{
    return (sum->kind == WEIR_COUNTER || sum->kind == WEIR_HISTOGRAM) && !sum->has_ended;
}

bool wr_summer_next_total(const struct wr_summer *summer, uint32_t *place, uint32_t *series)
{
    while (*place < summer->count) {
        const struct sum *sum = &summer->sums[(*place)++];
        *series = sum->series;
        if (has_totals(sum))
            return true;
    }
    return false;
}

/* Whether no part of a total would go back if the other one took its place. Each of two handlers that were
 * routed to by turns, and of which one was missing meanwhile, can have values that the other one lacks. */
static bool grows_to(const struct sum *sum, const struct sum *other)
{
    if (sum->total_count >= other->total_count)
        return false;
    for (size_t i = 0; i < sum->bucket_count; i++)
        if (sum->total_buckets[i] > other->total_buckets[i])
            return false;
    return other->was_negative || value_of(&sum->total_sum) <= value_of(&other->total_sum);
}

void wr_summer_take_over(struct wr_summer *summer, const struct wr_summing *summing,
                         const struct wr_summer *from, uint32_t series)
{
    const struct sum *other = find(from, series);
    struct sum *sum = find(summer, series);
    if (!sum && !is_full(summer, summing))
        sum = add_sum(summer, series);
    if (!sum || sum->kind != other->kind || sum->bounds_check != other->bounds_check ||
        sum->bucket_count != other->bucket_count || !grows_to(sum, other))
        return;
    sum->has_ended = false;
    sum->ends = ends_of(summer, series);
    sum->total_count = other->total_count;
    sum->total_sum = other->total_sum;
    sum->was_negative = other->was_negative;
    if (sum->total_buckets)
        memcpy(sum->total_buckets, other->total_buckets, sum->bucket_count * sizeof *sum->total_buckets);
    sum->since_ns = other->since_ns;
}

/* ---- The journal ----------------------------------------------------------------------------- */

bool wr_summer_keep(struct wr_summer *summer, const struct wr_input *input)
{
    bool fits = atomic_load_explicit(&summer->held, memory_order_relaxed) < MOST_HELD_BYTES;
    if (fits && wr_inputs_add(&summer->inputs, input, &summer->held))
        return true;
    wr_segment_settle(input->segment, input->slot, input->first, input->count);
    return false;
}

void wr_summer_has_recovered(struct wr_summer *summer)
{
    summer->has_recovered = true;
}

bool wr_summer_ends_early(const struct wr_summer *summer)
{
    return summer->has_recovered || wr_inputs_bytes(summer->inputs) >= MOST_OPEN_BYTES;
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* The next multiple of the length. The clocks differ by a little, so an interval may have ended just before the
 * multiple that its end was. */
static void set_end(struct wr_summer *summer, int64_t now_ns)
{
    int64_t wall_ns = wr_clock_wall_ns();
    int64_t left_ns = summer->every_ns - wall_ns % summer->every_ns;
    if (wall_ns + left_ns == summer->last_ns)
        left_ns += summer->every_ns;
    summer->end_ns = wall_ns + left_ns;
    summer->due_ns = now_ns + left_ns;
}

bool wr_summer_is_due(struct wr_summer *summer, const struct wr_summing *summing, int64_t now_ns)
{
    if (summer->every_ns != summing->every_ns) {
        if (!summer->every_ns)
            summer->start_ns = wr_clock_wall_ns();
        summer->every_ns = summing->every_ns;
        set_end(summer, now_ns);
    }
    return now_ns >= summer->due_ns;
}

int64_t wr_summer_due(const struct wr_summer *summer)
{
    return summer->due_ns;
}

void wr_summer_postpone(struct wr_summer *summer, int64_t now_ns)
{
    set_end(summer, now_ns);
}

/* ---- Ending an interval ----------------------------------------------------------------------- */

static void clear(struct sum *sum)
{
    sum->count = 0;
    sum->sum = (struct exact){0, 0};
    if (sum->bucket_count)
        memset(sum->buckets, 0, sum->bucket_count * sizeof *sum->buckets);
    wr_sketch_clear(&sum->sketch);
}

/* Appends the summary of a series. Returns false without memory. */
static bool put(struct wr_summer *summer, const struct sum *sum, struct wr_segment *segment, int64_t time_ns)
{
    const struct wr_summary summary = {
        .kind = sum->kind == TOTAL ? WEIR_GAUGE : sum->kind,
        .start_ns = summer->start_ns,
        .end_ns = time_ns,
        .since_ns = sum->since_ns,
        .count = sum->count,
        .sum = value_of(&sum->sum),
        .last = sum->last,
        .total_count = sum->total_count,
        .total_sum = value_of(&sum->total_sum),
        .bucket_count = sum->bucket_count,
        .bounds_check = sum->bounds_check,
        .buckets = sum->buckets,
        .total_buckets = sum->total_buckets,
        .sketch = sum->sketch,
    };
    size_t length = wr_taken_write_summary(&summer->work, &summary);
    uint32_t note = wr_segment_add_note(segment, summer->work.text, length);
    if (!note)
        return false;
    segment->samples[segment->count++] = (weir_sample){
        .series = sum->series,
        .kind = WEIR_KIND_SUMMARY,
        .flags = (uint16_t)((sum->kind == TOTAL ? WEIR_SAMPLE_CUMULATIVE : 0u) |
                            (sum->has_ended ? WEIR_SAMPLE_ENDED : 0u)),
        .time_ns = time_ns,
        .value.i64 = (int64_t)sum->count,
        .note = note,
    };
    return true;
}

/* A series that was declared has a summary in each interval, any other only if there were values. A level is
 * not known before it is set. */
static bool has_summary(const struct sum *sum)
{
    if (sum->count)
        return true;
    if (sum->kind == TOTAL && sum->has_ended && sum->has_last) /* a page to scrape leaves it out by this */
        return true;
    if (sum->unrouted || sum->kind == WEIR_VALUE || sum->kind == TOTAL)
        return false;
    return sum->kind != WEIR_GAUGE || sum->has_last;
}

/* Threads that change one gauge have a ring each, and these are read in any order: the value that was read last
 * is not the level. Where it is not known, such as for recovered values, the last one has to do. */
static void read_levels(const struct wr_summer *summer)
{
    for (uint32_t i = 0; i < summer->count; i++) {
        struct sum *sum = &summer->sums[i];
        if (sum->kind == WEIR_GAUGE &&
            wr_instrument_read_level(wr_registry_series(summer->registry, sum->series), &sum->last))
            sum->has_last = true;
    }
}

static bool has_other_bounds(const struct sum *sum, const struct weir_metric *metric)
{
    size_t count;
    const double *bounds = wr_buckets_of(atomic_load_explicit(&metric->view, memory_order_acquire), &count);
    return sum->bucket_count && bounds != sum->bounds && wr_buckets_check(bounds, count) != sum->bounds_check;
}

/* What its values are summed as was declared anew: totals begin at 0, since its buckets do. */
static void follow_declaration(struct wr_summer *summer, struct sum *sum, int64_t time_ns)
{
    const struct weir_metric *metric = wr_registry_series(summer->registry, sum->series);
    if (sum->kind == kind_of(metric) && !has_other_bounds(sum, metric))
        return;
    unset_kind(summer, sum);
    set_kind(summer, sum, metric);
    clear_totals(sum, time_ns);
}

/* Returns how many sums have a summary. */
static uint32_t count_summaries(const struct wr_summer *summer)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < summer->count; i++)
        count += has_summary(&summer->sums[i]);
    return count;
}

/* The clocks differ by a little, so times ascend; but not after the wall clock was set back. */
static int64_t time_of_end(const struct wr_summer *summer, bool early)
{
    int64_t time_ns = early ? wr_clock_wall_ns() : summer->end_ns;
    if (time_ns > summer->last_ns || summer->last_ns - time_ns > summer->every_ns)
        return time_ns;
    return summer->last_ns + 1;
}

/* What began before the clock was set back did so at the time that the interval ends at. */
static void limit_times(struct wr_summer *summer, int64_t end_ns)
{
    summer->start_ns = summer->start_ns < end_ns ? summer->start_ns : end_ns;
    for (uint32_t i = 0; i < summer->count; i++)
        if (summer->sums[i].since_ns > end_ns)
            summer->sums[i].since_ns = end_ns;
}

static void note_use(struct sum *sum, int64_t now_ns)
{
    sum->idle = sum->count ? 0 : sum->idle + 1;
    if (sum->count || !sum->used_ns)
        sum->used_ns = now_ns;
}

/* What may expire is remembered until it does. */
static bool is_forgotten(const struct wr_summer *summer, const struct wr_summing *summing,
                         const struct sum *sum)
{
    bool awaits_expiry = summing->expiry_ns && may_expire(summer, sum);
    return sum->kind == WEIR_VALUE && sum->idle > FORGET_AFTER && !awaits_expiry;
}

static void begin_next(struct wr_summer *summer, const struct wr_summing *summing, int64_t time_ns,
                       int64_t now_ns)
{
    for (uint32_t i = summer->count; i-- > 0;) {
        struct sum *sum = &summer->sums[i];
        note_use(sum, now_ns);
        clear(sum);
        if (sum->has_ended || is_forgotten(summer, summing, sum))
            remove_sum(summer, sum);
        else
            follow_declaration(summer, sum, time_ns);
    }
    summer->start_ns = summer->last_ns = time_ns;
}

/* Without a summary there were no values that count. */
static void hand_over_inputs(struct wr_summer *summer, struct wr_segment *segment)
{
    struct wr_inputs *inputs = summer->inputs;
    summer->inputs = NULL;
    summer->has_recovered = false;
    if (segment)
        segment->inputs = inputs;
    else if (inputs)
        wr_inputs_settle(inputs);
    if (!segment)
        wr_inputs_free(inputs);
}

struct wr_segment *wr_summer_end(struct wr_summer *summer, const struct wr_summing *summing,
                                 struct wr_segment_pool *pool, int64_t now_ns, bool early)
{
    read_levels(summer);
    uint32_t count = count_summaries(summer);
    int64_t time_ns = time_of_end(summer, early);
    limit_times(summer, time_ns);
    struct wr_segment *segment = count ? wr_segment_new(pool, count) : NULL;
    if (!segment && count)
        return NULL;
    if (segment)
        segment->summaries = segment->other_kinds = true;
    for (uint32_t i = 0; i < summer->count; i++) {
        if (!has_summary(&summer->sums[i]) || put(summer, &summer->sums[i], segment, time_ns))
            continue;
        wr_segment_drop(segment);
        return NULL;
    }
    hand_over_inputs(summer, segment);
    begin_next(summer, summing, time_ns, now_ns);
    return segment;
}

uint64_t wr_summer_discard(struct wr_summer *summer, bool leave)
{
    uint64_t left = 0;
    if (leave && summer->inputs)
        left = wr_inputs_leave(summer->inputs, UINT64_MAX);
    hand_over_inputs(summer, NULL);
    for (uint32_t i = 0; i < summer->count; i++)
        clear(&summer->sums[i]);
    return left;
}
