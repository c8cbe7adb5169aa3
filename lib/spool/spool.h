/* spool: what a handler has on disk, in order: samples that it could not deliver yet.
 *
 * New samples are appended to files in a directory of this process. Samples are fetched at the front and
 * settled there; a file is deleted once all of it is settled. Directories of dead processes are adopted, and
 * read first.
 *
 * Does I/O, may block on disks, and has no lock: one thread at a time. */
#ifndef WR_SPOOL_H
#define WR_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "registry/labels.h"
#include "registry/registry.h"
#include "segment/queue.h"
#include "spool/spool_index.h"
#include "spool/spool_reader.h"
#include "spool/spool_writer.h"
#include "text/buffer.h"

struct wr_error;

struct wr_spool {
    const char *handler;
    struct wr_registry *registry;
    struct wr_spool_index index;

    struct wr_spool_writer writer;
    struct wr_spool_file *open; /* the file to append to; NULL: the next block begins a new one */
    uint64_t open_end;          /* position behind its last sample */
    struct wr_buffer out;

    bool reading; /* the first file is in `data` */
    struct wr_buffer data;
    struct wr_spool_reader reader;
    struct wr_segment_pool pool; /* keeps no free segments */
    uint64_t labels_made;
};

struct wr_spool_terms {
    const char *place;
    uint64_t limit;    /* bytes */
    bool drop_oldest;  /* at the limit; otherwise nothing more is accepted */
    bool first_in_use; /* the front was fetched, and must stay */
};

enum wr_spool_result {
    WR_SPOOL_OK,
    WR_SPOOL_FULL,   /* the limit is reached, or the disk is full */
    WR_SPOOL_FAILED, /* disk error, or out of memory */
};

struct wr_spool_count {
    uint64_t samples;
    uint64_t own;    /* of these, samples that were put by this process */
    uint64_t values; /* that the samples are; a damaged one counts as one */
};

/* handler: borrowed. Returns NULL if out of memory. */
struct wr_spool *wr_spool_new(const char *handler, struct wr_registry *registry);

/* The files stay on disk for other processes. May be NULL. */
void wr_spool_free(struct wr_spool *spool);

/* Appends a range of whole events; a range that is older than what was appended before goes into a file in
 * front of that. *dropped: what was dropped to make room, whatever the result. Sets the error unless it returns
 * OK. */
enum wr_spool_result wr_spool_put(struct wr_spool *spool, const struct wr_spool_terms *terms,
                                  const struct wr_range *range, const struct wr_label_set *labels,
                                  struct wr_spool_count *dropped, struct wr_error *error);

/* Adopts what dead processes left for the same handler. Only while there is nothing to fetch. Returns false and
 * sets the error if the place cannot be searched. */
bool wr_spool_adopt(struct wr_spool *spool, const char *place, struct wr_spool_found *found,
                    struct wr_error *error);

/* How much to fetch: at least one block, and no more blocks than fit. */
struct wr_spool_want {
    uint32_t samples;
    uint64_t bytes;
    struct wr_label_set *labels; /* returned in place of the file's labels if they are equal; may be NULL */
};

/* Result of a fetch. `lost` counts whatever the result. */
struct wr_spool_batch {
    struct wr_range range; /* segment NULL: nothing. With a reference that the caller drops. One origin, without
                              gaps in position and sequence */
    struct wr_label_set *labels; /* with a reference that the caller drops; NULL: none */
    bool own;
    struct wr_spool_count lost; /* damaged samples in front of the range; they count as settled */
    bool kept_bad;              /* a damaged file was set aside */
};

/* Reads samples from the front that are not settled yet, in order. No range and no losses: the spool is empty.
 */
enum wr_spool_result wr_spool_fetch(struct wr_spool *spool, const struct wr_spool_want *want,
                                    struct wr_spool_batch *batch, struct wr_error *error);

/* Settles this number of the samples that were fetched, which are this many values. Returns whether a damaged
 * file was set aside. */
bool wr_spool_settle(struct wr_spool *spool, uint32_t samples, uint64_t values);

/* Returns a lower bound of the positions of this process's own samples; 0 if there are none. */
uint64_t wr_spool_front(const struct wr_spool *spool);

/* Deletes the directory of this process if it is empty. */
void wr_spool_tidy(struct wr_spool *spool);

/* The same, and releases all locks, so that other processes can adopt the files. */
void wr_spool_leave(struct wr_spool *spool);

/* [fork] Closes the locks in a forked child. */
void wr_spool_abandon(const struct wr_spool *spool);

/* The size that a file grows to under a limit. */
uint64_t wr_spool_file_bytes(uint64_t limit);

#endif
