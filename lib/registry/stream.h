/* stream: finds and creates the stream of a group and labels. */
#ifndef WR_STREAM_H
#define WR_STREAM_H

#include "registry/registry.h"

struct wr_error;

enum { WR_STREAM_LABELS = 64 };

/* Sorts labels by their keys, the order in which streams have them. */
void wr_stream_sort_labels(weir_label *labels, size_t count);

/* [any thread] As weir_get_stream_labeled: the stream stays for ever. Never NULL: on failure a stream that
 * refuses values, with the error set. */
struct weir_stream *wr_stream_get(struct wr_registry *registry, const char *group, const weir_label *labels,
                                  size_t count, struct wr_error *error);

/* [any thread] The same by a key, which has no group and whose labels need not be sorted. If it has a name, the
 * stream may be reused once its series have ended, so the caller is reading until it has used or held it: see
 * reuse.h. */
struct weir_stream *wr_stream_get_for(struct wr_registry *registry, const char *group,
                                      const struct wr_stream_key *wanted, struct wr_error *error);

/* [any thread] Makes the group of values that an earlier process has added, if it is not there, also beyond
 * settings.max_series: what does not fit goes to the series weir_overflow of its group, and is not refused. An
 * invalid name and a want of memory are reported by wr_stream_get, which follows. */
void wr_stream_adopt_group(struct wr_registry *registry, const char *group);

/* [any thread] Why a stream refuses: the message with which it was asked for, or that of its error code. */
const char *wr_stream_refusal(const struct wr_registry *registry, const struct weir_stream *stream);

/* [any thread, reading] Returns the stream with labels in addition to those of `base`, which may be leaving:
 * see reuse.h; NULL: there is none, or the labels are not valid. */
struct weir_stream *wr_stream_find_labeled(struct wr_registry *registry, const struct weir_stream *base,
                                           const weir_label *labels, size_t count);

/* [any thread, reading] The same for a series of that name, and creates it, as wr_stream_get_for. A key that
 * the base has too is refused. */
struct weir_stream *wr_stream_get_labeled(struct wr_registry *registry, const struct weir_stream *base,
                                          const weir_label *labels, size_t count, const char *name,
                                          struct wr_error *error);

/* [any thread] The same for one more label, of a part of that name of what weir knows of a series: it is not
 * counted against any limit, and is reused with the base. NULL: it cannot have that label, or out of memory. */
const struct weir_stream *wr_stream_derive(struct wr_registry *registry, const struct weir_stream *base,
                                           const weir_label *label, const char *name);

#endif
