/* segment: samples on their way to handlers, stored once for all lanes.
 *
 * The dispatcher appends; each range that a lane holds is one reference. Appended samples never change, and a
 * lane receives ranges under its own lock, so reading them needs no synchronisation. Metadata texts are stored
 * beside the samples, by number. With a journal both are in a file, in which lanes mark what is settled. */
#ifndef WR_SEGMENT_H
#define WR_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "os/lock.h"
#include "segment/inputs.h"
#include "segment/segment_file.h"

/* A full array of texts is not moved, since readers may use it: it is copied to a larger one, and freed with
 * the segment. */
struct wr_segment_notes {
    struct wr_segment_notes *older;
    uint32_t count, room;
    const char *texts[];
};

/* Memory of texts. None is moved; a further one has those that do not fit. */
struct wr_segment_texts {
    struct wr_segment_texts *older;
    size_t used, room;
    char bytes[];
};

/* An internal flag of a sample, of a summary that a spool has kept: the limits of this process leave no room
 * for its series, so no handler gets it. */
enum { WR_SAMPLE_NO_ROOM = 1u << 14 };

struct wr_segment {
    struct wr_segment_pool *pool;
    struct wr_segment *next_free;
    _Atomic uint32_t references;
    uint32_t count, room;
    bool summaries;   /* some samples are summaries, each of any number of values */
    bool other_kinds; /* some samples are neither doubles nor integers; set by the appending thread */
    _Atomic(struct wr_segment_notes *) notes; /* NULL: no metadata */
    struct wr_segment_texts *texts;           /* without a file: what notes point to */
    weir_sample *samples;                     /* in the file, or in memory behind the segment */
    struct wr_segment_file *file;             /* NULL: in memory only */
    struct wr_inputs *inputs; /* [lane lock] of all the summaries, which are then all samples; NULL: none */
    bool is_kept;     /* [lane lock] of summaries: all values that they are of are in a journal's files */
    uint32_t settled; /* with inputs: how many samples are */
};

/* Free segments, for reuse: fresh memory costs a page fault for each 128 samples. */
struct wr_segment_pool {
    struct wr_lock lock;
    struct wr_segment *free;
    uint32_t free_count, free_most;
    struct wr_journal *journal; /* that segments are made in; NULL: none */
};

/* Sets how many free segments the pool keeps, and frees those it has. All zeros: keeps none. */
void wr_segment_pool_set(struct wr_segment_pool *pool, uint32_t free_most);

/* Frees all free segments, and deletes their files. */
void wr_segment_pool_trim(struct wr_segment_pool *pool);

static inline bool wr_segment_pool_has_free(struct wr_segment_pool *pool)
{
    wr_lock_enter(&pool->lock);
    bool has = pool->free;
    wr_lock_leave(&pool->lock);
    return has;
}

/* Returns an empty segment with room for at least this many samples and one reference; NULL if out of memory.
 */
struct wr_segment *wr_segment_new(struct wr_segment_pool *pool, uint32_t room);

/* Returns a free segment that a feed of the journal has used before, with one reference; NULL if there is none.
 */
struct wr_segment *wr_segment_reuse(struct wr_segment_pool *pool, uint32_t feed);

/* Makes a segment of a file in use, and takes ownership of the file. own: the segment's samples are those in
 * the file; otherwise they are in memory, and only marks go to the file. Returns NULL if out of memory; the
 * file is closed then. */
struct wr_segment *wr_segment_adopt_file(struct wr_segment_pool *pool, struct wr_segment_file *file, bool own);

void wr_segment_hold(struct wr_segment *segment);

/* Releases a reference; the last one frees the segment. May be NULL. */
void wr_segment_drop(struct wr_segment *segment);

/* Of a segment with inputs: counts summaries as settled; when all are, the inputs are too. */
void wr_segment_settle_summaries(struct wr_segment *segment, uint32_t count);

/* Marks samples as delivered or dropped by a lane: no later process delivers them. */
static inline void wr_segment_settle(struct wr_segment *segment, uint32_t slot, uint32_t first, uint32_t count)
{
    if (segment->file)
        wr_segment_file_settle(segment->file, slot, first, count);
    else if (segment->inputs)
        wr_segment_settle_summaries(segment, count);
}

/* Leaves samples in the journal for a later process. values: of the samples. Returns how many of these it has.
 */
uint64_t wr_segment_leave(struct wr_segment *segment, uint64_t values);

/* Whether this many samples, and bytes of texts with their NULs, fit. */
static inline bool wr_segment_has_room(const struct wr_segment *segment, uint32_t samples, size_t text_bytes)
{
    return segment->room - segment->count >= samples &&
           (!segment->file || wr_segment_file_has_room(segment->file, text_bytes));
}

/* [dispatcher] Copies a metadata text. Returns its number, or 0 if out of memory. */
uint32_t wr_segment_add_note(struct wr_segment *segment, const char *text, size_t length);

/* The same for a text that is in the segment's file already. */
uint32_t wr_segment_point_to_note(struct wr_segment *segment, const char *text);

/* Returns the texts by number, for all samples that the lane has received; NULL if there are none. */
const char *const *wr_segment_texts(const struct wr_segment *segment);

/* Returns the size of samples in a queue: 32 bytes each, and their metadata. */
uint64_t wr_segment_bytes(const struct wr_segment *segment, uint32_t first, uint32_t count);

/* Of how many values the sample is in the ledger. */
static inline uint64_t wr_sample_values(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_SUMMARY ? (uint64_t)sample->value.i64 : 1;
}

/* Returns how many values these samples are. */
uint64_t wr_segment_values(const struct wr_segment *segment, uint32_t first, uint32_t count);

/* Returns the end of the event that begins at sample `first`. */
uint32_t wr_segment_event_end(const struct wr_segment *segment, uint32_t first);

/* Returns the last end of an event that is at most `most` samples behind `first`, but at least the end of the
 * first event. end: of the range. */
uint32_t wr_segment_cut(const struct wr_segment *segment, uint32_t first, uint32_t end, uint32_t most);

#endif
