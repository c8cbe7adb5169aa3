#include "targets.h"

#include <stdlib.h>
#include <string.h>

#include "../templates/series_template.h"

enum { FIRST_ROOM = 256 };

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

struct key_writer {
    char *out; /* NULL: only the length is wanted */
    size_t length;
};

static void put_byte(struct key_writer *writer, char byte)
{
    if (writer->out)
        writer->out[writer->length] = byte;
    writer->length++;
}

static void put_escaped(struct key_writer *writer, const char *text)
{
    for (; *text; text++) {
        if (strchr("|=\\", *text))
            put_byte(writer, '\\');
        put_byte(writer, *text);
    }
}

static void put_label(struct key_writer *writer, const weir_label *label)
{
    put_byte(writer, '|');
    put_escaped(writer, label->key);
    put_byte(writer, '=');
    put_escaped(writer, label->value);
}

/* group|name|key=value..., with the labels of the configuration among those of the series, sorted by key. */
static void put_series(struct key_writer *writer, const weir_batch *batch, const weir_series *series)
{
    size_t own = 0, common = 0, common_count;
    const weir_label *labels = weir_batch_labels(batch, series, &common_count);
    put_escaped(writer, series->group);
    put_byte(writer, '|');
    put_escaped(writer, series->name);
    while (own < series->label_count || common < common_count) {
        int order = own == series->label_count ? 1
                    : common == common_count   ? -1
                                               : strcmp(series->labels[own].key, labels[common].key);
        put_label(writer, order <= 0 ? &series->labels[own] : &labels[common]);
        own += order <= 0;
        common += order >= 0;
    }
}

static bool make_series_key(struct target *target, const weir_batch *batch, const weir_series *series)
{
    struct key_writer writer = {0};
    put_series(&writer, batch, series);
    target->key = malloc(writer.length);
    if (!target->key)
        return false;
    writer = (struct key_writer){.out = target->key};
    put_series(&writer, batch, series);
    target->key_length = writer.length;
    return true;
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
    *target = (struct target){.series = series->id};
    if (is_topic(topic, length) && !(target->topic = rd_kafka_topic_new(producer, topic, NULL)))
        return false;
    if (!make_key(target, &targets->rules, batch, series) ||
        !make_headers(target, targets->rules.headers, batch, series)) {
        fini_target(target);
        return false;
    }
    target->is_used = true;
    return true;
}

void wr_targets_clear(struct targets *targets)
{
    for (size_t i = 0; i < targets->room; i++)
        if (targets->table[i].is_used)
            fini_target(&targets->table[i]);
    free(targets->table);
    free(targets->labels);
    const struct targets_rules rules = targets->rules;
    memset(targets, 0, sizeof *targets);
    targets->rules = rules;
}

/* ---- The labels of the configuration --------------------------------------------------------- */

static char *put_text(char *at, const char *text)
{
    size_t size = strlen(text) + 1;
    memcpy(at, text, size);
    return at + size;
}

/* Keys and values in turn, each with its NUL. Returns NULL if out of memory. */
static char *join_labels(const weir_batch *batch, size_t *size)
{
    *size = 1;
    for (size_t i = 0; i < batch->label_count; i++)
        *size += strlen(batch->labels[i].key) + strlen(batch->labels[i].value) + 2;
    char *text = calloc(1, *size), *at = text;
    for (size_t i = 0; text && i < batch->label_count; i++)
        at = put_text(put_text(at, batch->labels[i].key), batch->labels[i].value);
    return text;
}

bool wr_targets_begin(struct targets *targets, const weir_batch *batch)
{
    size_t size;
    char *labels = join_labels(batch, &size);
    if (!labels)
        return false;
    if (targets->labels && size == targets->labels_size && memcmp(labels, targets->labels, size) == 0) {
        free(labels);
        return true;
    }
    wr_targets_clear(targets);
    targets->labels = labels;
    targets->labels_size = size;
    return true;
}

/* ---- The table ------------------------------------------------------------------------------- */

static struct target *find_place(struct target *table, size_t room, uint32_t series)
{
    size_t at = (series * UINT32_C(2654435761)) & (room - 1);
    while (table[at].is_used && table[at].series != series)
        at = (at + 1) & (room - 1);
    return &table[at];
}

static bool grow(struct targets *targets)
{
    size_t room = targets->room ? targets->room * 2 : FIRST_ROOM;
    struct target *table = calloc(room, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < targets->room; i++)
        if (targets->table[i].is_used)
            *find_place(table, room, targets->table[i].series) = targets->table[i];
    free(targets->table);
    targets->table = table;
    targets->room = room;
    return true;
}

const struct target *wr_targets_find(struct targets *targets, rd_kafka_t *producer, const weir_batch *batch,
                                     const weir_series *series)
{
    if (targets->count * 2 >= targets->room && !grow(targets))
        return NULL;
    struct target *target = find_place(targets->table, targets->room, series->id);
    if (target->is_used)
        return target;
    if (!make_target(target, targets, producer, batch, series))
        return NULL;
    targets->count++;
    return target;
}
