/* next_process: reads a journal as the next process would, and finds the values that each handler would
 * receive. All values of these tests are for handlers "A" and "B", and are numbered from 0. */
#ifndef NEXT_PROCESS_H
#define NEXT_PROCESS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "journal/journal_reader.h"

/* The consecutive numbers first <= n < end. */
struct next_process_range {
    uint64_t first, end;
    bool torn; /* the numbers are not consecutive, or an event was split */
};

static inline void next_process_add(struct next_process_range *range, const weir_sample *sample)
{
    uint64_t number = (uint64_t)sample->value.f64;
    if (range->first == UINT64_MAX)
        range->first = range->end = number;
    range->torn |= number != range->end;
    range->end++;
}

static inline void next_process_read_segment(const struct wr_journal_reader *reader,
                                             const struct wr_segment_file *file, const char *lane,
                                             struct next_process_range *range)
{
    for (uint32_t slot = 0; slot < file->head->lanes; slot++) {
        uint32_t first = 0, length, count = wr_journal_reader_count(reader, file);
        if (strcmp(wr_segment_file_lane(file, slot), lane) != 0)
            continue;
        while ((length = wr_journal_reader_unsettled(file, slot, &first, count))) {
            for (uint32_t i = 0; i < length; i++)
                next_process_add(range, &file->samples[first + i]);
            first += length;
        }
    }
}

static inline void next_process_read_ring(const struct wr_journal_reader_ring *ring,
                                          struct next_process_range *range)
{
    struct wr_journal_event event;
    uint64_t at = ring->taken;
    for (; at < ring->tail && wr_journal_reader_event(ring, at, &event); at = event.end) {
        uint64_t place = at;
        for (uint32_t i = 0; i < event.samples; i++) {
            const weir_sample *sample = &ring->block->slots[place & (ring->block->size - 1)];
            next_process_add(range, sample);
            place += 1 + (sample->flags & WR_RING_TEXT ? wr_ring_text_slots(sample->note) : 0);
        }
    }
    range->torn |= at != ring->tail;
}

/* The values that `lane` would receive; first == UINT64_MAX: none. Returns false if the journal cannot be read.
 */
static inline bool next_process_read(const char *dir, const char *lane, struct next_process_range *range)
{
    struct wr_journal_reader reader;
    *range = (struct next_process_range){UINT64_MAX, UINT64_MAX, false};
    if (wr_journal_reader_open(&reader, dir, false) != WR_JOURNAL_READ)
        return false;
    range->torn |= reader.damaged != 0;
    for (size_t i = 0; i < reader.segment_count; i++)
        next_process_read_segment(&reader, reader.segments[i], lane, range);
    for (size_t i = 0; i < reader.ring_count; i++)
        next_process_read_ring(&reader.rings[i], range);
    wr_journal_reader_close(&reader);
    return true;
}

#endif
