#include "statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "text/array.h"
#include "text/buffer.h"
#include "text/common.h"

/* ---- Series ---------------------------------------------------------------------------------- */

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const weir_label *)a)->key, ((const weir_label *)b)->key);
}

/* The labels that tell rows apart, ascending. Returns how many. */
static size_t choose_labels(const struct statistics *statistics, const struct wr_parse_record *record,
                            weir_label chosen[WR_PARSER_LABELS])
{
    size_t count = 0;
    for (size_t i = 0; i < record->label_count && i < WR_PARSER_LABELS; i++)
        if (!statistics->by || strcmp(record->labels[i].key, statistics->by) == 0)
            chosen[count++] = record->labels[i];
    if (count > 1)
        qsort(chosen, count, sizeof *chosen, compare_labels);
    return count;
}

static void put_id(struct wr_buffer *out, const char *group, const char *name, const weir_label *labels,
                   size_t count)
{
    if (group)
        wr_buffer_put_format(out, "%s.", group);
    wr_buffer_put_text(out, name);
    for (size_t i = 0; i < count; i++)
        wr_buffer_put_format(out, "%s%s=%s", i ? "," : "{", labels[i].key, labels[i].value);
    wr_buffer_put_text(out, count ? "}" : "");
}

static struct statistics_series *make_series(const char *id, const char *group, const char *name,
                                             const weir_label *labels, size_t count)
{
    struct statistics_series *made = command_must(calloc(1, sizeof *made));
    made->id = command_must(strdup(id));
    made->group = command_must(strdup(group ? group : ""));
    made->name = command_must(strdup(name));
    made->labels = command_must(calloc(count + 1, sizeof *made->labels));
    made->label_count = count;
    for (size_t i = 0; i < count; i++)
        made->labels[i] = (struct statistics_label){command_must(strdup(labels[i].key)),
                                                    command_must(strdup(labels[i].value))};
    return made;
}

static void append(struct statistics *statistics, struct statistics_series *made)
{
    if (!WR_ARRAY_HAS_ROOM(&statistics->series, &statistics->room, (uint32_t)statistics->count + 1))
        command_out_of_memory();
    statistics->series[statistics->count] = made;
    if (!wr_name_index_add(&statistics->index, made->id, statistics->count++))
        command_out_of_memory();
}

/* Returns NULL if there are too many. */
static struct statistics_series *find_or_make(struct statistics *statistics, const char *group,
                                              const char *name, const weir_label *labels, size_t label_count)
{
    static struct wr_buffer id;
    wr_buffer_clear(&id);
    put_id(&id, group, name, labels, label_count);
    const char *text = command_text(&id);
    size_t number = wr_name_index_find(&statistics->index, text, id.length);
    if (number != SIZE_MAX)
        return statistics->series[number];
    if (statistics->count == STATISTICS_SERIES_MOST)
        return NULL;
    append(statistics, make_series(text, group, name, labels, label_count));
    return statistics->series[statistics->count - 1];
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* A total that has become smaller began anew. Returns false for the first one: what it counts from is not
 * known.
 */
static bool find_increment(struct statistics_series *series, double *value)
{
    double total = *value, before = series->total;
    bool had_total = series->has_total;
    series->total = total;
    series->has_total = true;
    *value = total >= before ? total - before : total;
    return had_total;
}

static void put_time(struct statistics *statistics, struct statistics_series *series, int64_t time_ns)
{
    if (!statistics->has_start)
        statistics->start_ns = statistics->end_ns = time_ns;
    statistics->has_start = true;
    if (time_ns > statistics->end_ns)
        statistics->end_ns = time_ns;
    if (!series->has_time || time_ns < series->first_ns)
        series->first_ns = time_ns;
    if (!series->has_time || time_ns > series->last_ns)
        series->last_ns = time_ns;
    series->has_time = true;
}

/* Without a time, values are a millisecond apart: the shortest that bins tell apart. */
static int64_t find_age(struct statistics *statistics, struct statistics_series *series,
                        const struct wr_parse_record *record)
{
    if (record->has_time) {
        put_time(statistics, series, record->time_ns);
        int64_t age_ns;
        return __builtin_sub_overflow(record->time_ns, statistics->start_ns, &age_ns) ? 0 : age_ns;
    }
    return (int64_t)series->sketch.count * WR_NS_PER_MS;
}

static void put_value(struct statistics *statistics, struct statistics_series *series,
                      const struct wr_parse_record *record, double value)
{
    int64_t age_ns = find_age(statistics, series, record);
    if (!isfinite(value)) {
        series->others++;
        return;
    }
    if (wr_sketch_add(&series->sketch, value) != WR_SKETCH_OK)
        command_out_of_memory();
    double step = value - series->mean; /* Welford */
    series->mean += step / (double)series->sketch.count;
    series->squares += step * (value - series->mean);
    bins_put(&series->bins, age_ns, value);
}

void statistics_add(struct statistics *statistics, const struct wr_parse_record *record, const char *group)
{
    weir_label labels[WR_PARSER_LABELS];
    size_t label_count = choose_labels(statistics, record, labels);
    for (size_t i = 0; i < record->count; i++) {
        const weir_typed_value *given = &record->values[i];
        double value =
            given->number.kind == WEIR_KIND_INT ? (double)given->number.is.i64 : given->number.is.f64;
        struct statistics_series *series =
            find_or_make(statistics, record->group ? record->group : group, given->name, labels, label_count);
        statistics->values++;
        if (!series)
            statistics->left_over++;
        else if (!record->cumulative || find_increment(series, &value))
            put_value(statistics, series, record, value);
    }
}

/* ---- Results --------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    return strcmp((*(struct statistics_series *const *)a)->id, (*(struct statistics_series *const *)b)->id);
}

void statistics_sort(struct statistics *statistics)
{
    if (statistics->count)
        qsort(statistics->series, statistics->count, sizeof(struct statistics_series *), compare_ids);
}

double statistics_deviation(const struct statistics_series *series)
{
    return series->sketch.count < 2 ? NAN : sqrt(series->squares / (double)(series->sketch.count - 1));
}
