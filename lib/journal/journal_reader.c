#include "journal/journal_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_RING = 1 << 20 };

/* ---- Opening --------------------------------------------------------------------------------- */

static enum wr_journal_reading open_meta(struct wr_journal_reader *reader, bool writable)
{
    int problem = wr_mapped_file_open(&reader->meta, reader->folder, WR_JOURNAL_META_KIND, 0, writable);
    if (problem == ENOENT || problem == ENODATA)
        return WR_JOURNAL_NOTHING;
    errno = problem;
    if (problem)
        return WR_JOURNAL_UNREADABLE;
    reader->head = (struct wr_journal_head *)reader->meta.memory;
    errno = EBADMSG;
    /* magic and version are where they are in all versions */
    if (reader->meta.size < offsetof(struct wr_journal_head, pid))
        return WR_JOURNAL_UNREADABLE;
    if (!reader->head->magic)
        return WR_JOURNAL_NOTHING;
    reader->version = reader->head->version;
    if (reader->head->magic == WR_JOURNAL_META && reader->version != WR_JOURNAL_VERSION)
        return WR_JOURNAL_OTHER_VERSION;
    if (reader->head->magic != WR_JOURNAL_META || reader->meta.size < sizeof *reader->head)
        return WR_JOURNAL_UNREADABLE;
    reader->round = atomic_load(&reader->head->round);
    /* UINT64_MAX marks a number that is being stored (wr_versioned_put), and is never committed */
    return reader->round == UINT64_MAX ? WR_JOURNAL_UNREADABLE : WR_JOURNAL_READ;
}

static bool has_kind(const char *folder, const char *kind)
{
    return wr_mapped_file_count(folder, kind) > 0;
}

/* `meta` is made first and deleted last, so other files without it mean that it was lost. Without the lock it
 * may have been made between the two checks, so it is tried again. */
static enum wr_journal_reading open_meta_checked(struct wr_journal_reader *reader, bool writable)
{
    enum wr_journal_reading reading = open_meta(reader, writable);
    if (reading != WR_JOURNAL_NOTHING ||
        !(has_kind(reader->folder, WR_JOURNAL_SERIES_KIND) || has_kind(reader->folder, WR_JOURNAL_RING_KIND) ||
          has_kind(reader->folder, WR_JOURNAL_CELLS_KIND) || has_kind(reader->folder, WR_SEGMENT_FILE_KIND)))
        return reading;
    wr_mapped_file_close(&reader->meta);
    reading = open_meta(reader, writable);
    if (reading != WR_JOURNAL_NOTHING)
        return reading;
    errno = EBADMSG;
    return WR_JOURNAL_UNREADABLE;
}

/* Opens one file of a kind. Returns false if out of memory. */
typedef bool open_file(struct wr_journal_reader *reader, size_t count, uint32_t number, bool writable);

/* Returns false if out of memory. */
static bool open_kind(struct wr_journal_reader *reader, const char *kind, open_file *open, bool writable)
{
    size_t count = 0;
    uint64_t *numbers = wr_mapped_file_list(reader->folder, kind, &count);
    bool good = numbers;
    for (size_t i = 0; good && i < count; i++) {
        uint32_t number = (uint32_t)numbers[i];
        good = open(reader, count, number, writable);
        if (number > reader->files)
            reader->files = number;
    }
    free(numbers);
    return good;
}

static bool open_series(struct wr_journal_reader *reader, size_t count, uint32_t number, bool writable)
{
    (void)writable;
    if (!reader->series && !(reader->series = calloc(count, sizeof *reader->series)))
        return false;
    struct wr_journal_map *map = &reader->series[reader->series_count];
    int problem = wr_mapped_file_open(map, reader->folder, WR_JOURNAL_SERIES_KIND, number, false);
    if (problem) {
        reader->damaged += problem != ENODATA; /* its process died before it allocated the file */
        return true;
    }
    reader->series_count++;
    return wr_journal_views_add(&reader->views, map);
}

