/* source_sets: counts the distinct members of sets, and adds the counts at the end of each interval.
 *
 * Only the source's thread uses it. Intervals end shortly before multiples of their length by the wall clock. A
 * set that had members in the interval before and has none now is 0 once. While the counts of an interval find
 * no room, no further members are taken, so that none is counted in the wrong interval. */
#ifndef WR_SOURCE_SETS_H
#define WR_SOURCE_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/source.h>

#include "source/member_table.h"

struct wr_source;
struct weir_metric;

/* Of one series. */
struct wr_source_set {
    struct weir_metric *metric;
    uint32_t count; /* members of this interval */
};

/* All zeros: no members. */
struct wr_source_sets {
    struct wr_member_table members; /* of all sets */
    struct wr_source_set *sets;
    uint32_t count, room;
    uint32_t *by_series; /* place in sets, plus 1; the ids of a process are dense */
    uint32_t by_series_room;
    int64_t due_ns;    /* when the interval ends, monotonic; 0: there is none */
    uint32_t reported; /* how many sets the interval that has ended has added */
    bool is_reporting; /* it has not added all */
};

void wr_source_sets_fini(struct wr_source_sets *sets);

/* Takes a member of the set that a record with one value names. Returns enum weir_add_result. */
int wr_source_sets_take(struct wr_source *source, const weir_record *record, const char *member);

/* Adds the counts if the interval has ended, or if it ends now: `ends`. Returns false if there is no room. */
bool wr_source_sets_tend(struct wr_source *source, bool ends);

#endif
