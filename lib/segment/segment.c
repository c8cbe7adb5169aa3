#include "segment/segment.h"

#include <string.h>

#include "os/pages.h"

enum { FIRST_NOTES = 448, FIRST_TEXT_BYTES = 3 * 1024, LAST_TEXT_BYTES = 256 * 1024 };

/* ---- The pool -------------------------------------------------------------------------------- */

/* What take_free looks for: room in memory or, if feed is not 0, a file of that feed. */
struct wanted {
    uint32_t room, feed;
};

static bool fits(const struct wr_segment *segment, struct wanted wanted)
{
    if (wanted.feed)
        return segment->file && segment->file->head->feed == wanted.feed;
    return !segment->file && segment->room >= wanted.room;
}

static struct wr_segment *take_free(struct wr_segment_pool *pool, struct wanted wanted)
{
    wr_lock_enter(&pool->lock);
    struct wr_segment **place = &pool->free;
    while (*place && !fits(*place, wanted))
        place = &(*place)->next_free;
    struct wr_segment *segment = *place;
    if (segment) {
        *place = segment->next_free;
        pool->free_count--;
    }
    wr_lock_leave(&pool->lock);
    return segment;
}

/* Segments with a file are always kept, until the pool is trimmed: this thread may hold a lane's lock, and must
 * not wait for a disk. */
static bool put_free(struct wr_segment_pool *pool, struct wr_segment *segment)
{
    wr_lock_enter(&pool->lock);
    bool kept = segment->file || pool->free_count < pool->free_most;
    if (kept) {
        segment->next_free = pool->free;
        pool->free = segment;
        pool->free_count++;
    }
    wr_lock_leave(&pool->lock);
    return kept;
}

static struct wr_segment *take_all_free(struct wr_segment_pool *pool)
{
    struct wr_segment *segments = pool->free;
    pool->free = NULL;
    pool->free_count = 0;
    return segments;
}

static void free_all(struct wr_segment *segment)
{
    while (segment) {
        struct wr_segment *next = segment->next_free;
        wr_segment_file_free(segment->file);
        wr_pages_put(segment);
        segment = next;
    }
}

void wr_segment_pool_set(struct wr_segment_pool *pool, uint32_t free_most)
{
    wr_lock_enter(&pool->lock);
    pool->free_most = free_most;
    struct wr_segment *segments = take_all_free(pool);
    wr_lock_leave(&pool->lock);
    free_all(segments);
}

void wr_segment_pool_trim(struct wr_segment_pool *pool)
{
    wr_lock_enter(&pool->lock);
    struct wr_segment *segments = take_all_free(pool);
    wr_lock_leave(&pool->lock);
    free_all(segments);
}

/* ---- Segments -------------------------------------------------------------------------------- */

static struct wr_segment *start(struct wr_segment *segment, struct wr_segment_pool *pool)
{
    segment->pool = pool;
    segment->count = 0;
    segment->other_kinds = segment->summaries = false;
    segment->texts = NULL;
    segment->inputs = NULL;
    segment->is_kept = false;
    segment->settled = 0;
    atomic_store_explicit(&segment->notes, NULL, memory_order_relaxed);
    atomic_store_explicit(&segment->references, 1, memory_order_relaxed);
    return segment;
}

static struct wr_segment *make(uint32_t room, uint32_t own_room)
{
    struct wr_segment *segment = wr_pages_get(sizeof *segment + own_room * sizeof segment->samples[0]);
    if (!segment)
        return NULL;
    segment->room = room;
    segment->samples = (weir_sample *)(segment + 1);
    segment->file = NULL;
    return segment;
}

struct wr_segment *wr_segment_new(struct wr_segment_pool *pool, uint32_t room)
{
    struct wr_segment *segment = take_free(pool, (struct wanted){.room = room});
    if (!segment)
        segment = make(room, room);
    return segment ? start(segment, pool) : NULL;
}

struct wr_segment *wr_segment_reuse(struct wr_segment_pool *pool, uint32_t feed)
{
    struct wr_segment *segment = take_free(pool, (struct wanted){.feed = feed});
    return segment ? start(segment, pool) : NULL;
}

struct wr_segment *wr_segment_adopt_file(struct wr_segment_pool *pool, struct wr_segment_file *file, bool own)
{
    struct wr_segment *segment = make(file->head->room, own ? 0 : file->head->room);
    if (!segment) {
        wr_segment_file_close(file);
        return NULL;
    }
    segment->file = file;
    if (own)
        segment->samples = file->samples;
    return start(segment, pool);
}

void wr_segment_hold(struct wr_segment *segment)
{
    atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed);
}

static void free_notes(struct wr_segment_notes *notes)
{
    while (notes) {
        struct wr_segment_notes *older = notes->older;
        wr_pages_put(notes);
        notes = older;
    }
}

static void free_texts(struct wr_segment_texts *texts)
{
    while (texts) {
        struct wr_segment_texts *older = texts->older;
        wr_pages_put(texts);
        texts = older;
    }
}

