/* journal_reader: what a process has left in its journal, or, as far as that can be told, still has.
 *
 * Nothing in the files is trusted: whatever is out of bounds is left out, and said to be damaged. */
#ifndef WR_JOURNAL_READER_H
#define WR_JOURNAL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/journal.h"
#include "segment/segment_file.h"

struct wr_journal_reader_ring {
    uint32_t number;
    struct wr_journal_map map;
    struct wr_ring_block *block;
    uint64_t taken, tail;
};

struct wr_journal_reader {
    const char *folder; /* borrowed */
    struct wr_journal_map meta;
    struct wr_journal_head *head;
    uint32_t version; /* of the format */
    uint64_t round;
    struct wr_journal_map *series;
    size_t series_count;
    struct wr_journal_views views;
    struct wr_journal_reader_ring *rings; /* that hold something */
    size_t ring_count;
    struct wr_segment_file *
        *segments; /* in use, with something committed, in the order in which they were begun */
    size_t segment_count;
    uint32_t files;   /* the highest number of a ring or segment */
    uint32_t damaged; /* files of which something, or all, makes no sense */
};

enum wr_journal_reading {
    WR_JOURNAL_READ,
    WR_JOURNAL_NOTHING,       /* there is no journal, or its process had only begun to make one */
    WR_JOURNAL_OTHER_VERSION, /* reader->version is not WR_JOURNAL_VERSION; nothing was changed */
    WR_JOURNAL_UNREADABLE,    /* errno is set; EBADMSG: the head is missing or damaged */
};

/* Opens all files in a folder. writable: it is ours, and what was never committed is forgotten. */
enum wr_journal_reading wr_journal_reader_open(struct wr_journal_reader *reader, const char *folder,
                                               bool writable);

/* Closes what was not taken out of it. */
void wr_journal_reader_close(struct wr_journal_reader *reader);

/* An event in a ring. */
struct wr_journal_event {
    uint64_t at, end;
    uint32_t samples;
    uint32_t text_bytes; /* with their NULs */
    uint32_t series;     /* of its first sample */
};

/* The event at a position before ring->tail. false: what is there makes no sense. */
bool wr_journal_reader_event(const struct wr_journal_reader_ring *ring, uint64_t at,
                             struct wr_journal_event *event);

/* How many samples there are in a ring, as far as they make sense. */
uint64_t wr_journal_reader_count_ring(const struct wr_journal_reader_ring *ring);

/* The number of committed samples of a segment, in whole events. */
uint32_t wr_journal_reader_count(const struct wr_journal_reader *reader, const struct wr_segment_file *file);

/* The first event from *first on that a lane has not settled, and all that follow it without a gap. Answers how
 * many samples they are; 0: there are none. */
uint32_t wr_journal_reader_unsettled(const struct wr_segment_file *file, uint32_t slot, uint32_t *first,
                                     uint32_t count);

#endif
