/* source_marks: what became of what a source has added: the marks of weir_intake. [source]
 *
 * A mark is the number of values that the source had added, and of blocks that were sent again. When it is
 * asked for the first time, the position of the thread's ring is noted; when a round has taken everything
 * before that, each lane concerned gets a bound: everything that it has been given by then. The mark is settled
 * when all of that is. If there are WR_MARKS_PENDING, the latest one takes the place of the one before it,
 * which is settled with it then: later, never earlier.
 *
 * Concerned are the lanes that the source's groups are routed to, and those that they were routed to before,
 * until what these were given is settled. Of a source with more than WR_MARK_GROUPS groups, and if the
 * configuration changes more than once between two looks at it, all lanes are concerned. So they are for a
 * block that was sent again: another source may have added it, whose groups are not known here, and its
 * thread's ring may not be taken yet. */
#ifndef WR_SOURCE_MARKS_H
#define WR_SOURCE_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane/lane_mark.h"

struct wr_engine;
struct wr_group;

enum { WR_MARK_GROUPS = 256, WR_MARKS_PENDING = 64 };

struct wr_source_lane {
    struct wr_lane *lane;
    bool is_routed;            /* some group of the source is routed to it */
    bool was_routed;           /* not any more, but what it was given is not settled */
    struct wr_lane_bound left; /* with was_routed */
    uint64_t dropped;          /* values that it had dropped when that was looked at last */
};

struct wr_source_mark {
    uint64_t number, tail;
    struct wr_lane_bound *bounds; /* as many as there were lanes; NULL: not all is taken from the ring */
    size_t bound_count;
};

/* All zeros: nothing was added. */
struct wr_source_marks {
    struct wr_group *groups[WR_MARK_GROUPS];
    uint32_t group_count;
    bool has_more_groups;
    bool is_known;                /* the following are */
    uint64_t generation;          /* of the configuration that the lanes are of */
    struct wr_source_lane *lanes; /* all lanes ever made, the oldest first */
    size_t lane_count;
    struct wr_source_mark pending[WR_MARKS_PENDING]; /* ascending */
    uint32_t pending_count;
    uint64_t settled;       /* marks up to it are */
    uint64_t all_until;     /* marks up to it concern all lanes */
    uint64_t dropped_until; /* marks up to it are answered with DROPPED */
};

void wr_source_marks_fini(struct wr_source_marks *marks);

/* The source is about to add values of a group. */
void wr_source_marks_note_group(struct wr_source_marks *marks, struct wr_engine *engine,
                                struct wr_group *group);

/* A mark is for a block that was sent again. */
void wr_source_marks_note_repeat(struct wr_source_marks *marks, uint64_t number);

/* As weir_intake.settled. added: the mark for everything so far. */
int wr_source_marks_ask(struct wr_source_marks *marks, struct wr_engine *engine, uint64_t number,
                        uint64_t added);

#endif
