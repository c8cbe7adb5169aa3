/* top_series: the series of a page, as they are now and as they were on the page before. */
#ifndef WEIR_TOOLS_TOP_SERIES_H
#define WEIR_TOOLS_TOP_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/arena.h"
#include "registry/hash_table.h"

enum top_kind { TOP_GAUGE, TOP_COUNTER, TOP_HISTOGRAM, TOP_SUMMARY };

/* How many observations are not above a bound. */
struct top_bucket {
    double upper, now, before;
};

struct top_series {
    struct wr_hash_entry entry;
    uint64_t page; /* the last one that it was on */
    enum top_kind kind;
    bool has_before;          /* it was on the page before, as the same kind */
    bool has_other_bounds;    /* than on the page before */
    double value, before;     /* a level; a total; of a histogram or summary the number of observations */
    double sum, sum_before;   /* of what was observed */
    uint32_t bucket, buckets; /* the next one, and how many there are */
    uint32_t bucket_room;
    struct top_bucket *bucket_array;
    size_t name_length, key_length;
    char key[]; /* the name, then keys and values of the labels; each ends in NUL */
};

/* All zeros: empty. */
struct top_table {
    struct wr_hash_table index;
    struct wr_arena arena;
    uint64_t seed, page;
    struct top_series **series;
    uint32_t count, room;
};

/* A page begins: what is now becomes what was before. */
void top_series_start_page(struct top_table *table);

/* Returns the series of a key, which is new if it was not on the page before. */
struct top_series *top_series_get(struct top_table *table, enum top_kind kind, const char *key,
                                  size_t key_length);

/* Sets a bucket of a histogram; they are in ascending order. */
void top_series_set_bucket(struct top_series *series, double upper, double count);

/* The page ends: what is not on it is forgotten. */
void top_series_end_page(struct top_table *table);

/* The first label's key, or the next one's; NULL: there is none. Its value is behind it. */
const char *top_series_first_label(const struct top_series *series);
const char *top_series_next_label(const struct top_series *series, const char *label);
const char *top_series_label_value(const char *label);

void top_series_fini(struct top_table *table);

#endif
