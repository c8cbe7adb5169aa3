/* source_names: the series that a source adds to, found by group, labels and name, and limited in number: what
 * strangers send must not fill the registry. Not thread-safe. */
#ifndef WR_SOURCE_NAMES_H
#define WR_SOURCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

#include "text/buffer.h"
#include "text/name_index.h"
#include "text/region.h"

struct wr_source_name {
    struct weir_metric *metric;
    const char *key;
    uint64_t *left;  /* counted up when it is forgotten; may be NULL */
    uint32_t period; /* when it was looked up last; WR_SOURCE_NAME_STAYS: it is not forgotten */
};

#define WR_SOURCE_NAME_STAYS UINT32_MAX

/* All zeros: none. */
struct wr_source_names {
    struct wr_name_index index; /* of keys */
    struct wr_region keep;      /* the keys */
    struct wr_source_name *items;
    uint32_t count, room;
    uint32_t period;      /* see wr_source_names_expire */
    struct wr_buffer key; /* of the record that is being looked up, and behind it of one of its names */
    size_t stem;          /* the length of the former */
};

void wr_source_names_fini(struct wr_source_names *names);

/* Begins a record of a group with labels, in the order in which they are; cumulative values have series of
 * their own. Returns false if out of memory. */
bool wr_source_names_begin(struct wr_source_names *names, const char *group, const weir_label *labels,
                           size_t count, bool cumulative);

/* A series of the record by its name; NULL: it is not known. */
struct weir_metric *wr_source_names_find(struct wr_source_names *names, const char *name);

/* Adds the series of the name that was looked up last. left: see struct wr_source_name. stays: it is not
 * forgotten. Returns false if out of memory. */
bool wr_source_names_add(struct wr_source_names *names, struct weir_metric *metric, uint64_t *left, bool stays);

/* Begins the next period, and forgets what was not looked up in the `periods` before it. Returns the ids of
 * these series in an array that the caller frees, and sets *count; NULL: there are none, or no memory to forget
 * them. */
uint32_t *wr_source_names_expire(struct wr_source_names *names, uint32_t periods, uint32_t *count);

/* From now on nothing is counted up: the counts are not valid any more. */
void wr_source_names_forget_left(struct wr_source_names *names);

/* The key of the label that has the most values in the series, and how many; NULL: no label has two, or out of
 * memory. */
const char *wr_source_names_widest(const struct wr_source_names *names, uint32_t *values);

#endif
