/* survivor: reads a journal as whoever comes after its process would, and tells which values each handler would
 * be given. All values of these tests go to handlers "A" and "B", and are numbered from 0. */
#ifndef SURVIVOR_H
#define SURVIVOR_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "journal/journal_reader.h"

/* The numbers first, first + 1, ... before end. */
struct survivor_row {
    uint64_t first, end;
    bool torn; /* the numbers are no such row, or an event was split */
};

static inline void survivor_see(struct survivor_row *row, const weir_sample *sample)
{
    uint64_t number = (uint64_t)sample->value.f64;
    if (row->first == UINT64_MAX)
        row->first = row->end = number;
    row->torn |= number != row->end;
    row->end++;
}

static inline void survivor_read_segment(const struct wr_journal_reader *reader,
                                         const struct wr_segment_file *file, const char *lane,
                                         struct survivor_row *row)
{
    for (uint32_t slot = 0; slot < file->head->lanes; slot++) {
        uint32_t first = 0, length, count = wr_journal_reader_count(reader, file);
        if (strcmp(wr_segment_file_lane(file, slot), lane) != 0)
            continue;
        while ((length = wr_journal_reader_unsettled(file, slot, &first, count))) {
            for (uint32_t i = 0; i < length; i++)
                survivor_see(row, &file->samples[first + i]);
            first += length;
        }
    }
}

static inline void survivor_read_ring(const struct wr_journal_reader_ring *ring, struct survivor_row *row)
{
    struct wr_journal_event event;
    uint64_t at = ring->taken;
    for (; at < ring->tail && wr_journal_reader_event(ring, at, &event); at = event.end) {
        uint64_t place = at;
        for (uint32_t i = 0; i < event.samples; i++) {
            const weir_sample *sample = &ring->block->slots[place & (ring->block->size - 1)];
            survivor_see(row, sample);
            place += 1 + (sample->flags & WR_RING_TEXT ? wr_ring_text_slots(sample->note) : 0);
        }
    }
    row->torn |= at != ring->tail;
}

/* What lane would be given; first UINT64_MAX: nothing. false: the journal cannot be read. */
static inline bool survivor_read(const char *dir, const char *lane, struct survivor_row *row)
{
    struct wr_journal_reader reader;
    *row = (struct survivor_row){UINT64_MAX, UINT64_MAX, false};
    if (wr_journal_reader_open(&reader, dir, false) != WR_JOURNAL_READ)
        return false;
    row->torn |= reader.damaged != 0;
    for (size_t i = 0; i < reader.segment_count; i++)
        survivor_read_segment(&reader, reader.segments[i], lane, row);
    for (size_t i = 0; i < reader.ring_count; i++)
        survivor_read_ring(&reader.rings[i], row);
    wr_journal_reader_close(&reader);
    return true;
}

#endif
