#include "series_table.h"

#include <stdlib.h>
#include <string.h>

#include "registry/labels_walk.h"
#include "text/array.h"

/* ---- Texts ----------------------------------------------------------------------------------- */

static void release(const struct series_table *table, const struct series_retired *retired)
{
    free(retired->text);
    table->keeper->release(table->host, retired->series);
}

/* Releases what an entry has, or keeps it as long as a snapshot may use it. Without memory for that it is
 * leaked. */
static void retire(struct series_table *table, const struct wr_exposed *entry)
{
    const struct series_retired retired = {entry->text.family, entry->series};
    if (!table->has_snapshot) {
        release(table, &retired);
        return;
    }
    if (WR_ARRAY_HAS_ROOM(&table->retired, &table->retired_room, table->retired_count + 1))
        table->retired[table->retired_count++] = retired;
}

static void forget_all(struct series_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        retire(table, &table->entries[i]);
    table->count = 0;
    if (table->place_count)
        memset(table->places, 0, table->place_count * sizeof *table->places);
}

void series_table_fini(struct series_table *table)
{
    forget_all(table);
    free(table->entries);
    free(table->places);
    free(table->retired);
    *table = (struct series_table){
        .rules = table->rules, .host = table->host, .summaries = table->summaries, .keeper = table->keeper};
}

/* After a change of settings.labels all series have other names, so those known so far have ended. */
static void use_labels(struct series_table *table, const weir_batch *batch)
{
    const uint64_t hash = wr_labels_hash(batch);
    if (hash != table->labels_hash)
        forget_all(table);
    table->labels_hash = hash;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static struct wr_exposed *add_entry(struct series_table *table, const weir_batch *batch,
                                    const weir_series *series)
{
    struct wr_exposed entry = {.series = series};
    if (!WR_ARRAY_HAS_ROOM(&table->places, &table->place_count, series->id + 1) ||
        !WR_ARRAY_HAS_ROOM(&table->entries, &table->room, table->count + 1) ||
        !wr_series_text_init(&entry.text, series, batch, &table->rules))
        return NULL;
    table->keeper->keep(table->host, series);
    table->entries[table->count] = entry;
    table->places[series->id] = (uint32_t)++table->count;
    table->is_sorted = false;
    return &table->entries[table->count - 1];
}

/* A series whose unit, help or instrument has changed is called anew. */
static bool rename_entry(struct series_table *table, struct wr_exposed *entry, const weir_batch *batch,
                         const weir_series *series)
{
    struct wr_series_text text;
    if (!wr_series_text_init(&text, series, batch, &table->rules))
        return false;
    table->keeper->keep(table->host, series);
    retire(table, entry);
    entry->text = text;
    entry->series = series;
    table->is_sorted = false;
    return true;
}

static struct wr_exposed *get_entry(struct series_table *table, const weir_batch *batch,
                                    const weir_series *series)
{
    uint32_t place = series->id < table->place_count ? table->places[series->id] : 0;
    if (!place)
        return add_entry(table, batch, series);
    struct wr_exposed *entry = &table->entries[place - 1];
    return entry->series == series || rename_entry(table, entry, batch, series) ? entry : NULL;
}

/* ---- The end of series ------------------------------------------------------------------------ */

static void find_places(struct series_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        table->places[table->entries[i].series->id] = (uint32_t)i + 1;
}

static bool is_over(const struct wr_exposed *entry, int64_t before_ns)
{
    return entry->seen_ns == INT64_MIN || (entry->text.type == WR_SERIES_GAUGE && entry->seen_ns < before_ns);
}

void series_table_expire(struct series_table *table, int64_t before_ns)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct wr_exposed *entry = &table->entries[i];
        if (is_over(entry, before_ns)) {
            table->places[entry->series->id] = 0;
            retire(table, entry);
        } else
            table->entries[kept++] = *entry;
    }
    if (kept == table->count)
        return;
    table->count = kept;
    find_places(table);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static double value_of(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
}

/* A running total of the program's own is not known to have begun at 0. */
static int64_t find_created(const struct series_table *table, const struct wr_exposed *entry,
                            const weir_sample *sample)
{
    bool is_ours = entry->text.type != WR_SERIES_GAUGE && entry->series->instrument != WEIR_VALUE;
    return table->summaries && is_ours ? table->summaries->since(table->host, sample) : 0;
}

uint32_t series_table_put(struct series_table *table, const weir_batch *batch, int64_t now_ns)
{
    bool has_ended = false;
    use_labels(table, batch);
    for (uint32_t i = 0; i < batch->count; i++) {
        const weir_sample *sample = &batch->samples[i];
        has_ended |= sample->flags & WEIR_SAMPLE_ENDED;
        const weir_series *series = weir_batch_series(batch, sample);
        struct wr_exposed *entry = get_entry(table, batch, series);
        if (!entry) {
            series_table_expire(table, INT64_MIN);
            return i;
        }
        bool is_increment = series->instrument == WEIR_COUNTER && !series->cumulative; /* without "aggregate" */
        entry->value = is_increment ? entry->value + value_of(sample) : value_of(sample);
        entry->time_ns = sample->time_ns;
        entry->created_ns = find_created(table, entry, sample);
        entry->seen_ns = sample->flags & WEIR_SAMPLE_ENDED ? INT64_MIN : now_ns;
    }
    if (has_ended)
        series_table_expire(table, INT64_MIN);
    return batch->count;
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static void sort(struct series_table *table)
{
    if (table->is_sorted || !table->count)
        return;
    wr_exposition_sort(table->entries, table->count);
    find_places(table);
    table->is_sorted = true;
}

bool series_table_take_snapshot(struct series_table *table, struct series_snapshot *snapshot)
{
    if (!WR_ARRAY_HAS_ROOM(&snapshot->entries, &snapshot->room, table->count))
        return false;
    sort(table);
    snapshot->count = table->count;
    if (table->count)
        memcpy(snapshot->entries, table->entries, table->count * sizeof *table->entries);
    table->has_snapshot = true;
    return true;
}

/* An entry that has another text since then finds out by itself. */
static void remember_clashes(struct series_table *table, const struct series_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->count && i < table->count; i++)
        if (table->entries[i].text.family == snapshot->entries[i].text.family)
            table->entries[i].text = snapshot->entries[i].text;
}

void series_table_release_snapshot(struct series_table *table, struct series_snapshot *snapshot)
{
    remember_clashes(table, snapshot);
    while (table->retired_count)
        release(table, &table->retired[--table->retired_count]);
    table->has_snapshot = false;
    snapshot->count = 0;
}

void series_snapshot_fini(struct series_snapshot *snapshot)
{
    free(snapshot->entries);
    *snapshot = (struct series_snapshot){0};
}
