/* transform: what an object in a route does with the values on their way to its handlers: which names pass,
 * what they and their labels become, and which part is taken as a sample. Immutable once read, except that a
 * forked child expands the labels again. */
#ifndef WR_TRANSFORM_H
#define WR_TRANSFORM_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "config/config.h"
#include "config/options.h"

struct wr_buffer;

/* Labels of a series: as many as a stream may have. */
enum { WR_TRANSFORM_LABELS_MAX = 64 };

/* A name, or a pattern with one '*'; what that matches takes the place of the '*' of `to`. */
struct wr_transform_name {
    const char *from, *to;
};

struct wr_transform {
    struct wr_transform *next; /* the one read before, of the same configuration */
    const struct wr_node *node;
    weir_list only, except;           /* patterns; `only` empty: all names */
    struct wr_transform_name *rename; /* the most specific first */
    size_t rename_count;
    weir_map labels; /* that are added, or replace those of the same keys */
    bool keeps;      /* keep_labels is given */
    weir_list keep_labels, drop_labels;
    double sample; /* the part of the events that passes; 1: all */
};

/* The options of an object besides "to" and "rename". */
struct wr_options_table wr_transform_table(void);

/* Reads an object of a route, except for its handlers. *transform becomes NULL if it changes nothing. */
bool wr_transform_read(struct wr_config *config, const struct wr_node *node, struct wr_transform **transform,
                       struct wr_error *error);

/* [forked child] Expands the labels of all transforms of a configuration again: ${PID} is another. */
bool wr_transform_expand_again(struct wr_config *config, struct wr_error *error);

/* Whether values of a name pass. */
bool wr_transform_passes(const struct wr_transform *transform, const char *name);

/* Writes the new name, at most WR_NAME_LONGEST bytes and a NUL. Returns false if it would be longer or empty.
 */
bool wr_transform_rename(const struct wr_transform *transform, const char *name, char *renamed);

/* Writes the new labels, in no order; room: WR_TRANSFORM_LABELS_MAX. Returns how many, or -1: too many. */
int wr_transform_relabel(const struct wr_transform *transform, const weir_label *labels, size_t count,
                         weir_label *relabeled);

/* Writes what it does to an empty buffer: 'only "a" "b", sample 0.1'. */
void wr_transform_show(const struct wr_transform *transform, struct wr_buffer *out);

/* Appends what it does besides filtering and renaming. */
void wr_transform_show_changes(const struct wr_transform *transform, struct wr_buffer *out);

#endif
