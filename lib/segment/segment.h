/* segment: samples on their way to handlers, kept once for all that want them.
 *
 * The dispatcher appends; lanes hold ranges of what has been appended, each counting as one reference. What is
 * appended never changes, and a lane learns of it under its own lock, so readers need nothing else. Metadata
 * texts lie beside the samples, found by number. With a journal both are in a file, and lanes mark there what
 * they are done with. */
#ifndef WR_SEGMENT_H
#define WR_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "os/lock.h"
#include "segment/segment_file.h"

/* An array of texts that is full is not moved, since readers may be in it: a larger one takes over and this one
 * is kept. */
struct wr_segment_notes {
    struct wr_segment_notes *older;
    uint32_t count, room;
    const char *texts[];
};

struct wr_segment {
    struct wr_segment_pool *pool;
    struct wr_segment *next_free;
    _Atomic uint32_t references;
    uint32_t count, room;
    _Atomic(struct wr_segment_notes *) notes; /* NULL: no metadata so far */
    weir_sample *samples;                     /* the file's, or in memory behind the segment */
    struct wr_segment_file *file;             /* NULL: it dies with the process */
};

/* Segments that may be used again: fresh memory costs a page fault for each 128 samples. */
struct wr_segment_pool {
    struct wr_lock lock;
    struct wr_segment *free;
    uint32_t free_count, free_most;
    struct wr_journal *journal; /* whose files the segments are in; NULL: there is none */
};

/* All zeros: a pool that keeps nothing. Sets how many free segments it keeps, and frees those it has. */
void wr_segment_pool_set(struct wr_segment_pool *pool, uint32_t free_most);

/* Frees what is free; files of a journal are deleted. */
void wr_segment_pool_trim(struct wr_segment_pool *pool);

static inline bool wr_segment_pool_has_free(struct wr_segment_pool *pool)
{
    wr_lock_enter(&pool->lock);
    bool has = pool->free;
    wr_lock_leave(&pool->lock);
    return has;
}

/* An empty segment with room for at least so many samples, with one reference; NULL without memory. */
struct wr_segment *wr_segment_new(struct wr_segment_pool *pool, uint32_t room);

/* The same for a feed of a journal: one that the feed has used before, or NULL. */
struct wr_segment *wr_segment_reuse(struct wr_segment_pool *pool, uint32_t feed);

/* Makes a segment of a file in use. own: its samples are the file's; otherwise they are in memory, beside what
 * the file has. Takes the file; NULL without memory, and then the file is closed. */
struct wr_segment *wr_segment_of_file(struct wr_segment_pool *pool, struct wr_segment_file *file, bool own);

void wr_segment_hold(struct wr_segment *segment);

/* Gives up a reference; the last one frees the segment. May be NULL. */
void wr_segment_drop(struct wr_segment *segment);

/* A lane is done with samples, for good: should the process die, they are not delivered again. */
static inline void wr_segment_settle(const struct wr_segment *segment, uint32_t slot, uint32_t first,
                                     uint32_t count)
{
    if (segment->file)
        wr_segment_file_settle(segment->file, slot, first, count);
}

/* A lane leaves samples to whoever finds them after this process. false: they would die with it. */
static inline bool wr_segment_leave(const struct wr_segment *segment)
{
    if (segment->file)
        atomic_store(&segment->file->kept, true);
    return segment->file;
}

/* Whether there is room for samples, and for so many bytes of texts with their NULs. */
static inline bool wr_segment_has_room(const struct wr_segment *segment, uint32_t samples, size_t text_bytes)
{
    return segment->room - segment->count >= samples &&
           (!segment->file || wr_segment_file_has_room(segment->file, text_bytes));
}

/* [dispatcher] Keeps a copy of a metadata text; its number, or 0 without memory. */
uint32_t wr_segment_add_note(struct wr_segment *segment, const char *text, size_t length);

/* The same for a text that stays where it is, in the segment's file. */
uint32_t wr_segment_point_to_note(struct wr_segment *segment, const char *text);

/* The texts by number, good for all samples that a lane knows of; NULL: there are none. */
const char *const *wr_segment_texts(const struct wr_segment *segment);

/* What a range of samples weighs in a queue: 32 bytes each, and their metadata. */
uint64_t wr_segment_bytes(const struct wr_segment *segment, uint32_t first, uint32_t count);

/* The end of the event that sample number `first` begins. */
uint32_t wr_segment_event_end(const struct wr_segment *segment, uint32_t first);

/* The last border between events that is at most so many samples behind `first`, and at least one event. end:
 * where the range ends. */
uint32_t wr_segment_cut(const struct wr_segment *segment, uint32_t first, uint32_t end, uint32_t most);

#endif
