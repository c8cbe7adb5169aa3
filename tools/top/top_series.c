#include "top_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "text/array.h"

struct key {
    const char *bytes;
    size_t length;
};

/* ---- The table ------------------------------------------------------------------------------- */

static bool is_match(const struct wr_hash_entry *entry, const void *ctx)
{
    const struct top_series *series = (const struct top_series *)entry;
    const struct key *key = ctx;
    return series->key_length == key->length && memcmp(series->key, key->bytes, key->length) == 0;
}

static struct top_series *add(struct top_table *table, uint64_t hash, const struct key *key)
{
    struct top_series *series = command_must(calloc(1, sizeof *series + key->length));
    memcpy(series->key, key->bytes, key->length);
    series->key_length = key->length;
    series->name_length = strlen(series->key);
    wr_hash_set(&series->entry, hash);
    if (!WR_ARRAY_HAS_ROOM(&table->series, &table->room, table->count + 1) ||
        !wr_hash_table_insert(&table->index, &table->arena, &series->entry))
        command_out_of_memory();
    table->series[table->count++] = series;
    return series;
}

/* The first sample of a series on this page. */
static void turn(struct top_series *series, uint64_t page, enum top_kind kind)
{
    series->has_before = series->page && series->kind == kind;
    series->page = page;
    series->kind = kind;
    series->before = series->value;
    series->sum_before = series->sum;
    series->buckets = series->bucket; /* without those that the page before had no more */
    series->bucket = 0;
    series->has_other_bounds = false;
    for (uint32_t i = 0; i < series->buckets; i++)
        series->bucket_array[i].before = series->bucket_array[i].now;
}

struct top_series *top_series_get(struct top_table *table, enum top_kind kind, const char *key,
                                  size_t key_length)
{
    const struct key wanted = {key, key_length};
    uint64_t hash = wr_hash_bytes(table->seed, key, key_length);
    struct top_series *series = (struct top_series *)wr_hash_table_find(&table->index, hash, is_match, &wanted);
    if (!series)
        series = add(table, hash, &wanted);
    if (series->page != table->page)
        turn(series, table->page, kind);
    return series;
}

void top_series_set_bucket(struct top_series *series, double upper, double count)
{
    uint32_t at = series->bucket++;
    if (at == series->buckets || series->bucket_array[at].upper != upper) {
        if (!WR_ARRAY_HAS_ROOM(&series->bucket_array, &series->bucket_room, at + 1))
            command_out_of_memory();
        series->bucket_array[at] = (struct top_bucket){.upper = upper};
        series->buckets = at + 1;
        series->has_other_bounds = true;
    }
    series->bucket_array[at].now = count;
}

/* ---- Pages ----------------------------------------------------------------------------------- */

void top_series_start_page(struct top_table *table)
{
    if (!table->page++)
        table->seed = wr_hash_table_seed();
}

void top_series_end_page(struct top_table *table)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        struct top_series *series = table->series[i];
        if (series->page == table->page) {
            series->has_other_bounds |= series->bucket != series->buckets;
            table->series[kept++] = series;
            continue;
        }
        wr_hash_table_remove(&table->index, &series->entry);
        free(series->bucket_array);
        free(series);
    }
    table->count = kept;
}

void top_series_fini(struct top_table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        free(table->series[i]->bucket_array);
        free(table->series[i]);
    }
    free(table->series); /* the slots of the index are freed with the process */
    *table = (struct top_table){0};
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static const char *find_label(const struct top_series *series, const char *at)
{
    return at < series->key + series->key_length ? at : NULL;
}

const char *top_series_first_label(const struct top_series *series)
{
    return find_label(series, series->key + series->name_length + 1);
}

const char *top_series_label_value(const char *label)
{
    return label + strlen(label) + 1;
}

const char *top_series_next_label(const struct top_series *series, const char *label)
{
    const char *value = top_series_label_value(label);
    return find_label(series, value + strlen(value) + 1);
}
