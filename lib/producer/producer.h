/* producer: what each thread that adds values has: a ring, a cache of the names it uses, counters, and a few
 * fields that other threads use.
 *
 * A producer is on pages of its own that are zero in a forked child (MADV_WIPEONFORK): state is 0 there, which
 * sends the next call to the slow path. It is never freed: when its thread ends, another thread adopts it with
 * what its ring still contains, so the number of producers follows the peak number of threads. Beyond
 * WR_PRODUCERS_MOST threads share one.
 *
 * The thread that forked still refers to its producer in the child, so no other thread may adopt that one. */
#ifndef WR_PRODUCER_H
#define WR_PRODUCER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

#include "producer/name_cache_l2.h"
#include "producer/cache.h"
#include "producer/cells.h"
#include "text/common.h"
#include "text/error.h"
#include "os/lock.h"
#include "registry/registry.h"
#include "producer/ring.h"
#include "producer/ticket.h"
#include "producer/unrouted.h"

enum wr_producer_state {
    WR_PRODUCER_COLD = 0, /* not initialised, or wiped by a fork */
    WR_PRODUCER_READY,    /* the fast path may be used */
    WR_PRODUCER_CLOCKED,  /* the same, but there are no `ticks`: the time is read from the wall clock */
    WR_PRODUCER_CAREFUL,  /* slow path only, because of `shared`, `own`, `fenced` or `renew` */
    WR_PRODUCER_CLOSED,   /* after shutdown */
};

/* Whether a thread is in a call (wr_producer.busy). A waiting call publishes nothing before it is WRITING and
 * has read `state` again, or it has published already: see wr_producers_settle. A producer that several threads
 * use is never IDLE: the fast path would begin and end its call in the midst of that of another thread. */
enum wr_producer_busy { WR_PRODUCER_IDLE = 0, WR_PRODUCER_WRITING, WR_PRODUCER_WAITING, WR_PRODUCER_SHARED };

enum {
    WR_PRODUCER_SLOTS = 4096, /* of a ring: 128 KiB */
    WR_PRODUCERS_MOST = 1024
};

/* All zeros: COLD, in a forked child. */
struct wr_producer {
    WR_ALIGNED_LINE _Atomic uint32_t busy; /* enum wr_producer_busy */
    bool shared;                           /* several threads use it, holding `sharing` */
    struct wr_producers *home;
    struct wr_name_cache_l2 cache_l2; /* of names that the cache has no entry for */
    struct wr_cache cache;            /* of names */

    struct wr_ring ring;

    /* read by each call, written by the thread itself, and by others to close it */
    WR_ALIGNED_LINE _Atomic uint32_t state; /* enum wr_producer_state */
    bool own;                               /* the thread is one of weir's own and never waits */
    _Atomic bool is_source;                 /* the thread adds what a source reads: see wr_gate_hold */
    bool fenced;                            /* no membarrier(2): publishing needs a fence */
    _Atomic bool renew;                     /* its ring and cells are to be moved to the journal */
    _Atomic bool ticks;                     /* time stamps are ticks; written under wr_producers.lock */
    struct wr_lock sharing;
    _Atomic uint32_t reads; /* odd: the thread is in a call that looks for a label set, see registry/reuse.h */
    struct wr_unrouted unrouted; /* values of groups without a route */
    struct wr_cells cells;       /* values that need no ring */

    struct wr_producer *next_active; /* on the dispatcher's stack of woken rings */
    struct wr_ticket_state ticket;   /* of a synchronous call */
    struct wr_error error;           /* the thread's last error */
};

/* Whether it is not initialised in this process. */
static inline bool wr_producer_is_cold(const struct wr_producer *producer)
{
    return atomic_load_explicit(&producer->state, memory_order_relaxed) == WR_PRODUCER_COLD;
}

/* The calling thread's producer. Never NULL: a thread that has none gets one that is COLD and busy. */
extern _Thread_local struct wr_producer *wr_producer_mine
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* All producers of the process. Not on pages that a fork wipes. */
struct wr_producers {
    struct wr_lock lock;
    pthread_key_t key;                          /* its destructor runs when a thread ends */
    _Atomic uint32_t count;                     /* of those in `all` */
    struct wr_producer *all[WR_PRODUCERS_MOST]; /* entries before count never change */
    struct wr_producer *orphans[WR_PRODUCERS_MOST];
    uint32_t orphan_count;
    bool forker_unknown; /* in a child: a cold producer in `all` may be that of the thread that forked */
    _Atomic(struct wr_producer *) shared; /* for further threads; NULL: none needed yet */
    bool fenced, caches;
    bool has_ticks; /* the processor's counter is usable for time stamps */
    bool ticks;     /* and is used: see wr_producers_use_ticks */
    bool journal;   /* rings are to be moved to it */
    /* Called by a producer whose ring was parked when it published; set before there are producers. Must be
     * safe in signal handlers. NULL: not called. */
    void (*wake_reader)(struct wr_producer *producer);
    _Atomic bool closed;
    _Atomic uint64_t *refused; /* WEIR_REFUSED_MAX counters, on a page that a fork wipes */
    bool refused_kept;         /* the kernel cannot wipe it */
};