/* Whether the head of a ring is valid. */
static bool check_ring(const struct wr_journal_reader *reader, struct wr_journal_reader_ring *ring)
{
    struct wr_ring_block *block = (struct wr_ring_block *)ring->map.memory;
    ring->block = block;
    if (ring->map.size < sizeof *block || block->magic != WR_JOURNAL_RING ||
        block->version != WR_JOURNAL_VERSION || !block->size || block->size > LARGEST_RING ||
        (block->size & (block->size - 1)) || ring->map.size != WR_RING_BLOCK_BYTES(block->size))
        return false;
    ring->tail = atomic_load(&block->tail);
    ring->taken = wr_versioned_get(&block->taken, reader->round);
    return ring->tail - ring->taken <= block->size;
}

static bool is_unfinished(const struct wr_journal_map *map)
{
    return map->size >= sizeof(uint64_t) && *(const uint64_t *)(const void *)map->memory == 0;
}

static bool open_ring(struct wr_journal_reader *reader, size_t count, uint32_t number, bool writable)
{
    struct wr_journal_reader_ring ring = {.number = number};
    if (!reader->rings && !(reader->rings = calloc(count, sizeof *reader->rings)))
        return false;
    int problem = wr_mapped_file_open(&ring.map, reader->folder, WR_JOURNAL_RING_KIND, number, writable);
    bool good = !problem && check_ring(reader, &ring);
    if (good && writable)
        wr_versioned_settle(&ring.block->taken, reader->round);
    if (good && ring.tail != ring.taken) {
        reader->rings[reader->ring_count++] = ring;
        return true;
    }
    reader->damaged += !good && problem != ENODATA && (problem || !is_unfinished(&ring.map));
    wr_mapped_file_close(&ring.map);
    return true;
}

static bool open_cells(struct wr_journal_reader *reader, size_t count, uint32_t number, bool writable)
{
    struct wr_journal_reader_cells cells = {0};
    if (!reader->cells && !(reader->cells = calloc(count, sizeof *reader->cells)))
        return false;
    int problem = wr_mapped_file_open(&cells.map, reader->folder, WR_JOURNAL_CELLS_KIND, number, writable);
    cells.block = (struct wr_cells_block *)cells.map.memory;
    bool good = !problem && wr_journal_cells_check(cells.block, cells.map.size), is_damaged = false;
    if (good && writable)
        wr_journal_cells_settle(cells.block, reader->round);
    bool has_values = good && wr_journal_cells_have_values(cells.block, reader->round, &is_damaged);
    if (has_values)
        reader->cells[reader->cells_count++] = cells;
    reader->damaged += is_damaged;
    if (has_values)
        return true;
    reader->damaged += !good && problem != ENODATA && (problem || !is_unfinished(&cells.map));
    wr_mapped_file_close(&cells.map);
    return true;
}

/* Unused segments are deleted if the journal is ours. */
static bool open_segment(struct wr_journal_reader *reader, size_t count, uint32_t number, bool writable)
{
    struct wr_segment_file *file = NULL;
    if (!reader->segments && !(reader->segments = calloc(count, sizeof(struct wr_segment_file *))))
        return false;
    int problem = wr_segment_file_open(&file, reader->folder, number, writable);
    if (problem) {
        reader->damaged += problem == EBADMSG;
        if (problem == ENODATA && writable)
            wr_mapped_file_remove(reader->folder, WR_SEGMENT_FILE_KIND, number);
        if (problem == EBADMSG && writable)
            wr_mapped_file_set_aside(reader->folder, WR_SEGMENT_FILE_KIND, number);
        return problem != ENOMEM;
    }
    if (writable)
        wr_versioned_settle(&file->head->committed, reader->round);
    if (atomic_load(&file->head->sequence) && wr_versioned_get(&file->head->committed, reader->round)) {
        reader->segments[reader->segment_count++] = file;
    } else if (writable) {
        wr_segment_file_free(file);
    } else {
        wr_segment_file_close(file);
    }
    return true;
}

static int compare_segments(const void *a, const void *b)
{
    const struct wr_segment_file *const *first = a, *const *second = b;
    uint64_t earlier = atomic_load(&(*first)->head->sequence), later = atomic_load(&(*second)->head->sequence);
    return earlier < later ? -1 : earlier > later;
}

