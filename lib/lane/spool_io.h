/* spooler: does what spooling.h decides: moves samples of a lane to disk, and back. Each of these is called
 * with the lane's lock held, lets go of it while it is at the disk, and comes back with it. One thread at a
 * time is there: the lane's worker, or at the very end the one that shuts down. */
#ifndef WR_SPOOL_IO_H
#define WR_SPOOL_IO_H

#include <stdint.h>

#include "lane/lane.h"

/* Moves spool_state.moving to disk. */
void wr_spool_io_move(struct wr_lane *lane);

/* Looks for what earlier processes left. */
void wr_spool_io_search(struct wr_lane *lane);

/* Reads the next batch. */
void wr_spool_io_fetch(struct wr_lane *lane);

/* Tells the disk what was settled, if anything was. */
void wr_spool_io_settle(struct wr_lane *lane);

/* The worker has nothing more to do: a folder with nothing in it goes. */
void wr_spool_io_tidy(struct wr_lane *lane);

/* ---- [any thread, without the lock] ---------------------------------------------------------- */

/* Waits until the lane's worker has come to its end, or deadline_ns; then sees to it that what is left goes to
 * disk, for which the worker gets a little more time. Returns at once for a lane without a spool. */
void wr_spool_io_save(struct wr_lane *lane, int64_t deadline_ns);

/* Leaves what is on disk to whoever wants it. The lane must have come to its end. */
void wr_spool_io_leave(struct wr_lane *lane);

/* [fork] Closes what a forked child must not hold. */
void wr_spool_io_abandon(const struct wr_lane *lane);

#endif
