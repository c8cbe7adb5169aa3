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

/* All zeros: none. */
struct wr_source_names {
    struct wr_name_index index; /* of keys */
    struct wr_region keep;      /* the keys */
    struct weir_metric **metrics;
    uint32_t count, room;
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

/* Adds the series of the name that was looked up last. Returns false if out of memory. */
bool wr_source_names_add(struct wr_source_names *names, struct weir_metric *metric);

#endif
