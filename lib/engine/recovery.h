/* recovery: delivers what dead processes left in their journals.
 *
 * A journal's directory is adopted in place. First the samples in its rings are routed, by the current routes,
 * to new segments in the same directory, in one committed round of that journal. Then copies of all samples
 * that are not settled are queued in the lanes, with the identities that are stored in the segments. Lanes
 * settle them in the adopted files. If this process dies too, the next one finds the same samples, without
 * those that were settled. [dispatcher's round] */
#ifndef WR_RECOVERY_H
#define WR_RECOVERY_H

#include <stdint.h>

#include "dispatch/dispatcher.h"
#include "journal/fronts.h"
#include "segment/segment.h"
#include "os/owner_dir.h"

struct wr_recovery_journal {
    struct wr_recovery_journal *next;
    struct wr_owner_dir dir;
};

/* All zeros: nothing was adopted. */
struct wr_recovery {
    struct wr_fronts *fronts;             /* borrowed; get those of the journals; NULL: nothing uses them */
    struct wr_segment_pool pool;          /* adopted segments that are settled */
    struct wr_recovery_journal *journals; /* that are not empty */
};

/* Adopts all journals whose processes are dead, and queues their samples. Messages go to the dispatcher's
 * deferred log. */
void wr_recovery_run(struct wr_recovery *recovery, const char *place, struct wr_dispatcher *dispatcher,
                     int64_t now_ns);

/* Deletes the files of settled segments, and empty journals. */
void wr_recovery_tidy(struct wr_recovery *recovery);

/* [shutdown] The same, and releases the locks of the others. */
void wr_recovery_leave(struct wr_recovery *recovery);

/* [fork] Closes the locks in a forked child. */
void wr_recovery_abandon(const struct wr_recovery *recovery);

#endif
