#include "targets.h"

#include <stdlib.h>
#include <string.h>

#include "format/series_template.h"
#include "registry/labels_walk.h"
#include "text/array.h"
#include "text/buffer.h"

/* ---- Topics ---------------------------------------------------------------------------------- */

bool wr_targets_is_topic_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '.' || byte == '_' || byte == '-';
}

static char to_topic_byte(enum series_template_kind field, char byte)
{
    (void)field;
    return wr_targets_is_topic_byte(byte) ? byte : '_';
}

static const struct series_template_rules topic_rules = {.map = to_topic_byte, .absent = "_"};

void wr_targets_put_topic(const struct targets *targets, const weir_batch *batch, const weir_series *series,
                          char *out, size_t room)
{
    wr_series_template_expand(targets->rules.topic, &topic_rules, batch, series, out, room);
}

static bool is_topic(const char *name, size_t length)
{
    return length > 0 && length <= TARGETS_TOPIC_MAX && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static void put_escaped(struct wr_buffer *key, const char *text)
{
    for (; *text; text++) {
        if (strchr("|=\\", *text))
            wr_buffer_put_char(key, '\\');
        wr_buffer_put_char(key, *text);
    }
}

static void put_label(struct wr_buffer *key, const weir_label *label)
{
    wr_buffer_put_char(key, '|');
    put_escaped(key, label->key);
    wr_buffer_put_char(key, '=');
    put_escaped(key, label->value);
}

/* group|name|key=value..., with the labels of the configuration among those of the series, sorted by key. */
static void put_series(struct wr_buffer *key, const weir_batch *batch, const weir_series *series)
{
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    put_escaped(key, series->group);
    wr_buffer_put_char(key, '|');
    put_escaped(key, series->name);
    while ((label = wr_labels_next(&walk, series, batch)))
        put_label(key, label);
}

static bool make_series_key(struct target *target, const weir_batch *batch, const weir_series *series)
{
    struct wr_buffer key = {0};
    put_series(&key, batch, series);
    target->key_length = key.length;
    target->key = wr_buffer_take(&key);
    return target->key;
}

/* Returns the expansion; NULL: out of memory. */
static char *expand(const char *text, const weir_batch *batch, const weir_series *series, size_t *length)
{
    static const struct series_template_rules as_it_is = {0};
    *length = wr_series_template_expand(text, &as_it_is, batch, series, NULL, 0);
    char *out = malloc(*length + 1);
    if (out)
        wr_series_template_expand(text, &as_it_is, batch, series, out, *length + 1);
    return out;
}

static bool make_key(struct target *target, const struct targets_rules *rules, const weir_batch *batch,
                     const weir_series *series)
{
    if (strcmp(rules->key, "none") == 0)
        return true;
    if (strcmp(rules->key, "series") == 0)
        return make_series_key(target, batch, series);
    target->key = expand(rules->key, batch, series, &target->key_length);
    return target->key;
}

static bool make_headers(struct target *target, const weir_map *headers, const weir_batch *batch,
                         const weir_series *series)
{
    if (!headers->count)
        return true;
    target->headers = rd_kafka_headers_new(headers->count);
    for (size_t i = 0; target->headers && i < headers->count; i++) {
        size_t length;
        char *value = expand(headers->items[i].value, batch, series, &length);
        if (!value)
            return false;
        rd_kafka_header_add(target->headers, headers->items[i].key, -1, value, (ssize_t)length);
        free(value);
    }
    return target->headers;
}

/* ---- Targets --------------------------------------------------------------------------------- */

static void fini_target(struct target *target)
{
    if (target->topic)
        rd_kafka_topic_destroy(target->topic);
    if (target->headers)
        rd_kafka_headers_destroy(target->headers);
    free(target->key);
    *target = (struct target){0};
}

static bool make_target(struct target *target, const struct targets *targets, rd_kafka_t *producer,
                        const weir_batch *batch, const weir_series *series)
{
    char topic[TARGETS_TOPIC_MAX + 1];
    size_t length =
        wr_series_template_expand(targets->rules.topic, &topic_rules, batch, series, topic, sizeof topic);
    *target = (struct target){0};
    if (is_topic(topic, length) && !(target->topic = rd_kafka_topic_new(producer, topic, NULL)))
        return false;
    if (!make_key(target, &targets->rules, batch, series) ||
        !make_headers(target, targets->rules.headers, batch, series)) {
        fini_target(target);
        return false;
    }
    target->is_made = true;
    return true;
}

void wr_targets_clear(struct targets *targets)
{
    for (size_t i = 0; i < targets->room; i++)
        fini_target(&targets->table[i]);
    free(targets->table);
    *targets = (struct targets){.rules = targets->rules};
}

void wr_targets_begin(struct targets *targets, const weir_batch *batch)
{
    const uint64_t hash = wr_labels_hash(batch);
    if (hash != targets->labels_hash || batch->definitions != targets->definitions)
        wr_targets_clear(targets);
    targets->labels_hash = hash;
    targets->definitions = batch->definitions;
}

/* ---- The table ------------------------------------------------------------------------------- */

const struct target *wr_targets_find(struct targets *targets, rd_kafka_t *producer, const weir_batch *batch,
                                     const weir_series *series)
{
    if (!WR_ARRAY_HAS_ROOM(&targets->table, &targets->room, series->id + 1))
        return NULL;
    struct target *target = &targets->table[series->id];
    return target->is_made || make_target(target, targets, producer, batch, series) ? target : NULL;
}
