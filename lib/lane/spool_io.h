/* spooler: does what spooling.h decides: moves samples of a lane to disk, and back. Each of these is called
 * with the lane's lock held, lets go of it while it is at the disk, and comes back with it. One thread at a
 * time is there: the lane's worker, or at the very end the one that shuts down. */
#ifndef WR_SPOOL_IO_H
#define WR_SPOOL_IO_H

#include <stdint.h>

#include "lane/lane_internal.h"

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

/* Releases what is on disk to other processes. */
void wr_spool_io_release(struct wr_lane *lane);

#endif
