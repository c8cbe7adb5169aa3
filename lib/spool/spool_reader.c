#include "spool/spool_reader.h"

#include <stdlib.h>
#include <string.h>

#include "text/error.h"
#include "segment/series_codec.h"
#include "spool/spool_block.h"

enum { KINDS = WEIR_KIND_INT + 1 };

void wr_spool_reader_init(struct wr_spool_reader *reader, const char *data, size_t size,
                          struct wr_registry *registry, uint64_t *labels_made)
{
    struct wr_spool_writer_info info;
    *reader =
        (struct wr_spool_reader){.data = data, .size = size, .registry = registry, .labels_made = labels_made};
    reader->damaged = !wr_spool_block_read_head(data, size, &info, &reader->at);
}

void wr_spool_reader_fini(struct wr_spool_reader *reader)
{
    for (uint32_t i = 0; i < reader->label_sets; i++)
        wr_labels_drop(reader->labels[i]);
    free(reader->labels);
    free(reader->series);
    *reader = (struct wr_spool_reader){0};
}

/* ---- Definitions of series ------------------------------------------------------------------- */

/* A payload, as it is read from its front. */
struct bytes {
    const char *at, *end;
};

/* Returns false if it is cut off or has too many labels. */
static bool take_series(struct bytes *bytes, weir_series *view, weir_label *labels)
{
    struct wr_spool_series series;
    if ((size_t)(bytes->end - bytes->at) < sizeof series)
        return false;
    memcpy(&series, bytes->at, sizeof series);
    bytes->at += sizeof series;
    return wr_series_codec_take(&bytes->at, bytes->end, series.flags, series.labels, view, labels);
}

static bool grow_series(struct wr_spool_reader *reader, uint32_t count)
{
    if (count <= reader->series_count)
        return true;
    uint32_t *series = realloc(reader->series, count * sizeof *series);
    if (!series)
        return false;
    memset(series + reader->series_count, 0, (count - reader->series_count) * sizeof *series);
    reader->series = series;
    reader->series_count = count;
    return true;
}

/* Series are numbered in a row, so a number cannot be larger than the file. */
static void define_series(struct wr_spool_reader *reader, const struct wr_spool_block *block,
                          struct bytes bytes)
{
    weir_label labels[WR_SERIES_CODEC_LABELS_MOST];
    weir_series view;
    size_t most = block->length / sizeof(struct wr_spool_series); /* what could be in it at all */
    if (block->count > most || block->first > reader->size / sizeof(struct wr_spool_series)) {
        reader->damaged = true;
        return;
    }
    if (!grow_series(reader, block->first + block->count)) {
        reader->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < block->count; i++) {
        if (!take_series(&bytes, &view, labels)) {
            reader->damaged = true;
            return;
        }
        reader->series[block->first + i] = wr_series_codec_intern(reader->registry, &view, &reader->no_memory);
    }
}

/* ---- Definitions of labels ------------------------------------------------------------------- */

static bool grow_labels(struct wr_spool_reader *reader, uint32_t count)
{
    if (count <= reader->label_sets)
        return true;
    struct wr_label_set **labels = realloc(reader->labels, count * sizeof *labels);
    if (!labels)
        return false;
    memset(labels + reader->label_sets, 0, (count - reader->label_sets) * sizeof *labels);
    reader->labels = labels;
    reader->label_sets = count;
    return true;
}

static struct wr_label_set *make_labels(struct wr_spool_reader *reader, const weir_map *map)
{
    /* the configurations' sets are numbered from 1: the upper half of all numbers is never reached */
    uint64_t number = UINT64_C(1) << 63 | ++*reader->labels_made;
    struct wr_error error = {0};
    struct wr_label_set *set = wr_labels_new(map, number, &error);
    reader->no_memory |= error.code == WEIR_ERR_MEMORY;
    return set;
}

