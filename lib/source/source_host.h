/* source_host: the functions of weir_host and the services, for sources. */
#ifndef WR_SOURCE_HOST_H
#define WR_SOURCE_HOST_H

#include "source/source.h"

/* name: valid as long as the source. */
void wr_source_host_init(struct wr_source *source, const char *name);

/* Puts the group of values that come with that one; NULL: with none. Returns it, or NULL if out of memory. */
const char *wr_source_host_put_group(struct wr_buffer *out, const struct wr_source *source, const char *group);

/* [source] Sleeps until a stop is requested, at most until deadline_ns (WR_NEVER: no limit). Returns false if
 * it is. */
bool wr_source_host_pause(struct wr_source *source, int64_t deadline_ns);

/* [source] Counts values that are not added, or, as WR_SOURCE_FAULT_LINE, a line that is not understood, and
 * logs the first of each kind. */
void wr_source_host_refuse(struct wr_source *source, enum wr_source_fault kind, uint64_t count,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));

/* [source] The same for values that are refused before they are offered to a ring, which counts for the
 * process, too. Returns WEIR_ADD_REFUSED. */
int wr_source_host_refuse_values(struct wr_source *source, uint64_t count, enum weir_refusal why,
                                 const char *text);

/* Adds n to one of the core's own counters of the source. */
void wr_source_host_count(struct wr_source *source, enum wr_source_count what, uint64_t n);

/* [source] As weir_blocks.mark_repeat. */
uint64_t wr_source_host_mark_repeat(struct wr_source *source);

/* [source] After an attempt to add found no room, before the last one: the next wait ends when there may be
 * room. */
void wr_source_host_want_room(struct wr_source *source);

/* [source] That one found none either: counts it. Returns WEIR_ADD_FULL. */
int wr_source_host_wait(struct wr_source *source);

/* [source] Copies a record of a source type, of whatever size it was compiled with. Returns false if it is not
 * allowed: this is counted and logged. */
bool wr_source_host_read(struct wr_source *source, const weir_record *record, weir_record *whole);

/* [source] Adds a record that was read. Returns as weir_intake.add. */
int wr_source_host_add(struct wr_source *source, const weir_record *record);

/* [source] The series of a record with one value, whose value is not used. Returns NULL if it is refused, which
 * is logged, but not counted. */
struct weir_metric *wr_source_host_resolve(struct wr_source *source, const weir_record *record);

/* [source] The same, but a refusal is counted. */
struct weir_metric *wr_source_host_find(struct wr_source *source, const weir_record *record);

/* [source] Adds a number to a series that some source of the process has resolved. Returns as weir_intake.add.
 */
int wr_source_host_add_number(struct wr_source *source, struct weir_metric *metric, weir_number number);

#endif