void wr_segment_drop(struct wr_segment *segment)
{
    /* release: this thread's accesses come before the free; acquire: the free comes after those of all others
     */
    if (!segment || atomic_fetch_sub_explicit(&segment->references, 1, memory_order_acq_rel) != 1)
        return;
    free_notes(atomic_load_explicit(&segment->notes, memory_order_relaxed));
    free_texts(segment->texts);
    wr_inputs_free(segment->inputs);
    segment->next_free = NULL;
    bool stays = segment->file && atomic_load(&segment->file->kept);
    if (segment->file && !stays)
        wr_segment_file_end(segment->file);
    if (stays || !put_free(segment->pool, segment))
        free_all(segment);
}

/* ---- Settling -------------------------------------------------------------------------------- */

void wr_segment_settle_summaries(struct wr_segment *segment, uint32_t count)
{
    segment->settled += count;
    if (segment->settled == segment->count)
        wr_inputs_settle(segment->inputs);
}

uint64_t wr_segment_leave(struct wr_segment *segment, uint64_t values)
{
    if (segment->file)
        atomic_store(&segment->file->kept, true);
    if (segment->inputs)
        return wr_inputs_leave(segment->inputs, values);
    return segment->file ? values : 0;
}

/* ---- Metadata -------------------------------------------------------------------------------- */

/* Returns the array, with room for one more text; NULL if out of memory. */
static struct wr_segment_notes *grow_notes(struct wr_segment *segment)
{
    struct wr_segment_notes *old = atomic_load_explicit(&segment->notes, memory_order_relaxed);
    if (old && old->count < old->room)
        return old;
    uint32_t room = old ? old->room * 2 : FIRST_NOTES;
    struct wr_segment_notes *notes = wr_pages_get(sizeof *notes + room * sizeof notes->texts[0]);
    if (!notes)
        return NULL;
    notes->older = old;
    notes->room = room;
    notes->count = old ? old->count : 1;
    notes->texts[0] = NULL; /* number 0 means none */
    if (old)
        memcpy(notes->texts, old->texts, old->count * sizeof notes->texts[0]);
    /* release: pairs with the acquire in wr_segment_texts */
    atomic_store_explicit(&segment->notes, notes, memory_order_release);
    return notes;
}

uint32_t wr_segment_point_to_note(struct wr_segment *segment, const char *text)
{
    struct wr_segment_notes *notes = grow_notes(segment);
    if (!notes)
        return 0;
    notes->texts[notes->count] = text;
    return notes->count++;
}

/* Returns memory for a text of so many bytes; NULL if out of memory. */
static char *find_text_room(struct wr_segment *segment, size_t bytes)
{
    struct wr_segment_texts *texts = segment->texts;
    if (texts && texts->room - texts->used >= bytes)
        return texts->bytes + texts->used;
    size_t room = texts ? texts->room * 2 : FIRST_TEXT_BYTES;
    room = room > LAST_TEXT_BYTES ? LAST_TEXT_BYTES : room;
    struct wr_segment_texts *next = wr_pages_get(sizeof *next + (room < bytes ? bytes : room));
    if (!next)
        return NULL;
    next->older = texts;
    next->room = wr_pages_room(next) - sizeof *next;
    segment->texts = next;
    return next->bytes;
}

static uint32_t copy_note(struct wr_segment *segment, const char *text, size_t length)
{
    char *copy = find_text_room(segment, length + 1);
    if (!copy)
        return 0;
    memcpy(copy, text, length);
    copy[length] = '\0';
    uint32_t number = wr_segment_point_to_note(segment, copy);
    segment->texts->used += number ? length + 1 : 0;
    return number;
}

/* A reader numbers the texts in the file by counting them, so a text without a number must not be written. */
uint32_t wr_segment_add_note(struct wr_segment *segment, const char *text, size_t length)
{
    if (!segment->file)
        return copy_note(segment, text, length);
    if (!wr_segment_file_has_room(segment->file, length + 1) || !grow_notes(segment))
        return 0;
    return wr_segment_point_to_note(segment, wr_segment_file_put_text(segment->file, text, length));
}

const char *const *wr_segment_texts(const struct wr_segment *segment)
{
    const struct wr_segment_notes *notes = atomic_load_explicit(&segment->notes, memory_order_acquire);
    return notes ? notes->texts : NULL;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

uint64_t wr_segment_values(const struct wr_segment *segment, uint32_t first, uint32_t count)
{
    uint64_t values = 0;
    if (!segment->summaries)
        return count;
    for (uint32_t i = first; i < first + count; i++)
        values += wr_sample_values(&segment->samples[i]);
    return values;
}

uint64_t wr_segment_bytes(const struct wr_segment *segment, uint32_t first, uint32_t count)
{
    uint64_t bytes = (uint64_t)count * sizeof(weir_sample);
    const char *const *texts = wr_segment_texts(segment);
    if (!texts)
        return bytes;
    for (uint32_t i = first; i < first + count; i++)
        if (segment->samples[i].note)
            bytes += strlen(texts[segment->samples[i].note]) + 1;
    return bytes;
}

uint32_t wr_segment_event_end(const struct wr_segment *segment, uint32_t first)
{
    while (segment->samples[first].flags & WEIR_SAMPLE_MORE)
        first++;
    return first + 1;
}

uint32_t wr_segment_cut(const struct wr_segment *segment, uint32_t first, uint32_t end, uint32_t most)
{
    if (end - first <= most)
        return end;
    uint32_t cut = first + most;
    while (cut > first && segment->samples[cut - 1].flags & WEIR_SAMPLE_MORE)
        cut--;
    return cut > first ? cut : wr_segment_event_end(segment, first);
}
