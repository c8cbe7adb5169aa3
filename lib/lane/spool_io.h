/* spool_io: moves samples of a lane to disk and back, as spool_policy.h decides, and applies the results.
 * Caller holds the lane lock; each function but the last releases it while it uses the disk, and returns with
 * it held. Used by one thread at a time: the lane's worker; while that is inside the handler, the spooler; or
 * at the end the thread that shuts down. */
#ifndef WR_SPOOL_IO_H
#define WR_SPOOL_IO_H

#include <stdint.h>

#include "lane/lane_internal.h"

/* Moves ledger.moving to disk. */
void wr_spool_io_move(struct wr_lane *lane);

/* Adopts what earlier processes left. */
void wr_spool_io_search(struct wr_lane *lane);

/* Reads the next batch. */
void wr_spool_io_fetch(struct wr_lane *lane);

/* Marks on disk what was settled, if anything was. */
void wr_spool_io_settle(struct wr_lane *lane);

/* Deletes empty folders, before the worker ends. */
void wr_spool_io_tidy(struct wr_lane *lane);

/* Releases what is on disk to other processes. */
void wr_spool_io_release(struct wr_lane *lane);

/* Samples read from disk, which are this many values, are settled in the ledger. */
void wr_spool_io_settled(struct wr_lane *lane, uint32_t samples, uint64_t values, int64_t now_ns);

#endif
