#include "source/source_names.h"

#include <stdlib.h>
#include <string.h>

#include "registry/registry.h"
#include "text/array.h"

/* Separates the parts of a key. Label values may have control characters, but no NUL: so their lengths are what
 * keeps them apart. */
enum { SEPARATOR = '\n' };

void wr_source_names_fini(struct wr_source_names *names)
{
    wr_name_index_fini(&names->index);
    wr_region_fini(&names->keep);
    wr_buffer_fini(&names->key);
    free(names->items);
    *names = (struct wr_source_names){0};
}

bool wr_source_names_begin(struct wr_source_names *names, const char *group, const weir_label *labels,
                           size_t count, bool cumulative)
{
    struct wr_buffer *key = &names->key;
    wr_buffer_clear(key);
    wr_buffer_put_text(key, group);
    wr_buffer_put_char(key, cumulative ? '+' : SEPARATOR);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(labels[i].value);
        wr_buffer_put_text(key, labels[i].key);
        wr_buffer_put_char(key, SEPARATOR);
        /* digits in reverse order: the key is not read back */
        for (size_t rest = length; rest; rest /= 10)
            wr_buffer_put_char(key, (char)('0' + rest % 10));
        wr_buffer_put_char(key, SEPARATOR);
        wr_buffer_put(key, labels[i].value, length);
    }
    wr_buffer_put_char(key, SEPARATOR);
    names->stem = key->length;
    return !key->failed;
}

struct weir_metric *wr_source_names_find(struct wr_source_names *names, const char *name)
{
    struct wr_buffer *key = &names->key;
    key->length = names->stem;
    wr_buffer_put_text(key, name);
    if (key->failed)
        return NULL;
    size_t number = wr_name_index_find(&names->index, key->data, key->length);
    if (number == SIZE_MAX)
        return NULL;
    struct wr_source_name *item = &names->items[number];
    if (item->period != WR_SOURCE_NAME_STAYS)
        item->period = names->period;
    return item->metric;
}

bool wr_source_names_add(struct wr_source_names *names, struct weir_metric *metric, uint64_t *left, bool stays)
{
    const char *kept =
        names->key.failed ? NULL : wr_region_text(&names->keep, names->key.data, names->key.length);
    if (!WR_ARRAY_HAS_ROOM(&names->items, &names->room, names->count + 1) || !kept ||
        !wr_name_index_add(&names->index, kept, names->count))
        return false;
    names->items[names->count++] =
        (struct wr_source_name){metric, kept, left, stays ? WR_SOURCE_NAME_STAYS : names->period};
    return true;
}

/* ---- Forgetting ------------------------------------------------------------------------------ */

static bool is_idle(const struct wr_source_names *names, const struct wr_source_name *item, uint32_t periods)
{
    return item->period != WR_SOURCE_NAME_STAYS && names->period - item->period > periods;
}

static uint32_t count_idle(const struct wr_source_names *names, uint32_t periods)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < names->count; i++)
        count += is_idle(names, &names->items[i], periods);
    return count;
}

/* Makes the index and the keys anew, since neither can give anything back. */
static bool copy_busy(struct wr_source_names *to, const struct wr_source_names *from, uint32_t periods)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const struct wr_source_name *item = &from->items[i];
        if (is_idle(from, item, periods))
            continue;
        const char *key = wr_region_text(&to->keep, item->key, strlen(item->key));
        if (!key || !wr_name_index_add(&to->index, key, to->count))
            return false;
        to->items[to->count] = *item;
        to->items[to->count++].key = key;
    }
    return true;
}

static void note_idle(const struct wr_source_names *names, uint32_t periods, uint32_t *ids)
{
    for (uint32_t i = 0; i < names->count; i++) {
        const struct wr_source_name *item = &names->items[i];
        if (!is_idle(names, item, periods))
            continue;
        *ids++ = item->metric->series;
        if (item->left)
            ++*item->left;
    }
}

uint32_t *wr_source_names_expire(struct wr_source_names *names, uint32_t periods, uint32_t *count)
{
    if (++names->period == WR_SOURCE_NAME_STAYS)
        names->period = 0; /* after centuries */
    *count = count_idle(names, periods);
    if (!*count)
        return NULL;
    uint32_t *ids = calloc(*count, sizeof *ids);
    struct wr_source_names busy = {.room = names->count - *count + 1};
    busy.items = calloc(busy.room, sizeof *busy.items);
    if (!ids || !busy.items || !copy_busy(&busy, names, periods)) {
        free(ids);
        wr_source_names_fini(&busy);
        return NULL;
    }
    note_idle(names, periods, ids);
    busy.period = names->period;
    wr_source_names_fini(names);
    *names = busy;
    return ids;
}

void wr_source_names_forget_left(struct wr_source_names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        names->items[i].left = NULL;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

struct label_count {
    const char *key;
    uint32_t values;
};

/* How many different values each label has. */
struct label_counts {
    struct wr_name_index keys, pairs;
    struct wr_region texts; /* of the pairs */
    struct label_count *items;
    uint32_t count, room;
};

static struct label_count *find_label_count(struct label_counts *counts, const char *key)
{
    size_t number = wr_name_index_find(&counts->keys, key, strlen(key));
    if (number != SIZE_MAX)
        return &counts->items[number];
    if (!WR_ARRAY_HAS_ROOM(&counts->items, &counts->room, counts->count + 1) ||
        !wr_name_index_add(&counts->keys, key, counts->count))
        return NULL;
    counts->items[counts->count].key = key;
    return &counts->items[counts->count++];
}

/* Returns false if out of memory. */
static bool count_label(struct label_counts *counts, struct wr_buffer *pair, const weir_label *label)
{
    wr_buffer_clear(pair);
    wr_buffer_put_format(pair, "%s%c%s", label->key, SEPARATOR, label->value);
    if (pair->failed)
        return false;
    if (wr_name_index_find(&counts->pairs, pair->data, pair->length) != SIZE_MAX)
        return true;
    struct label_count *key_count = find_label_count(counts, label->key);
    const char *text = key_count ? wr_region_text(&counts->texts, pair->data, pair->length) : NULL;
    if (!text || !wr_name_index_add(&counts->pairs, text, 0))
        return false;
    key_count->values++;
    return true;
}

static bool count_labels(struct label_counts *counts, const struct wr_source_names *names)
{
    struct wr_buffer pair = {0};
    bool counted = true;
    for (uint32_t i = 0; counted && i < names->count; i++) {
        const struct weir_stream *stream = names->items[i].metric->stream;
        for (uint32_t j = 0; counted && j < stream->label_count; j++)
            counted = count_label(counts, &pair, &stream->labels[j]);
    }
    wr_buffer_fini(&pair);
    return counted;
}

const char *wr_source_names_widest(const struct wr_source_names *names, uint32_t *values)
{
    struct label_counts counts = {0};
    struct label_count widest = {NULL, 1};
    bool counted = count_labels(&counts, names);
    for (uint32_t i = 0; counted && i < counts.count; i++)
        if (counts.items[i].values > widest.values)
            widest = counts.items[i];
    wr_name_index_fini(&counts.keys);
    wr_name_index_fini(&counts.pairs);
    wr_region_fini(&counts.texts);
    free(counts.items);
    *values = widest.values;
    return widest.key;
}
