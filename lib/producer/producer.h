/* producer: what each thread that adds values has: a ring, a cache of the names it uses, counters, and a few
 * words for others.
 *
 * A producer lies on pages of its own that a forked child finds wiped (MADV_WIPEONFORK): state is 0 then, which
 * sends the next call the slow way. It is never freed: when its thread ends, another thread adopts it with
 * whatever the ring still holds, so the number of producers follows the peak number of threads. Beyond
 * WR_PRODUCERS_MOST threads share one. */
#ifndef WR_PRODUCER_H
#define WR_PRODUCER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#include "producer/name_cache_l2.h"
#include "producer/cache.h"
#include "text/common.h"
#include "text/error.h"
#include "os/lock.h"
#include "registry/registry.h"
#include "producer/ring.h"
#include "producer/ticket.h"
#include "producer/unrouted.h"

enum wr_producer_state {
    WR_PRODUCER_COLD = 0, /* not set up, or wiped by a fork */
    WR_PRODUCER_READY,    /* everything may go the fast way */
    WR_PRODUCER_CAREFUL,  /* works, but not the fast way: see `shared`, `own`, `fenced`, `renew`, `ticks` */
    WR_PRODUCER_CLOSED,   /* after shutdown */
};

enum {
    WR_PRODUCER_SLOTS = 4096, /* of a ring: 128 KiB */
    WR_PRODUCERS_MOST = 1024
};

struct wr_producer {
    /* read by each call, written by the thread itself, and by others when something ends */
    WR_ALIGNED_LINE _Atomic uint32_t state; /* enum wr_producer_state */
    _Atomic uint32_t busy;                  /* 1: a call of this thread is on its way */
    bool shared;                            /* several threads use it, under `sharing` */
    bool own;                               /* the thread is one of weir's own: it never waits */
    bool fenced;                            /* there is no membarrier(2): publishing needs a fence */
    _Atomic bool renew;                     /* its ring is not in the journal, and should be */
    _Atomic bool ticks;                     /* time stamps are ticks; others write it under `lock` */
    struct wr_lock sharing;
    struct wr_producers *home;
    struct wr_unrouted unrouted; /* values for which nobody listened */

    struct wr_ring ring;

    struct wr_producer *next_active;  /* on the dispatcher's stack of rings that woke up */
    struct wr_ticket_desk desk;       /* for calls that wait for handlers to answer */
    struct wr_cache cache;            /* of the names it uses */
    struct wr_name_cache_l2 cache_l2; /* of those that the cache has no place for */
    struct wr_error error;            /* the thread's last failure */
};

/* The calling thread's producer; never NULL: one that is COLD and busy for a thread that has none. */
extern _Thread_local struct wr_producer *wr_producer_mine
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* All producers of the process. Lies outside the pages that a fork wipes. */
struct wr_producers {
    struct wr_lock lock;
    pthread_key_t key;                          /* whose destructor notices the end of a thread */
    _Atomic uint32_t count;                     /* of those in `all` */
    struct wr_producer *all[WR_PRODUCERS_MOST]; /* entries before count never change */
    struct wr_producer *orphans[WR_PRODUCERS_MOST];
    uint32_t orphan_count;
    _Atomic(struct wr_producer *) shared; /* for threads beyond; NULL: not needed yet */
    bool fenced, caches;
    bool has_ticks; /* there is a counter that is good for time stamps */
    bool ticks;     /* it is used: see wr_producers_use_ticks */
    bool journal;   /* rings are to be in it */
    _Atomic bool closed;
    _Atomic uint64_t refused[WEIR_REFUSED_MAX];
};

/* Once a process. false: threads cannot be told apart (no key). */
bool wr_producers_init(struct wr_producers *producers);

/* In a forked child, by its only thread: all producers but the caller's own are free for adoption. */
void wr_producers_after_fork(struct wr_producers *producers);

/* Gives the calling thread a producer: its own wiped one again, an orphan, a new one, or the shared one. NULL:
 * no memory, or the thread is ending. With signals blocked. */
struct wr_producer *wr_producers_attach(struct wr_producers *producers);

/* Whether calls read the processor's counter, where it is good for that, or always the wall clock. At first
 * they read the counter. Calls that are on their way may still do what they did before. */
void wr_producers_use_ticks(struct wr_producers *producers, bool wanted);

/* There is a journal, or space for it again: threads move their rings there. */
void wr_producers_renew(struct wr_producers *producers);

/* The calling thread's ring is where it can be: it may go the fast way again. */
void wr_producers_renewed(struct wr_producers *producers);

/* Where the calling thread's last failure is kept. NULL: nowhere, since it shares a producer, or has none and
 * gets none. */
struct wr_error *wr_producers_error(struct wr_producers *producers);

/* Marks the calling thread as one of weir's own. */
void wr_producers_adopt_as_own(struct wr_producers *producers);

/* [shutdown] Has every later call refused. */
void wr_producers_close(struct wr_producers *producers);

/* [shutdown] Waits until the calls that were on their way have come to an end; false: not all did by
 * deadline_ns. */
bool wr_producers_settle(struct wr_producers *producers, int64_t deadline_ns);

/* Whether the thread is one of weir's own. */
static inline bool wr_producer_is_own(void)
{
    return wr_producer_mine->own;
}

/* Has weir_last_error say so on the calling thread, which may have no producer. */
void wr_producer_say_no_memory(void);

/* Whether the thread is ending and has given its producer back. */
bool wr_producer_is_gone(void);

/* Counts a refused value and answers the error's number. */
int wr_producers_refuse(struct wr_producers *producers, enum weir_refusal why, uint64_t count);

/* The same where there are no producers, for want of memory: counted as soon as there are. */
int wr_producers_refuse_early(uint64_t count);

#endif