/* Sets are numbered in a row, so a number cannot be larger than the file. */
static void define_labels(struct wr_spool_reader *reader, const struct wr_spool_block *block,
                          struct bytes bytes)
{
    uint32_t count = block->count;
    if (!block->first || block->first > reader->size / sizeof *block || count > block->length / 2) {
        reader->damaged = true;
        return;
    }
    weir_label *items = calloc(count + 1, sizeof *items);
    if (!items || !grow_labels(reader, block->first)) {
        free(items);
        reader->no_memory = true;
        return;
    }
    if (wr_series_codec_take_labels(&bytes.at, bytes.end, items, count)) {
        wr_labels_drop(reader->labels[block->first - 1]);
        reader->labels[block->first - 1] = make_labels(reader, &(weir_map){count, items});
    }
    reader->damaged |= !reader->labels[block->first - 1] && !reader->no_memory;
    free(items);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static weir_sample read_sample(const char *payload, uint32_t number)
{
    weir_sample sample;
    memcpy(&sample, payload + number * sizeof sample, sizeof sample);
    return sample;
}

static bool is_sound_sample(const struct wr_spool_reader *reader, const weir_sample *sample, uint32_t *notes)
{
    if (sample->series >= reader->series_count || !reader->series[sample->series] || sample->kind >= KINDS)
        return false;
    return !sample->note || sample->note == ++*notes;
}

/* Whether all that the samples refer to is there. */
static bool is_sound(const struct wr_spool_reader *reader, const struct wr_spool_block *block,
                     const char *payload)
{
    uint32_t notes = 0;
    weir_sample sample = {.flags = WEIR_SAMPLE_MORE};
    if (!block->count || block->count > block->length / sizeof sample || block->labels > reader->label_sets ||
        (block->labels && !reader->labels[block->labels - 1]))
        return false;
    for (uint32_t i = 0; i < block->count; i++) {
        sample = read_sample(payload, i);
        if (!is_sound_sample(reader, &sample, &notes))
            return false;
    }
    struct bytes texts = {payload + block->count * sizeof sample, payload + block->length};
    for (uint32_t i = 0; i < notes; i++)
        if (!wr_series_codec_take_text(&texts.at, texts.end))
            return false;
    return notes == block->notes && !(sample.flags & WEIR_SAMPLE_MORE);
}

static void see_lost(struct wr_spool_reader *reader, uint32_t count, size_t end)
{
    reader->damaged = true;
    reader->part = (struct wr_spool_part){.kind = WR_SPOOL_PART_LOST, .first = reader->index, .count = count};
    reader->part_end = end;
}

/* A sound header can be trusted: where its payload is damaged, the next block is behind that all the same. */
static size_t end_of(size_t size, size_t at, const struct wr_spool_block *block)
{
    size_t payload = at + sizeof *block;
    return block->length <= size - payload ? payload + block->length : size;
}

/* Answers whether this is the next part, or a part is missing before it. */
static bool see_samples(struct wr_spool_reader *reader, size_t at, const struct wr_spool_block *block)
{
    size_t end = end_of(reader->size, at, block);
    const char *payload = reader->data + at + sizeof *block;
    if (block->first < reader->index || block->count > UINT32_MAX - block->first) {
        reader->damaged = true;
        return false;
    }
    if (block->first > reader->index) {
        see_lost(reader, block->first - reader->index, at);
    } else if (!wr_spool_block_is_whole(reader->data, reader->size, at, block) ||
               !is_sound(reader, block, payload)) {
        see_lost(reader, block->count, end);
    } else {
        reader->part = (struct wr_spool_part){
            .kind = WR_SPOOL_PART_GOOD,
            .first = block->first,
            .count = block->count,
            .id = block->id,
            .position = block->position,
            .labels = block->labels ? reader->labels[block->labels - 1] : NULL,
            .payload = payload,
            .length = block->length,
        };
        reader->part_end = end;
    }
    return true;
}

static void define(struct wr_spool_reader *reader, size_t at, const struct wr_spool_block *block)
{
    const char *payload = reader->data + at + sizeof *block;
    struct bytes bytes = {payload, payload + block->length};
    if (!wr_spool_block_is_whole(reader->data, reader->size, at, block))
        reader->damaged = true;
    else if (block->kind == WR_SPOOL_BLOCK_SERIES)
        define_series(reader, block, bytes);
    else if (block->kind == WR_SPOOL_BLOCK_LABELS)
        define_labels(reader, block, bytes);
}

/* Reads definitions up to the next part. */
static void find_part(struct wr_spool_reader *reader)
{
    struct wr_spool_block block;
    while (!reader->no_memory) {
        size_t at = wr_spool_block_find(reader->data, reader->size, reader->at, &block);
        reader->damaged |= at != reader->at;
        if (at == reader->size) {
            reader->part = (struct wr_spool_part){.kind = WR_SPOOL_PART_END, .first = reader->index};
            reader->part_end = at;
            return;
        }
        if (block.kind == WR_SPOOL_BLOCK_SAMPLES && see_samples(reader, at, &block))
            return;
        define(reader, at, &block);
        reader->at = end_of(reader->size, at, &block);
    }
}

const struct wr_spool_part *wr_spool_reader_look(struct wr_spool_reader *reader)
{
    if (!reader->looked)
        find_part(reader);
    reader->looked = true;
    if (reader->no_memory)
        reader->part.kind = WR_SPOOL_PART_NO_MEMORY;
    return &reader->part;
}

void wr_spool_reader_take(struct wr_spool_reader *reader)
{
    reader->at = reader->part_end;
    reader->index = reader->part.first + reader->part.count;
    reader->looked = false;
}

/* ---- Loading --------------------------------------------------------------------------------- */

bool wr_spool_reader_load(const struct wr_spool_reader *reader, const struct wr_spool_part *part, uint32_t skip,
                          struct wr_segment *segment)
{
    struct bytes texts = {part->payload + part->count * sizeof(weir_sample), part->payload + part->length};
    for (uint32_t i = 0; i < part->count; i++) {
        weir_sample sample = read_sample(part->payload, i);
        const char *text = sample.note ? wr_series_codec_take_text(&texts.at, texts.end) : NULL;
        if (i < skip)
            continue;
        sample.series = reader->series[sample.series] - 1;
        if (text && !(sample.note = wr_segment_add_note(segment, text, strlen(text))))
            return false;
        segment->samples[segment->count++] = sample;
    }
    return true;
}

uint32_t wr_spool_reader_measure(const char *data, size_t size)
{
    struct wr_spool_writer_info info;
    struct wr_spool_block block;
    size_t at = 0;
    uint32_t samples = 0;
    wr_spool_block_read_head(data, size, &info, &at);
    while ((at = wr_spool_block_find(data, size, at, &block)) < size) {
        if (block.kind == WR_SPOOL_BLOCK_SAMPLES && block.first >= samples &&
            block.count <= UINT32_MAX - block.first)
            samples = block.first + block.count;
        at = end_of(size, at, &block);
    }
    return samples;
}
