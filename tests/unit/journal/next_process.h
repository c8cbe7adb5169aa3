/* next_process: reads a journal as the next process would, and finds the values that each handler would
 * receive. All values of these tests are for handlers "A" and "B", and are numbered from 0, but for those of
 * cells. */
#ifndef NEXT_PROCESS_H
#define NEXT_PROCESS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "journal/journal_reader.h"
#include "summary/summary.h"
#include "text/error.h"

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

/* What a lane would receive of cells and of summaries: how many values, and their sum. */
struct next_process_sums {
    uint64_t values;
    double sum;
};

static inline void next_process_add_summary(struct next_process_sums *sums, const struct wr_segment_file *file,
                                            const weir_sample *sample)
{
    static struct wr_summary_room room;
    struct wr_summary summary;
    struct wr_error error = {0};
    const char *text = file->texts;
    for (uint32_t note = 1; note < sample->note; note++)
        text += strlen(text) + 1;
    if (!wr_summary_read(&summary, &room, text, &error))
        return;
    sums->values += summary.count;
    sums->sum += summary.sum;
    wr_sketch_fini(&summary.sketch);
}

static inline void next_process_sum_segment(const struct wr_journal_reader *reader,
                                            const struct wr_segment_file *file, const char *lane,
                                            struct next_process_sums *sums)
{
    for (uint32_t slot = 0; slot < file->head->lanes; slot++) {
        uint32_t first = 0, length, count = wr_journal_reader_count(reader, file);
        if (strcmp(wr_segment_file_lane(file, slot), lane) != 0)
            continue;
        for (; (length = wr_journal_reader_unsettled(file, slot, &first, count)); first += length)
            for (uint32_t i = first; i < first + length; i++)
                next_process_add_summary(sums, file, &file->samples[i]);
    }
}

static inline void next_process_sum_cells(const struct wr_journal_reader *reader,
                                          struct next_process_sums *sums)
{
    for (size_t i = 0; i < reader->cells_count; i++) {
        struct wr_journal_cells_walk walk = {.block = reader->cells[i].block, .round = reader->round};
        struct wr_journal_cells cells;
        while (wr_journal_cells_next(&walk, &cells)) {
            sums->values += cells.taken.values;
            sums->sum += cells.taken.sum;
        }
    }
}

/* Of cells all lanes get the same. Returns false if the journal cannot be read, or is damaged. */
static inline bool next_process_sum(const char *dir, const char *lane, struct next_process_sums *sums)
{
    struct wr_journal_reader reader;
    *sums = (struct next_process_sums){0};
    if (wr_journal_reader_open(&reader, dir, false) != WR_JOURNAL_READ)
        return false;
    for (size_t i = 0; i < reader.segment_count; i++)
        next_process_sum_segment(&reader, reader.segments[i], lane, sums);
    next_process_sum_cells(&reader, sums);
    bool is_whole = !reader.damaged;
    wr_journal_reader_close(&reader);
    return is_whole;
}

#endif
