/* node_json: the reports and figures of a node as JSON, as Python's json.dump with indent=4 writes it. Also
 * part of the command. */
#ifndef WEIR_PLUGINS_NODE_JSON_H
#define WEIR_PLUGINS_NODE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "node_figures.h"

struct wr_buffer;

/* Begins a member of an object, or with key NULL an element of an array. depth: that of the member, from 1. */
void node_json_begin(struct wr_buffer *out, bool is_first, int depth, const char *key);

/* Ends an object or array: closing is } or ]. depth: its own. */
void node_json_end(struct wr_buffer *out, bool is_empty, int depth, char closing);

/* Appends an array of `count` reports of NODE_KEYS numbers each. NAN becomes null. */
void node_json_put_reports(struct wr_buffer *out, const double *reports, size_t count, int depth);

/* Appends an object with the figures. */
void node_json_put_figures(struct wr_buffer *out, const double figures[NODE_FIGURES], int depth);

#endif
