/* spool_policy: decides which samples of a lane go to its spool and when. Caller holds the lane lock. No I/O is
 * done here: see spool_io.h.
 *
 * Samples go to disk when the queue is half full and the handler does not take them: it fails or is stalled, or
 * older ones are on disk already, or they would be dropped. Also when a handler that fails is flushed, and when
 * a lane's time to stop is over. Samples on disk are older than those in the queue but newer than those in
 * flight, and are delivered before any from the queue. */
#ifndef WR_SPOOL_POLICY_H
#define WR_SPOOL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane/lane_internal.h"

/* When samples are to be moved; WR_NEVER: not in this state. */
int64_t wr_spool_policy_time(struct wr_lane *lane, int64_t now_ns);

/* Prepares ledger.moving. Returns false if nothing is to be moved now. */
bool wr_spool_policy_prepare(struct wr_lane *lane, int64_t now_ns);

/* The same while the handler is being called, which is its turn. Otherwise *until_ns is when to try again. */
bool wr_spool_policy_prepare_meanwhile(struct wr_lane *lane, int64_t now_ns, int64_t *until_ns);

/* The same at the end, by another thread than the worker: everything is moved, even the batch that the handler
 * is working on. */
bool wr_spool_policy_prepare_last(struct wr_lane *lane, int64_t now_ns);

/* Whether the lane stops, and no time is left to deliver or the handler fails: all that is in memory goes to
 * disk. */
bool wr_spool_policy_must_save(const struct wr_lane *lane, int64_t now_ns);

/* Whether the lane may end while samples are on disk. */
bool wr_spool_policy_may_leave(const struct wr_lane *lane, int64_t now_ns);

/* When to search for samples of other processes; WR_NEVER: not in this state. */
int64_t wr_spool_policy_search_time(const struct wr_lane *lane);

/* Whether the next batch is on disk only. */
bool wr_spool_policy_must_fetch(const struct wr_lane *lane);

/* "1024 queued, 5000 spooled", for messages. */
void wr_spool_policy_describe(const struct wr_lane *lane, char *text, size_t size);

#endif
