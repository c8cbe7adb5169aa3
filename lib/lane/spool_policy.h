/* spooling: what of a lane goes to its spool, and when; and what became of it. [under the lock] No I/O is done
 * here: spooler.h does what was decided.
 *
 * Samples go to disk when the queue is half full and the handler does not take them: it fails or is stalled, or
 * there are older ones on disk already, or they would be dropped. Also when somebody flushes a handler that
 * fails, and when a lane's time to stop is over. What is on disk is older than what is in the queue, but newer
 * than what is in flight, and goes to the handler before anything from the queue does. */
#ifndef WR_SPOOL_POLICY_H
#define WR_SPOOL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane/lane_internal.h"

/* How many bytes of samples are moved at a time, under a limit. */
uint64_t wr_spool_policy_step_bytes(uint64_t limit);

/* When there is something to move; WR_NEVER: nothing is. */
int64_t wr_spool_policy_time(struct wr_lane *lane, int64_t now_ns);

/* Prepares spool_state.moving, if there is something to move now. */
bool wr_spool_policy_prepare(struct wr_lane *lane, int64_t now_ns);

/* The same, at the very end and by another thread than the worker: everything goes, also what the handler has
 * in its hands. */
bool wr_spool_policy_prepare_last(struct wr_lane *lane, int64_t now_ns);

/* Whether the lane stops and there is no more time to deliver. */
bool wr_spool_policy_must_save(const struct wr_lane *lane, int64_t now_ns);

/* Whether there is anything that is not on disk. */
bool wr_spool_policy_has_memory(const struct wr_lane *lane);

/* When to look for what other processes left; WR_NEVER: not as things are. */
int64_t wr_spool_policy_search_time(const struct wr_lane *lane);

/* Whether the next batch has to come from disk, and is not in memory yet. */
bool wr_spool_policy_must_fetch(const struct wr_lane *lane);

/* ---- What became of it ----------------------------------------------------------------------- */

/* How things are on disk after an operation. */
struct wr_spool_policy_disk {
    uint64_t bytes;
    uint64_t front; /* no sample of this process's own that is on disk has a position before it */
};

/* The disk was looked at; called after each operation, before what follows here. */
void wr_spool_policy_update(struct wr_lane *lane, const struct wr_spool_policy_disk *state);

/* What was moved is on disk. */
void wr_spool_policy_moved(struct wr_lane *lane, int64_t now_ns);

/* It is not: the reason in words. */
void wr_spool_policy_failed(struct wr_lane *lane, bool full, const char *words, int64_t now_ns);

/* Samples that were on disk are dropped. own: of them, this process's own. */
void wr_spool_policy_lost(struct wr_lane *lane, enum weir_drop why, uint64_t samples, uint64_t own);

/* Says that samples on disk, and a file with them, were damaged. kept: the file was moved aside. */
void wr_spool_policy_log_damage(struct wr_lane *lane, uint64_t samples, bool kept);

/* Samples of earlier processes were found. more: there may be others. */
void wr_spool_policy_found(struct wr_lane *lane, uint64_t samples, bool more, int64_t now_ns);

/* Samples were read, of this process's own or not; with a reference, and labels with one. */
void wr_spool_policy_fetched(struct wr_lane *lane, const struct wr_range *range, struct wr_label_set *labels,
                             bool own);

/* They could not be read at this time: the reason in words. */
void wr_spool_policy_not_fetched(struct wr_lane *lane, const char *words, int64_t now_ns);

/* Samples that were read from disk are settled; `next`: the position behind them. */
void wr_spool_policy_settled(struct wr_lane *lane, uint32_t samples, uint64_t next, int64_t now_ns);

/* It cannot be looked for them: the reason in words. */
void wr_spool_policy_not_found(struct wr_lane *lane, const char *words, int64_t now_ns);

/* "1024 queued, 5000 spooled", for messages. */
void wr_spool_policy_describe(const struct wr_lane *lane, char *text, size_t size);

#endif