enum wr_journal_reading wr_journal_reader_open(struct wr_journal_reader *reader, const char *folder,
                                               bool writable)
{
    *reader = (struct wr_journal_reader){.folder = folder};
    enum wr_journal_reading reading = open_meta_checked(reader, writable);
    if (reading == WR_JOURNAL_READ && !(open_kind(reader, WR_JOURNAL_SERIES_KIND, open_series, writable) &&
                                        open_kind(reader, WR_JOURNAL_RING_KIND, open_ring, writable) &&
                                        open_kind(reader, WR_JOURNAL_CELLS_KIND, open_cells, writable) &&
                                        open_kind(reader, WR_SEGMENT_FILE_KIND, open_segment, writable))) {
        reading = WR_JOURNAL_UNREADABLE;
        errno = ENOMEM;
    }
    reader->damaged += reader->views.damaged;
    if (reading != WR_JOURNAL_READ) {
        int problem = errno;
        uint32_t version = reader->version;
        wr_journal_reader_close(reader);
        reader->version = version;
        errno = problem;
    } else if (reader->segment_count) {
        qsort(reader->segments, reader->segment_count, sizeof(struct wr_segment_file *), compare_segments);
    }
    return reading;
}

void wr_journal_reader_close(struct wr_journal_reader *reader)
{
    for (size_t i = 0; i < reader->segment_count; i++)
        wr_segment_file_close(reader->segments[i]);
    for (size_t i = 0; i < reader->ring_count; i++)
        wr_mapped_file_close(&reader->rings[i].map);
    for (size_t i = 0; i < reader->cells_count; i++)
        wr_mapped_file_close(&reader->cells[i].map);
    for (size_t i = 0; i < reader->series_count; i++)
        wr_mapped_file_close(&reader->series[i]);
    wr_journal_views_fini(&reader->views);
    wr_mapped_file_close(&reader->meta);
    free(reader->segments);
    free(reader->rings);
    free(reader->cells);
    free(reader->series);
    *reader = (struct wr_journal_reader){0};
}

/* ---- Rings ----------------------------------------------------------------------------------- */

bool wr_journal_reader_event(const struct wr_journal_reader_ring *ring, uint64_t at,
                             struct wr_journal_event *event)
{
    const weir_sample *slots = ring->block->slots, *sample;
    uint32_t mask = ring->block->size - 1;
    *event = (struct wr_journal_event){.at = at, .end = at, .series = slots[at & mask].series};
    do {
        if (event->end >= ring->tail)
            return false;
        sample = &slots[event->end & mask];
        if (sample->flags & WR_RING_TEXT) {
            if (sample->note > ring->block->size * sizeof *sample)
                return false;
            event->end += wr_ring_text_slots(sample->note);
            event->text_bytes += sample->note + 1;
        }
        event->end++;
        event->samples++;
    } while (sample->flags & WEIR_SAMPLE_MORE);
    return event->end <= ring->tail;
}

uint64_t wr_journal_reader_count_ring(const struct wr_journal_reader_ring *ring)
{
    struct wr_journal_event event;
    uint64_t samples = 0;
    for (uint64_t at = ring->taken; at < ring->tail && wr_journal_reader_event(ring, at, &event);
         at = event.end)
        samples += event.samples;
    return samples;
}

/* ---- Segments -------------------------------------------------------------------------------- */

uint32_t wr_journal_reader_count(const struct wr_journal_reader *reader, const struct wr_segment_file *file)
{
    uint64_t committed = wr_versioned_get(&file->head->committed, reader->round);
    uint32_t count = committed > file->head->room ? file->head->room : (uint32_t)committed;
    while (count && file->samples[count - 1].flags & WEIR_SAMPLE_MORE)
        count--;
    return count;
}

static uint32_t event_end(const struct wr_segment_file *file, uint32_t first)
{
    while (file->samples[first].flags & WEIR_SAMPLE_MORE)
        first++;
    return first + 1;
}

uint32_t wr_journal_reader_unsettled(const struct wr_segment_file *file, uint32_t slot, uint32_t *first,
                                     uint32_t count)
{
    uint32_t at = *first, end;
    for (; at < count; at = end) {
        end = event_end(file, at);
        if (!wr_segment_file_is_settled(file, slot, at, end - at))
            break;
    }
    *first = at;
    for (; at < count; at = end) {
        end = event_end(file, at);
        if (wr_segment_file_is_settled(file, slot, at, end - at))
            break;
    }
    return at - *first;
}
