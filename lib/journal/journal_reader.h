/* journal_reader: reads the files of one journal, whose process is dead or, without a guarantee, still running.
 *
 * Trusts nothing in the files: what is out of bounds is left out and counted as damaged. */
#ifndef WR_JOURNAL_READER_H
#define WR_JOURNAL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/journal.h"
#include "journal/journal_cells.h"
#include "segment/segment_file.h"

struct wr_journal_reader_ring {
    uint32_t number;
    struct wr_journal_map map;
    struct wr_ring_block *block;
    uint64_t taken, tail;
};

struct wr_journal_reader_cells {
    struct wr_journal_map map;
    struct wr_cells_block *block;
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
    struct wr_journal_reader_ring *rings; /* that are not empty */
    size_t ring_count;
    struct wr_journal_reader_cells *cells; /* that are not empty */
    size_t cells_count;
    /* in use, with something committed, in the order in which they were begun */
    struct wr_segment_file **segments;
    size_t segment_count;
    uint32_t files;   /* the highest number of a ring, cells or segment */
    uint32_t damaged; /* number of files that are damaged, in part or as a whole */
};

enum wr_journal_reading {
    WR_JOURNAL_READ,
    WR_JOURNAL_NOTHING,       /* no journal, or its process died while it made one */
    WR_JOURNAL_OTHER_VERSION, /* reader->version is not WR_JOURNAL_VERSION; nothing was changed */
    WR_JOURNAL_UNREADABLE,    /* errno is set; EBADMSG: the head is missing or damaged */
};

/* Opens all files in a folder. writable: the caller holds the lock; uncommitted values are discarded, damaged
 * segments set aside and unused ones deleted. */
enum wr_journal_reading wr_journal_reader_open(struct wr_journal_reader *reader, const char *folder,
                                               bool writable);

/* Closes the files that the caller has not taken. */
void wr_journal_reader_close(struct wr_journal_reader *reader);

/* An event in a ring. */
struct wr_journal_event {
    uint64_t at, end;
    uint32_t samples;
    uint32_t text_bytes; /* with their NULs */
    uint32_t series;     /* of its first sample */
};

/* Reads the event at a position before ring->tail. Returns false if it is damaged. */
bool wr_journal_reader_event(const struct wr_journal_reader_ring *ring, uint64_t at,
                             struct wr_journal_event *event);

/* Returns the number of samples in a ring, up to the first damaged event. */
uint64_t wr_journal_reader_count_ring(const struct wr_journal_reader_ring *ring);

/* Returns the number of committed samples of a segment, in whole events. */
uint32_t wr_journal_reader_count(const struct wr_journal_reader *reader, const struct wr_segment_file *file);

/* Finds the first events from *first on that a lane has not settled: sets *first, and returns the number of
 * samples up to the next settled event; 0 if there are none. */
uint32_t wr_journal_reader_unsettled(const struct wr_segment_file *file, uint32_t slot, uint32_t *first,
                                     uint32_t count);

#endif
