/* family: all series that have one name in one group, whatever their labels. What the name means, its
 * instrument, unit, help and buckets, belongs to the family: declared by the program, or set by the section
 * "metrics" of a configuration, which takes precedence.
 *
 * A family is created with its first series or declaration, and never freed. Finding one takes no lock. */
#ifndef WR_FAMILY_H
#define WR_FAMILY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "registry/registry.h"

struct wr_error;
struct wr_metric_rules;

/* What a name means. Texts and buckets are borrowed. */
struct wr_meaning {
    enum weir_instrument instrument;
    const char *unit, *help; /* NULL: not known */
    const double *buckets;   /* upper bounds, rising; NULL: none */
    size_t bucket_count;
    enum wr_merge merge; /* of a gauge */
};

struct wr_family {
    struct wr_hash_entry entry;
    struct wr_group *group;
    _Atomic uint8_t declared_as; /* enum weir_instrument of the program's declaration */
    _Atomic uint8_t taken_parts; /* WR_PART_* of names like NAME.sum that are in use by themselves */
    uint8_t length;              /* of the name */

    /* [registry lock] */
    bool is_in_calls;          /* it has series that calls add to, not only ones that are parts */
    uint8_t program_changes;   /* of the meaning, by the program */
    uint8_t rule_changes;      /* of the meaning, by configurations */
    struct wr_meaning program; /* as the program declared and described it */
    struct wr_meaning learned; /* from recovered values: handlers get it, but calls are not checked by it */
    /* that handlers get; its texts are in the registry's arena, as are those above */
    struct wr_meaning meaning;
    /* enum weir_instrument by which calls are checked: without what was learned. [registry lock] for writing */
    _Atomic uint8_t enforced;
    uint32_t *members; /* ids of its series */
    uint32_t member_count, member_room;
    _Atomic uint32_t labeled;                   /* how many of them have labels */
    _Atomic uint32_t max_labeled;               /* beyond it, further label sets share a series; 0: never */
    struct weir_stream *spare[WR_STREAM_KINDS]; /* [registry lock] of label sets that were made for the name, by
                                                   is_foreign: see reuse.h */
    char name[];
};

/* Former meanings stay readable by handlers, so their number is bounded. */
enum { WR_FAMILY_PROGRAM_CHANGES_MAX = 16, WR_FAMILY_RULE_CHANGES_MAX = 200 };
enum { WR_FAMILY_BUCKETS_MAX = 200, WR_FAMILY_DEFAULT_MAX_LABELED = 2000 };

/* Returns the name of an instrument in configurations and messages: "counter". */
const char *wr_family_instrument_name(enum weir_instrument instrument);

/* [any thread] Returns NULL if there is none. name: valid. */
struct wr_family *wr_family_find(const struct wr_registry *registry, const struct wr_group *group,
                                 const char *name, size_t length);

/* [registry lock] Finds or creates it. Returns NULL if out of memory. */
struct wr_family *wr_family_make(struct wr_registry *registry, struct wr_group *group, const char *name,
                                 size_t length);

/* [registry lock] Makes room for one more series, so that wr_family_add cannot fail. Returns false if out of
 * memory. */
bool wr_family_reserve(struct wr_registry *registry, struct wr_family *family);

/* [registry lock] Enters a new series, which has the family's meaning. */
void wr_family_add(struct wr_family *family, struct weir_metric *metric);

/* The parts that are made of what is known of a name in an interval, such as NAME.sum: bits. */
enum wr_part {
    WR_PART_COUNT = 1u << 0,
    WR_PART_SUM = 1u << 1,
    WR_PART_BUCKET = 1u << 2,
    WR_PART_MIN = 1u << 3,
    WR_PART_MAX = 1u << 4,
    WR_PART_LAST = 1u << 5,
    WR_PART_PERCENTILE = 1u << 6, /* NAME.p99_9 */
};

/* [registry lock] Calls add to the family from now on, with running totals (cumulative) or without. If it is
 * called like a part of another one, that is noted there: summaries of counters, gauges and running totals have
 * their names, those of others have only parts. Returns false if out of memory. */
bool wr_family_enter_calls(struct wr_registry *registry, struct wr_family *family, bool cumulative);

/* [any thread] Writes what the names of these parts begin with: the name, with ".distribution" as often as it
 * takes until none of the names is in use by itself. Returns its length, which reaches the room if the text
 * was cut. */
size_t wr_family_put_stem(const struct wr_registry *registry, const struct wr_group *group, const char *name,
                          unsigned parts, char *stem, size_t room);

/* [registry lock] A series that was added last is not counted against the name's limit of label sets. */
void wr_family_uncount(struct wr_family *family, const struct weir_metric *metric);

/* [registry lock] Whether the name has a meaning by itself: by the program, by what was learned, or by an entry
 * of the configuration that is for this name alone. */
bool wr_family_means_something(const struct wr_registry *registry, const struct wr_family *family);

/* [any thread] Whether a further label set has to share a series. */
static inline bool wr_family_is_full(const struct wr_family *family)
{
    uint32_t max = atomic_load_explicit(&family->max_labeled, memory_order_relaxed);
    return max && atomic_load_explicit(&family->labeled, memory_order_relaxed) >= max;
}

/* [any thread] As weir_declare. The spec is complete: missing fields are 0. error: not NULL. */
int wr_family_declare(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                      const weir_metric_spec *spec, struct wr_error *error);

/* [any thread] Whether values that come with an instrument, another one than WEIR_VALUE, cannot be taken: the
 * name was declared as something else, and the configuration does not replace that. Sets the error then. */
bool wr_family_refuses(const struct wr_registry *registry, const struct wr_group *group, const char *name,
                       enum weir_instrument instrument, struct wr_error *error);

/* [any thread] As weir_describe. error: not NULL. */
int wr_family_describe(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                       const char *unit, const char *help, struct wr_error *error);

/* [any thread] What another process had declared, for its recovered values: handlers get it where this process
 * has declared nothing, but it does not bind the values of this process. Failure is ignored. */
void wr_family_learn(struct wr_registry *registry, struct weir_metric *metric, const weir_series *read);

/* [configuring] Puts the rules of a configuration in use for all families, present and future. They are
 * borrowed until the next call. NULL: none. */
void wr_family_set_rules(struct wr_registry *registry, const struct wr_metric_rules *rules);

#endif
