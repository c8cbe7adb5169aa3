/* losses: what the log reports of dropped samples: the first of each reason at once, then a count at most once
 * a minute, and the total at the end. Caller holds the lane's lock. */
#ifndef WR_LOSSES_H
#define WR_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

struct wr_lane;

struct wr_losses {
    uint64_t stated[WEIR_DROPPED_MAX];  /* the count that the log has last stated */
    int64_t again_ns[WEIR_DROPPED_MAX]; /* no further message before this */
    bool has_spooled_too_many;          /* summaries of a spool had no room, see WR_SAMPLE_NO_ROOM */
};

/* The name of a drop reason, enum weir_drop, as used in the documents. NULL: there is none. */
const char *wr_losses_name(int why);

/* How many of a handler's values are lost, of those dropped by reason: all but those that a route leaves out.
 */
uint64_t wr_losses_sum(const uint64_t *dropped);

/* Logs what was dropped for reasons that no other message reports. */
void wr_losses_log(struct wr_lane *lane, int64_t now_ns);

/* A message has just reported `count` more samples dropped for this reason. */
void wr_losses_state(struct wr_lane *lane, enum weir_drop why, uint64_t count);

/* The process ends: logs the total by reason, unless one message has stated it already. */
void wr_losses_log_total(struct wr_lane *lane);

#endif
