/* targets: where the values of each series go: topic, key and headers. Used by the worker only. */
#ifndef KAFKA_TARGETS_H
#define KAFKA_TARGETS_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

struct target {
    rd_kafka_topic_t *topic;     /* NULL: its name is not valid */
    rd_kafka_headers_t *headers; /* NULL: none */
    char *key;                   /* NULL: none */
    size_t key_length;
    bool is_made;
};

/* What all targets are made of. Borrowed. */
struct targets_rules {
    const char *topic; /* a template */
    const char *key;   /* "series", "none", or a template */
    const weir_map *headers;
};

/* All zeros: empty. */
struct targets {
    struct targets_rules rules;
    struct target *table; /* by series */
    uint32_t room;
    uint64_t labels_hash, definitions; /* of the batch that the targets were made with */
};

enum { TARGETS_TOPIC_MAX = 249 }; /* bytes of a topic's name */

/* Whether a byte may be part of a topic's name. */
bool wr_targets_is_topic_byte(char byte);

/* Frees all targets; the rules stay. Must precede the end of the producer. */
void wr_targets_clear(struct targets *targets);

/* Call for each batch before targets are asked for. */
void wr_targets_begin(struct targets *targets, const weir_batch *batch);

/* Returns the target of a series of the batch, valid until the next call. NULL: out of memory. */
const struct target *wr_targets_find(struct targets *targets, rd_kafka_t *producer, const weir_batch *batch,
                                     const weir_series *series);

/* Writes a series' topic as far as it fits. */
void wr_targets_put_topic(const struct targets *targets, const weir_batch *batch, const weir_series *series,
                          char *out, size_t room);

#endif
