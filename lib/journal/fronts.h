/* fronts: for each origin, the numbers that were taken, of all sources of the process; with a journal also in
 * its folder, together with the samples. Thread-safe; the lock is a leaf.
 *
 * Entry n is in slot n - 1 of the file. What the file says of an origin is never more than what is true after a
 * kill: numbers of samples that are in the journal, or are done with. Numbers of samples that were added while
 * there was no journal, or no space, are in the table only. */
#ifndef WR_FRONTS_H
#define WR_FRONTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/front.h"
#include "journal/fronts_file.h"
#include "os/lock.h"
#include "producer/ring.h"

struct wr_front_entry {
    struct wr_front_origin origin;
    struct wr_front front;
    int64_t used_ns;       /* monotonic */
    uint32_t next;         /* of the bucket, or of the free entries; numbers from 1; 0: none */
    uint32_t newer, older; /* in the order of their use */
};

/* All zeros: none. */
struct wr_fronts {
    struct wr_lock lock;
    struct wr_front_entry *entries;
    uint32_t *buckets;
    uint32_t room, used, bucket_count; /* used: entries that ever were in use, including the free ones */
    uint32_t free, newest, oldest;     /* as wr_front_entry.next */
    uint32_t count;
    uint32_t limit;      /* entries; 0: WR_FRONTS_MOST */
    int64_t remember_ns; /* since the last use; 0: WR_FRONTS_REMEMBER_NS */
    struct wr_fronts_file file;
};

enum { WR_FRONTS_MOST = 100000 };
#define WR_FRONTS_REMEMBER_NS (24 * 3600 * INT64_C(1000000000))

/* The present, by both clocks. */
struct wr_fronts_time {
    int64_t monotonic_ns, wall_ns;
};

struct wr_fronts_time wr_fronts_now(void);

/* Numbers of an origin that are taken in one step: reserve, begin, then the samples are published, then end. */
struct wr_fronts_step {
    struct wr_front_origin origin;
    struct wr_front_range range;
    struct wr_fronts_time now;
    bool is_kept; /* they are taken in the file, too; set by begin */
};

/* As wr_front_missing, of an origin. It counts as a use. */
bool wr_fronts_missing(struct wr_fronts *fronts, struct wr_front_origin origin, int64_t now_ns, uint64_t first,
                       uint64_t end, uint64_t *missing, uint64_t *missing_end);

/* Makes the entry of an origin and the file of its slot, if they are missing. *forgotten: incremented by the
 * number of origins that were forgotten because of the limit. Returns false if out of memory. */
bool wr_fronts_reserve(struct wr_fronts *fronts, const struct wr_fronts_step *step, uint64_t *forgotten);

/* [source] Called when nothing can fail any more. The samples are in the ring before a position, not published
 * yet; ring NULL: none of them is written. */
void wr_fronts_begin(struct wr_fronts *fronts, struct wr_fronts_step *step, const struct wr_ring *ring,
                     uint64_t position);

/* [source] The same thread has published the samples. An origin that was forgotten meanwhile is not remembered.
 */
void wr_fronts_end(struct wr_fronts *fronts, const struct wr_fronts_step *step);

/* Forgets an origin. */
void wr_fronts_forget(struct wr_fronts *fronts, struct wr_front_origin origin);

/* ---- In a journal ---------------------------------------------------------------------------- */

/* [dispatcher's round] From now on also keeps fronts in the folder of a journal. */
void wr_fronts_keep(struct wr_fronts *fronts, const char *folder);

/* Whether what is taken now is kept. */
bool wr_fronts_are_kept(struct wr_fronts *fronts);

/* [dispatcher's round] Adds the fronts in a dead process's folder to these, and deletes the files there if all
 * of them are kept now. Returns how many origins were added. */
size_t wr_fronts_adopt(struct wr_fronts *fronts, const char *folder, struct wr_fronts_time now);

/* [dispatcher's round] Keeps no more. The files stay if they have a front, and are deleted if not. */
void wr_fronts_leave(struct wr_fronts *fronts, int64_t now_ns);

void wr_fronts_fini(struct wr_fronts *fronts);

#endif
