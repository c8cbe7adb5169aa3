#include "segment/segment_file.h"

#include <errno.h>
#include <string.h>

#include "os/pages.h"

enum { LANES_MOST = 1 << 16, ROOM_MOST = 1 << 24, BYTES_MOST = 1 << 28 };

/* ---- The layout ------------------------------------------------------------------------------ */

/* Offsets of the parts. */
struct layout {
    size_t ids, names, marks, stride, samples, texts, end;
};

static size_t round_up(size_t size)
{
    return (size + WR_LINE - 1) / WR_LINE * WR_LINE;
}

/* The head must be within limits, so that nothing overflows. */
static struct layout lay_out(const struct wr_segment_head *head)
{
    struct layout layout = {.stride = round_up((head->room + 7) / 8)};
    layout.ids = sizeof *head;
    layout.names = layout.ids + head->lanes * sizeof(struct wr_sample_id);
    layout.marks = round_up(layout.names + head->name_bytes);
    layout.samples = layout.marks + head->lanes * layout.stride;
    layout.texts = layout.samples + head->room * sizeof(weir_sample);
    layout.end = layout.texts + head->text_room;
    return layout;
}

static bool is_within_limits(const struct wr_segment_head *head)
{
    return head->room && head->room <= ROOM_MOST && head->text_room <= BYTES_MOST && head->lanes &&
           head->lanes <= LANES_MOST && head->name_bytes <= BYTES_MOST;
}

static void find_parts(struct wr_segment_file *file, char *memory)
{
    struct layout layout = lay_out(file->head);
    file->ids = (struct wr_sample_id *)(memory + layout.ids);
    file->names = memory + layout.names;
    file->marks = (unsigned char *)memory + layout.marks;
    file->stride = layout.stride;
    file->samples = (weir_sample *)(memory + layout.samples);
    file->texts = memory + layout.texts;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static uint32_t measure_names(const struct wr_segment_shape *shape)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < shape->lanes; i++)
        bytes += strlen(shape->names[i]) + 1;
    return (uint32_t)bytes;
}

static void put_head(struct wr_segment_file *file, const struct wr_segment_head *head,
                     const struct wr_segment_shape *shape)
{
    file->head = (struct wr_segment_head *)file->map.memory;
    file->head->version = WR_JOURNAL_VERSION;
    file->head->room = head->room;
    file->head->text_room = head->text_room;
    file->head->lanes = head->lanes;
    file->head->name_bytes = head->name_bytes;
    find_parts(file, file->map.memory);
    char *name = file->map.memory + lay_out(head).names;
    for (uint32_t i = 0; i < shape->lanes; i++)
        name = stpcpy(name, shape->names[i]) + 1;
    atomic_signal_fence(memory_order_seq_cst);
    file->head->magic = WR_JOURNAL_SEGMENT;
}

int wr_segment_file_make(struct wr_segment_file **made, const char *folder, uint32_t number,
                         const struct wr_segment_shape *shape)
{
    struct wr_segment_head head = {.room = shape->room,
                                   .text_room = shape->text_room,
                                   .lanes = shape->lanes,
                                   .name_bytes = measure_names(shape)};
    struct wr_segment_file *file = is_within_limits(&head) ? wr_pages_get(sizeof *file) : NULL;
    if (!file)
        return ENOMEM;
    int problem = wr_mapped_file_make(&file->map, folder, WR_SEGMENT_FILE_KIND, number, lay_out(&head).end);
    if (problem) {
        wr_pages_put(file);
        return problem;
    }
    file->folder = folder;
    file->number = number;
    put_head(file, &head, shape);
    *made = file;
    return 0;
}

void wr_segment_file_begin(struct wr_segment_file *file, uint64_t sequence, uint32_t feed)
{
    struct wr_segment_head *head = file->head;
    memset(file->marks, 0, head->lanes * file->stride);
    wr_versioned_set(&head->committed, 0);
    head->feed = feed;
    file->text_used = 0;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&head->sequence, sequence, memory_order_relaxed);
}

void wr_segment_file_end(struct wr_segment_file *file)
{
    atomic_store_explicit(&file->head->sequence, 0, memory_order_relaxed);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static bool has_names(const struct wr_segment_head *head, const char *names)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < head->name_bytes; i++)
        found += names[i] == '\0';
    return found == head->lanes && names[head->name_bytes - 1] == '\0';
}

/* Returns 0; ENODATA if the head was never completed; EBADMSG if it is damaged. */
static int check(const struct wr_journal_map *map)
{
    const struct wr_segment_head *head = (const struct wr_segment_head *)map->memory;
    if (map->size < sizeof *head)
        return EBADMSG;
    if (!head->magic)
        return ENODATA;
    bool valid = head->magic == WR_JOURNAL_SEGMENT && head->version == WR_JOURNAL_VERSION &&
                 is_within_limits(head) && lay_out(head).end == map->size &&
                 has_names(head, map->memory + lay_out(head).names);
    return valid ? 0 : EBADMSG;
}

int wr_segment_file_open(struct wr_segment_file **opened, const char *folder, uint32_t number, bool writable)
{
    struct wr_segment_file *file = wr_pages_get(sizeof *file);
    if (!file)
        return ENOMEM;
    int problem = wr_mapped_file_open(&file->map, folder, WR_SEGMENT_FILE_KIND, number, writable);
    if (!problem)
        problem = check(&file->map);
    if (problem) {
        wr_mapped_file_close(&file->map);
        wr_pages_put(file);
        return problem;
    }
    file->head = (struct wr_segment_head *)file->map.memory;
    file->folder = folder;
    file->number = number;
    find_parts(file, file->map.memory);
    *opened = file;
    return 0;
}

void wr_segment_file_close(struct wr_segment_file *file)
{
    if (!file)
        return;
    wr_mapped_file_close(&file->map);
    wr_pages_put(file);
}

void wr_segment_file_free(struct wr_segment_file *file)
{
    if (file && !atomic_load(&file->kept))
        wr_mapped_file_remove(file->folder, WR_SEGMENT_FILE_KIND, file->number);
    wr_segment_file_close(file);
}

const char *wr_segment_file_lane(const struct wr_segment_file *file, uint32_t slot)
{
    const char *name = file->names;
    while (slot--)
        name += strlen(name) + 1;
    return name;
}

/* ---- Texts and marks ------------------------------------------------------------------------- */

const char *wr_segment_file_put_text(struct wr_segment_file *file, const char *text, size_t length)
{
    char *copy = file->texts + file->text_used;
    memcpy(copy, text, length);
    copy[length] = '\0';
    file->text_used += (uint32_t)length + 1;
    return copy;
}

void wr_segment_file_settle(struct wr_segment_file *file, uint32_t slot, uint32_t first, uint32_t count)
{
    unsigned char *marks = file->marks + slot * file->stride;
    uint32_t end = first + count;
    while (first < end && first % 8) {
        marks[first / 8] |= (unsigned char)(1u << first % 8);
        first++;
    }
    memset(marks + first / 8, 0xff, (end - first) / 8);
    for (first += (end - first) / 8 * 8; first < end; first++)
        marks[first / 8] |= (unsigned char)(1u << first % 8);
}

bool wr_segment_file_is_settled(const struct wr_segment_file *file, uint32_t slot, uint32_t first,
                                uint32_t count)
{
    const unsigned char *marks = file->marks + slot * file->stride;
    for (uint32_t i = first; i < first + count; i++)
        if (!(marks[i / 8] >> i % 8 & 1))
            return false;
    return true;
}
