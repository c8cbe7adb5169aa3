/* recovery: what processes that are dead have left in their journals goes to the handlers.
 *
 * Their boxes are adopted where they are. First what is in their rings goes, by the routes in force, to new
 * segments in the same box, in one step of that journal; then what is not settled in all segments is given to
 * the lanes, from copies in memory. As lanes settle it they mark it in the adopted file. So nothing depends on
 * this process either: if it dies, the next one finds what it would have found, less what was settled.
 * [dispatcher's round] */
#ifndef WR_RECOVERY_H
#define WR_RECOVERY_H

#include <stdint.h>

#include "dispatch/dispatcher.h"
#include "segment/segment.h"
#include "os/owner_dir.h"

struct wr_recovery_box {
    struct wr_recovery_box *next;
    struct wr_owner_dir box;
};

/* All zeros: nothing was found. */
struct wr_recovery {
    struct wr_segment_pool pool;   /* of adopted segments that are settled */
    struct wr_recovery_box *boxes; /* that hold something */
};

/* Adopts all that lost their process, and gives what is in them to the lanes. What there is to say of it goes
 * to the dispatcher's words. */
void wr_recovery_run(struct wr_recovery *recovery, const char *place, struct wr_dispatcher *dispatcher,
                     int64_t now_ns);

/* Deletes what is settled. */
void wr_recovery_tidy(struct wr_recovery *recovery);

/* [shutdown] The same, and leaves the rest to whoever comes. */
void wr_recovery_leave(struct wr_recovery *recovery);

/* [fork] Closes the locks in a forked child. */
void wr_recovery_abandon(const struct wr_recovery *recovery);

#endif
