/* spool: what a handler has on disk, in order: samples that it could not deliver yet.
 *
 * New samples are put at the end, into files of a box of this process's own. They are fetched at the front, and
 * settled there; a file that is settled whole is deleted. Boxes of processes that are dead are adopted, and
 * what is in them comes first.
 *
 * It does I/O, waits for disks, and has no lock: one thread at a time. */
#ifndef WR_SPOOL_H
#define WR_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "text/buffer.h"
#include "registry/labels.h"
#include "segment/queue.h"
#include "registry/registry.h"
#include "spool/spool_reader.h"
#include "spool/spool_adopt.h"
#include "spool/spool_index.h"
#include "spool/spool_writer.h"

struct wr_error;

struct wr_spool {
    const char *handler;
    struct wr_registry *registry;
    struct wr_spool_index index;

    struct wr_spool_writer writer;
    struct wr_spool_file *open; /* the last one, if more can be appended to it; NULL: none */
    uint64_t open_end;          /* sequence behind its last sample */
    struct wr_buffer out;

    bool reading; /* the first file is in `data` */
    struct wr_buffer data;
    struct wr_spool_reader reader;
    struct wr_segment_pool pool; /* keeps nothing */
    uint64_t labels_made;
};

/* Where and how much. */
struct wr_spool_terms {
    const char *place;
    uint64_t limit;    /* bytes */
    bool drop_oldest;  /* when it is full; otherwise nothing more is taken */
    bool first_in_use; /* the front was fetched, and must stay */
};

enum wr_spool_result {
    WR_SPOOL_OK,
    WR_SPOOL_FULL,   /* the limit is reached, or the disk is full */
    WR_SPOOL_FAILED, /* the disk, or memory */
};

/* Samples, and those of them that this process itself was offered. */
struct wr_spool_count {
    uint64_t samples, own;
};

/* handler: kept, not copied. NULL without memory. */
struct wr_spool *wr_spool_new(const char *handler, struct wr_registry *registry);

/* Leaves everything on disk to whoever wants it. May be NULL. */
void wr_spool_free(struct wr_spool *spool);

/* Puts a range of whole events at the end; or, should later ones be there already, in front of those. *dropped:
 * what had to go for it, whether or not it was enough. error: why not. */
enum wr_spool_result wr_spool_put(struct wr_spool *spool, const struct wr_spool_terms *terms,
                                  const struct wr_range *range, const struct wr_label_set *labels,
                                  struct wr_spool_count *dropped, struct wr_error *error);

/* Looks for boxes of the same handler that have lost their process, and adopts them; only while there is
 * nothing to fetch. false: the error tells why it cannot be looked. */
bool wr_spool_adopt(struct wr_spool *spool, const char *place, struct wr_spool_found *found,
                    struct wr_error *error);

/* How much to fetch: at least one block, and no more blocks than go into these. */
struct wr_spool_want {
    uint32_t samples;
    uint64_t bytes;
    struct wr_label_set *labels; /* used instead of those in the file where they are equal; may be NULL */
};

/* What was fetched. Losses count whatever the result. */
struct wr_spool_batch {
    struct wr_range range;       /* segment NULL: nothing this time. The caller's */
    struct wr_label_set *labels; /* the same, NULL: none */
    bool own;
    struct wr_spool_count lost; /* damaged, in front of it, and settled by that */
    bool kept_bad;              /* a damaged file was kept */
};

/* Reads samples from the front that are not settled yet, in order. Nothing and no losses: there is nothing. */
enum wr_spool_result wr_spool_fetch(struct wr_spool *spool, const struct wr_spool_want *want,
                                    struct wr_spool_batch *batch, struct wr_error *error);

/* So many samples of those fetched are settled. Answers whether a damaged file was kept. */
bool wr_spool_settle(struct wr_spool *spool, uint32_t samples);

/* No sample of this process's own has a sequence before this one; 0: there is none, or it may have any. */
uint64_t wr_spool_front(const struct wr_spool *spool);

/* Deletes the box of its own, if there is nothing in it. */
void wr_spool_tidy(struct wr_spool *spool);

/* The same, and gives up all locks: what is there is whoever's wants it. */
void wr_spool_leave(struct wr_spool *spool);

/* [fork] Closes the locks in a forked child. */
void wr_spool_abandon(const struct wr_spool *spool);

/* How large a file grows under a limit. */
uint64_t wr_spool_file_bytes(uint64_t limit);

#endif
