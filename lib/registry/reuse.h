/* reuse: the stream of a label set that has ended is given to another label set, with the series that were ever
 * made of it, so that the memory of short-lived label sets follows the number of those that live. Each of its
 * series keeps its id, name, flags and address. What changes is the labels, and the serial in the views.
 *
 * Who asks for a stream keeps it: it is pinned until weir_stream_remove. Label sets of calls (weir_add and the
 * like), of sources, and those that are derived, are made for one name, and their streams go to others that are
 * made for the same name: otherwise each would come to have series of all names.
 *
 * A stream that has ended may still be meant by a call in progress, and by samples in rings, queues and files.
 * So the engine (engine/reclaim) takes these steps, with rounds in between:
 *
 * 1. wr_reuse_begin marks the streams that have ended as leaving. Who finds such a stream takes it back, under
 *    the registry lock.
 * 2. All calls that had found one before have ended, a round has taken what they added, and the lanes are done
 *    with everything that they had been given by then.
 * 3. wr_reuse_unlink takes what is still leaving from the table: nobody has used it since 1.
 * 4. All calls that had found one before have ended; they used it no more than to take it back, which failed.
 * 5. wr_reuse_release counts a redefinition, so that encoders forget what they know by id, and makes the
 *    streams spare.
 *
 * Calls say that they are looking for a stream by the counter of their producer (wr_producer_begin_reading), or
 * without one by that of the registry. */
#ifndef WR_REUSE_H
#define WR_REUSE_H

#include "registry/registry.h"

/* ---- The end of a label set ------------------------------------------------------------------ */

/* [registry lock] A label set has a series more or less that lives, or is no longer pinned: it counts for
 * settings.max_series as long as it has one, and has ended when it has none. */
void wr_reuse_note(struct wr_registry *registry, struct weir_stream *stream);

/* [any thread] Keeps a stream from being reused, until wr_reuse_let_go. The caller is reading since it
 * has found the stream, or is a handler that has a sample of it which is not settled: so step 3 comes after it,
 * and sees it. relaxed: the end of the reading and the lane's lock order them. */
static inline void wr_reuse_hold(struct weir_stream *stream)
{
    atomic_fetch_add_explicit(&stream->holders, 1, memory_order_relaxed);
}

/* release: pairs with the acquire in wr_reuse_begin. Nothing is read of the stream after this. */
static inline void wr_reuse_let_go(struct weir_stream *stream)
{
    atomic_fetch_sub_explicit(&stream->holders, 1, memory_order_release);
}

/* [any thread] Returns the ids of the series of a stream that calls have added to, in an array that the caller
 * frees, and sets *count. NULL: out of memory. */
uint32_t *wr_reuse_list_series(struct wr_registry *registry, const struct weir_stream *stream, size_t *count);

/* [any thread] Nobody who asked for the stream needs it any more, and its series have ended. */
void wr_reuse_unpin(struct wr_registry *registry, struct weir_stream *stream);

/* [registry lock] Keeps a stream that is in the table. */
static inline void wr_reuse_take_back(struct weir_stream *stream)
{
    atomic_store_explicit(&stream->is_leaving, false, memory_order_relaxed);
}

/* [any thread] Whether the stream may only be used after it was taken back. */
static inline bool wr_reuse_is_leaving(const struct weir_stream *stream)
{
    return atomic_load_explicit(&stream->is_leaving, memory_order_relaxed);
}

/* [registry lock] Returns a spare stream with the labels of the key, in the table; NULL: there is none, or no
 * memory. */
struct weir_stream *wr_reuse_take(struct wr_registry *registry, const struct wr_stream_key *key);

/* [any thread] Another number than before: an id may stand for another series since then. */
static inline uint64_t wr_reuse_releases(const struct wr_registry *registry)
{
    /* acquire: pairs with the release in wr_reuse_release */
    return atomic_load_explicit(&registry->reuse.releases, memory_order_acquire);
}

/* ---- The steps ------------------------------------------------------------------------------- */

/* [any thread] How many streams have ended since wr_reuse_begin. */
static inline uint32_t wr_reuse_waiting(const struct wr_registry *registry)
{
    return atomic_load_explicit(&registry->reuse.ended_count, memory_order_relaxed);
}

/* [dispatcher's round, which serialises the following] Returns whether there are any that are leaving. Those
 * that have holders are looked at again the next time. */
bool wr_reuse_begin(struct wr_registry *registry);

/* Whether `may_go` returns true for all series of each stream that is leaving. */
bool wr_reuse_check(struct wr_registry *registry, bool (*may_go)(void *ctx, uint32_t series), void *ctx);

/* forget: called with each series of the streams that are taken from the table. Returns whether there are any.
 */
bool wr_reuse_unlink(struct wr_registry *registry, void (*forget)(void *ctx, uint32_t series), void *ctx);

void wr_reuse_release(struct wr_registry *registry);

/* In a forked child: begins anew with what was leaving in its parent. */
void wr_reuse_after_fork(struct wr_registry *registry);

/* ---- Reading, without a producer ------------------------------------------------------------- */

static inline void wr_reuse_begin_reading(struct wr_registry *registry)
{
    /* sequentially consistent, before the search: either wr_reuse_has_readers sees it, or the search sees what
     * was done before that */
    atomic_fetch_add(&registry->reuse.readers, 1);
}

static inline void wr_reuse_end_reading(struct wr_registry *registry)
{
    /* release: what was read comes before what is written once there are no readers */
    atomic_fetch_sub_explicit(&registry->reuse.readers, 1, memory_order_release);
}

static inline bool wr_reuse_has_readers(struct wr_registry *registry)
{
    return atomic_fetch_add(&registry->reuse.readers, 0) != 0;
}

#endif