/* Called once per process. Returns false if no thread-specific key is available. */
bool wr_producers_init(struct wr_producers *producers);

/* In a forked child, by one of its threads, before any of them is attached: all producers but that of the
 * thread that forked may be adopted. forker: what wr_producer_mine was in that thread; NULL: not known, because
 * the process was made by _Fork(3) or the like. Then none may be adopted until that thread is attached. */
void wr_producers_after_fork(struct wr_producers *producers, const struct wr_producer *forker);

/* In a forked child, by its only thread: as wr_producers_after_fork, what cannot wait until weir is used. Safe
 * in signal handlers. */
void wr_producers_forked(struct wr_producers *producers);

/* Gives the calling thread a producer: its own wiped one, an orphan, a new one, or the shared one. Blocks
 * signals meanwhile. Returns NULL if out of memory, or if the thread is ending. */
struct wr_producer *wr_producers_attach(struct wr_producers *producers);

/* Sets whether calls read the processor's counter, if it is usable, or the wall clock. Default: the counter.
 * Calls that are running may still use the other. */
void wr_producers_use_ticks(struct wr_producers *producers, bool wanted);

/* Whether its ring is in a journal. */
bool wr_producer_is_in_journal(struct wr_producer *producer);

/* A journal was started, or has space again: threads move their rings and cells to it. */
void wr_producers_renew(struct wr_producers *producers);

/* The calling thread's ring was moved, or cannot be now: it may use the fast path again. */
void wr_producers_renewed(struct wr_producers *producers);

/* Where the calling thread's last error is stored. NULL: nowhere, because it shares a producer, or has none and
 * gets none. */
struct wr_error *wr_producers_error(struct wr_producers *producers);

/* Marks the calling thread, which has no producer yet, as one of weir's own. It gets a producer when it adds
 * values: most of these threads never do, and a forked child that adds one value would pay for theirs. */
void wr_producers_mark_own(void);

/* [shutdown] Refuses all later calls. */
void wr_producers_close(struct wr_producers *producers);

/* [shutdown] Waits for the calls that may still publish. Returns how many there are after deadline_ns. */
uint32_t wr_producers_settle(struct wr_producers *producers, int64_t deadline_ns);

/* [dispatcher's round] Whether there are values in rings or cells that no round has taken. */
bool wr_producers_have_values(const struct wr_producers *producers);

/* Whether the fast path may be used: it is the thread's own one, and is not fenced. */
static inline bool wr_producer_is_ready(const struct wr_producer *producer)
{
    return atomic_load_explicit(&producer->state, memory_order_relaxed) == WR_PRODUCER_READY;
}

/* [producer] Begins to look for a label set. fenced: as the producer is. Returns false, and has done nothing,
 * in a signal handler that has interrupted a call which does. */
static inline bool wr_producer_begin_reading(struct wr_producer *producer, bool fenced)
{
    uint32_t reads = atomic_load_explicit(&producer->reads, memory_order_relaxed);
    if (reads & 1)
        return false;
    /* The store comes before the search: either wr_producers_note_reads sees it, or the search sees what was
     * done before that. Its membarrier is the fence, so here only the compiler is kept from moving it. Without
     * membarrier both exchange the number, and the second one sees what the first one did before. */
    if (fenced)
        atomic_exchange(&producer->reads, reads + 1);
    else
        atomic_store_explicit(&producer->reads, reads + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static inline void wr_producer_end_reading(struct wr_producer *producer)
{
    uint32_t reads = atomic_load_explicit(&producer->reads, memory_order_relaxed);
    /* release: pairs with the acquire in wr_producers_have_read */
    atomic_store_explicit(&producer->reads, reads + 1, memory_order_release);
}

/* [dispatcher's round] Notes which threads are looking for a label set, in WR_PRODUCERS_MOST numbers, after a
 * full fence in all threads. */
void wr_producers_note_reads(const struct wr_producers *producers, uint32_t *reads);

/* [dispatcher's round] Whether all of those have ended the call that they were in. */
bool wr_producers_have_read(const struct wr_producers *producers, const uint32_t *reads);

/* [producer] Calls wake_reader for a ring that was parked. */
void wr_producer_wake_reader(struct wr_producer *producer);

/* [producer] The same at the end of a call, which it ends. */
void wr_producer_wake_reader_and_end(struct wr_producer *producer);

/* Whether the thread is one of weir's own. */
static inline bool wr_producer_is_own(void)
{
    return wr_producer_mine->own;
}

/* Sets the calling thread's last error to out of memory, also if it has no producer. */
void wr_producer_set_no_memory(void);

/* Whether the thread is ending and has released its producer. */
bool wr_producer_is_gone(void);

/* Counts refused values. Returns the error of the call. */
int wr_producers_refuse(struct wr_producers *producers, enum weir_refusal why, uint64_t count);

/* The same if there are no producers because of a lack of memory: counted as soon as there are. */
int wr_producers_refuse_early(uint64_t count);

#endif
