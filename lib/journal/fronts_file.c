#include "journal/fronts_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal/journal.h"
#include "text/buffer.h"
#include "text/common.h"

enum { TRY_AGAIN_S = 1 };

struct slot {
    struct wr_fronts_state states[2];
};

struct head {
    WR_ALIGNED_LINE uint64_t magic;
    uint32_t version;
    WR_ALIGNED_LINE struct slot slots[];
};

#define FILE_BYTES (sizeof(struct head) + WR_FRONTS_FILE_SLOTS * sizeof(struct slot))

/* The index of the state in force; -1: none. */
static int find_state(const struct slot *slot)
{
    uint64_t first = atomic_load_explicit(&slot->states[0].number, memory_order_relaxed);
    uint64_t second = atomic_load_explicit(&slot->states[1].number, memory_order_relaxed);
    return !first && !second ? -1 : first > second ? 0 : 1;
}

/* ---- Writing --------------------------------------------------------------------------------- */

bool wr_fronts_file_start(struct wr_fronts_file *file, const char *folder)
{
    wr_fronts_file_stop(file);
    file->folder = strdup(folder);
    return file->folder;
}

void wr_fronts_file_stop(struct wr_fronts_file *file)
{
    for (size_t i = 0; i < WR_FRONTS_FILES_MOST; i++)
        wr_mapped_file_close(&file->maps[i]);
    free(file->folder);
    *file = (struct wr_fronts_file){0};
}

/* NULL: its file is not there. */
static struct slot *slot_at(const struct wr_fronts_file *file, uint32_t slot)
{
    uint32_t number = slot / WR_FRONTS_FILE_SLOTS;
    struct head *head = number < WR_FRONTS_FILES_MOST ? (struct head *)file->maps[number].memory : NULL;
    return head ? &head->slots[slot % WR_FRONTS_FILE_SLOTS] : NULL;
}

bool wr_fronts_file_has(const struct wr_fronts_file *file, uint32_t slot)
{
    return slot_at(file, slot);
}

const struct wr_fronts_state *wr_fronts_file_get(const struct wr_fronts_file *file, uint32_t slot)
{
    const struct slot *at = slot_at(file, slot);
    int current = at ? find_state(at) : -1;
    return current < 0 ? NULL : &at->states[current];
}

bool wr_fronts_file_reserve(struct wr_fronts_file *file, uint32_t slot, int64_t now_ns)
{
    uint32_t number = slot / WR_FRONTS_FILE_SLOTS;
    if (!file->folder || number >= WR_FRONTS_FILES_MOST || (file->failing && now_ns < file->retry_ns))
        return false;
    if (file->maps[number].memory)
        return true;
    struct wr_journal_map map;
    file->failing = wr_mapped_file_make(&map, file->folder, WR_FRONTS_KIND, number, FILE_BYTES) != 0;
    file->retry_ns = now_ns + TRY_AGAIN_S * WR_NS_PER_S;
    if (file->failing)
        return false;
    struct head *head = (struct head *)map.memory;
    head->version = WR_JOURNAL_VERSION;
    atomic_signal_fence(memory_order_seq_cst);
    head->magic = WR_JOURNAL_FRONTS;
    file->maps[number] = map;
    return true;
}

void wr_fronts_file_put(struct wr_fronts_file *file, uint32_t slot, const struct wr_fronts_state *state)
{
    struct slot *at = slot_at(file, slot);
    int current = find_state(at);
    uint64_t number = current < 0 ? 0 : atomic_load_explicit(&at->states[current].number, memory_order_relaxed);
    struct wr_fronts_state *to = &at->states[current == 0];
    atomic_store_explicit(&to->number, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    to->origin = state->origin;
    to->used_ns = state->used_ns;
    to->front = state->front;
    to->pending = state->pending;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&to->number, number + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/* Killed between both stores, the slot has its older state, which is true as well. */
void wr_fronts_file_clear(struct wr_fronts_file *file, uint32_t slot)
{
    struct slot *at = slot_at(file, slot);
    for (int i = 0; at && i < 2; i++)
        atomic_store_explicit(&at->states[i].number, 0, memory_order_relaxed);
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct reader {
    const char *folder;
    struct wr_buffer states;
};

/* Whether a ring of the folder has been published up to a position. */
static bool is_published(const char *folder, const struct wr_front_pending *pending)
{
    struct wr_journal_map map;
    if (wr_mapped_file_open(&map, folder, WR_JOURNAL_RING_KIND, pending->ring, false))
        return false;
    const struct wr_ring_block *block = (const struct wr_ring_block *)map.memory;
    bool result = map.size >= sizeof *block && block->magic == WR_JOURNAL_RING &&
                  block->version == WR_JOURNAL_VERSION &&
                  atomic_load_explicit(&block->tail, memory_order_relaxed) >= pending->position;
    wr_mapped_file_close(&map);
    return result;
}

static bool is_range(const struct wr_front_range *range)
{
    return range->from < range->to;
}

/* Nothing in the files is trusted: the ranges are added one by one. */
static void read_slot(struct reader *reader, const struct slot *slot)
{
    int current = find_state(slot);
    if (current < 0)
        return;
    const struct wr_fronts_state *found = &slot->states[current];
    struct wr_fronts_state state = {.number = 1, .origin = found->origin, .used_ns = found->used_ns};
    uint32_t count = found->front.count < WR_FRONT_RANGES ? found->front.count : WR_FRONT_RANGES;
    for (uint32_t i = 0; i < count; i++)
        if (is_range(&found->front.ranges[i]))
            wr_front_add(&state.front, found->front.ranges[i].from, found->front.ranges[i].to);
    if (is_range(&found->pending.range) && is_published(reader->folder, &found->pending))
        wr_front_add(&state.front, found->pending.range.from, found->pending.range.to);
    if (state.front.count)
        wr_buffer_put(&reader->states, &state, sizeof state);
}

static void read_file(struct reader *reader, uint32_t number)
{
    struct wr_journal_map map;
    if (wr_mapped_file_open(&map, reader->folder, WR_FRONTS_KIND, number, false))
        return;
    const struct head *head = (const struct head *)map.memory;
    if (map.size == FILE_BYTES && head->magic == WR_JOURNAL_FRONTS && head->version == WR_JOURNAL_VERSION)
        for (uint32_t i = 0; i < WR_FRONTS_FILE_SLOTS; i++)
            read_slot(reader, &head->slots[i]);
    wr_mapped_file_close(&map);
}

bool wr_fronts_file_read(const char *folder, struct wr_fronts_state **states, size_t *count)
{
    struct reader reader = {.folder = folder};
    size_t files = 0;
    uint64_t *numbers = wr_mapped_file_list(folder, WR_FRONTS_KIND, &files);
    for (size_t i = 0; numbers && i < files; i++)
        read_file(&reader, (uint32_t)numbers[i]);
    bool read = numbers && !reader.states.failed;
    free(numbers);
    if (!read)
        wr_buffer_fini(&reader.states);
    *states = (struct wr_fronts_state *)reader.states.data;
    *count = reader.states.length / sizeof **states;
    return read;
}
