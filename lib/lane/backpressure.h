/* backpressure: how full a lane is, and whether producers wait for it. Arithmetic only, no clock.
 *
 *     CALM ----- at the bound ----> FULL ----- no progress for block_timeout ----> STALLED
 *      ^                             |                                                |
 *      +------- half empty ----------+ <---------- the handler makes progress --------+
 *
 * Only the overflow policy "block" leaves CALM, and any policy while a spool takes what does not fit: then the
 * progress is the disk's. While FULL, producers wait at their gates. While STALLED they do not wait, and what
 * does not fit is dropped.
 *
 * Sources can always wait, so they do in each state from the bound until the queue is half empty. */
#ifndef WR_BACKPRESSURE_H
#define WR_BACKPRESSURE_H

#include <stdbool.h>
#include <stdint.h>

enum wr_overflow { WR_OVERFLOW_BLOCK, WR_OVERFLOW_DROP_NEWEST, WR_OVERFLOW_DROP_OLDEST };

enum wr_backpressure_state { WR_BACKPRESSURE_CALM, WR_BACKPRESSURE_FULL, WR_BACKPRESSURE_STALLED };

/* Who waits for a lane: each value includes those before it. */
enum wr_waiting { WR_NOBODY_WAITS, WR_SOURCES_WAIT, WR_ALL_WAIT };

struct wr_backpressure {
    enum wr_overflow overflow;
    bool spooling;      /* a spool takes samples */
    uint64_t bound;     /* bytes */
    int64_t timeout_ns; /* block_timeout */
    enum wr_backpressure_state state;
    bool pressed;        /* the queue was at its bound, and was not half empty since; always if not CALM */
    int64_t progress_ns; /* when the handler last made progress, or the queue became full */
};

/* The spool takes samples, or no longer does; the queue holds `bytes`. */
void wr_backpressure_set_spooling(struct wr_backpressure *pressure, bool spooling, uint64_t bytes,
                                  int64_t now_ns);

enum wr_waiting wr_backpressure_who_waits(const struct wr_backpressure *pressure);

/* Back to CALM, whatever the queue holds. */
void wr_backpressure_calm(struct wr_backpressure *pressure);

/* Whether the oldest samples are dropped that exceed the bound. */
bool wr_backpressure_drops_oldest(const struct wr_backpressure *pressure);

/* Samples were queued; the queue now holds `bytes`. */
void wr_backpressure_rise(struct wr_backpressure *pressure, uint64_t bytes, int64_t now_ns);

/* The handler made progress; the queue now holds `bytes`. */
void wr_backpressure_fall(struct wr_backpressure *pressure, uint64_t bytes, int64_t now_ns);

/* The handler has taken samples that no longer count, and may never return; the queue now holds `bytes`. This
 * is no progress, but what is left may be too little to be moved to disk, so producers must not wait for that.
 */
void wr_backpressure_ease(struct wr_backpressure *pressure, uint64_t bytes);

/* Applies the end of block_timeout. */
void wr_backpressure_check(struct wr_backpressure *pressure, int64_t now_ns);

/* When wr_backpressure_check has to be called; WR_NEVER: not in this state. */
int64_t wr_backpressure_deadline(const struct wr_backpressure *pressure);

/* How many more bytes the queue accepts; UINT64_MAX: any number. */
uint64_t wr_backpressure_room(const struct wr_backpressure *pressure, uint64_t bytes);

#endif
