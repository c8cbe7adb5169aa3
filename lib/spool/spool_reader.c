#include "spool/spool_reader.h"

#include <stdlib.h>
#include <string.h>

#include "registry/reuse.h"
#include "text/error.h"
#include "spool/spool_block.h"
#include "text/array.h"

/* No interval is of more values: 100 million a second, for a day. Their sum fits into 63 bits. */
#define MOST_VALUES (INT64_C(1) << 43)

void wr_spool_reader_init(struct wr_spool_reader *reader, const char *data, size_t size,
                          struct wr_registry *registry, uint64_t *labels_made)
{
    struct wr_spool_writer_info info;
    *reader = (struct wr_spool_reader){
        .data = data,
        .size = size,
        .registry = registry,
        .labels_made = labels_made,
        .releases = wr_reuse_releases(registry),
    };
    wr_spool_block_read_head(data, size, &info, &reader->at); /* if damaged, `at` stays 0, where no block is */
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
static bool take_series(struct bytes *bytes, weir_series *view, struct wr_series_codec_room *room)
{
    struct wr_spool_series series;
    if ((size_t)(bytes->end - bytes->at) < sizeof series)
        return false;
    memcpy(&series, bytes->at, sizeof series);
    bytes->at += sizeof series;
    return wr_series_codec_take(&bytes->at, bytes->end, series.flags, series.labels, view, room);
}

/* Series are numbered consecutively, so their numbers are bounded by the size of the file. */
static void define_series(struct wr_spool_reader *reader, const struct wr_spool_block *block,
                          struct bytes bytes)
{
    struct wr_series_codec_room room;
    weir_series view;
    size_t most = block->length / sizeof(struct wr_spool_series); /* that fit into the block */
    if (block->count > most || block->first > reader->size / sizeof(struct wr_spool_series)) {
        reader->damaged = true;
        return;
    }
    if (!WR_ARRAY_HAS_ROOM(&reader->series, &reader->series_count, block->first + block->count)) {
        reader->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < block->count; i++) {
        if (!take_series(&bytes, &view, &room)) {
            reader->damaged = true;
            return;
        }
        reader->series[block->first + i] = wr_series_codec_intern(reader->registry, &view, &reader->no_memory);
    }
}

/* ---- Definitions of labels ------------------------------------------------------------------- */

static struct wr_label_set *make_labels(struct wr_spool_reader *reader, const weir_map *map)
{
    /* configurations number their sets from 1, and never reach the upper half */
    uint64_t number = UINT64_C(1) << 63 | ++*reader->labels_made;
    struct wr_error error = {0};
    struct wr_label_set *set = wr_labels_new(map, number, &error);
    reader->no_memory |= error.code == WEIR_ERR_MEMORY;
    return set;
}

/* Sets are numbered consecutively, so their numbers are bounded by the size of the file. */
static void define_labels(struct wr_spool_reader *reader, const struct wr_spool_block *block,
                          struct bytes bytes)
{
    uint32_t count = block->count;
    if (!block->first || block->first > reader->size / sizeof *block || count > block->length / 2) {
        reader->damaged = true;
        return;
    }
    weir_label *items = calloc(count + 1, sizeof *items);
    if (!items || !WR_ARRAY_HAS_ROOM(&reader->labels, &reader->label_sets, block->first)) {
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

static bool is_valid_kind(const weir_sample *sample)
{
    if (sample->kind != WEIR_KIND_SUMMARY)
        return sample->kind <= WEIR_KIND_INT;
    return sample->note && sample->value.i64 >= 0 && sample->value.i64 <= MOST_VALUES;
}

static bool is_valid_sample(const struct wr_spool_reader *reader, const weir_sample *sample, uint32_t *notes)
{
    if (sample->series >= reader->series_count || !reader->series[sample->series].number ||
        !is_valid_kind(sample))
        return false;
    return !sample->note || sample->note == ++*notes;
}

/* Of samples in a file, which need not be valid, so it may wrap. */
static uint64_t count_values(const char *payload, uint32_t count)
{
    uint64_t values = 0;
    for (uint32_t i = 0; i < count; i++) {
        weir_sample sample = read_sample(payload, i);
        values += wr_sample_values(&sample);
    }
    return values;
}

/* Whether everything that the samples refer to exists. */
static bool is_valid(const struct wr_spool_reader *reader, const struct wr_spool_block *block,
                     const char *payload)
{
    uint32_t notes = 0;
    weir_sample sample = {.flags = WEIR_SAMPLE_MORE};
    if (!block->count || block->count > block->length / sizeof sample || block->labels > reader->label_sets ||
        (block->labels && !reader->labels[block->labels - 1]))
        return false;
    for (uint32_t i = 0; i < block->count; i++) {
        sample = read_sample(payload, i);
        if (!is_valid_sample(reader, &sample, &notes))
            return false;
    }
    struct bytes texts = {payload + block->count * sizeof sample, payload + block->length};
    for (uint32_t i = 0; i < notes; i++)
        if (!wr_series_codec_take_text(&texts.at, texts.end))
            return false;
    return notes == block->notes && !(sample.flags & WEIR_SAMPLE_MORE) &&
           block->values == count_values(payload, block->count);
}

static void see_lost(struct wr_spool_reader *reader, uint32_t count, size_t end)
{
    reader->damaged = true;
    reader->part = (struct wr_spool_part){.kind = WR_SPOOL_PART_LOST, .first = reader->index, .count = count};
    reader->part_end = end;
}

/* The header has a checksum of its own, so the length can be trusted even if the payload is damaged. */
static size_t end_of(size_t size, size_t at, const struct wr_spool_block *block)
{
    size_t payload = at + sizeof *block;
    return block->length <= size - payload ? payload + block->length : size;
}

/* Returns whether reader->part is set: to this block, or to samples that are missing before it. */
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
               !is_valid(reader, block, payload)) {
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

/* Finds the next block, from *at on, and moves *at to it. Returns false at the end of the file, also if that is
 * in the middle of a block. *damaged: something else was in front of it; it is not set otherwise. */
static bool find_block(const char *data, size_t size, size_t *at, struct wr_spool_block *block, bool *damaged)
{
    size_t from = *at;
    *at = wr_spool_block_find(data, size, from, block);
    if (*at == size) {
        *damaged |= !wr_spool_block_is_cut_off(data, size, from);
        return false;
    }
    *damaged |= *at != from;
    return !wr_spool_block_is_cut_off(data, size, *at);
}

/* At `at`, which may be the header of a block that is cut off: samples between those that were read and that
 * block were in damaged blocks. */
static void see_end(struct wr_spool_reader *reader, size_t at, const struct wr_spool_block *block)
{
    if (at < reader->size && block->kind == WR_SPOOL_BLOCK_SAMPLES && block->first > reader->index) {
        see_lost(reader, block->first - reader->index, at);
        return;
    }
    reader->part = (struct wr_spool_part){.kind = WR_SPOOL_PART_END, .first = reader->index};
    reader->part_end = at;
}

/* Processes definitions up to the next part. */
static void find_part(struct wr_spool_reader *reader)
{
    struct wr_spool_block block;
    while (!reader->no_memory) {
        size_t at = reader->at;
        if (!find_block(reader->data, reader->size, &at, &block, &reader->damaged)) {
            see_end(reader, at, &block);
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
        const struct wr_series_codec_place *place = &reader->series[sample.series];
        sample.series = place->number - 1;
        sample.flags &= WEIR_SAMPLE_MORE | WEIR_SAMPLE_CUMULATIVE | WEIR_SAMPLE_ENDED;
        if (place->is_shared && sample.kind == WEIR_KIND_SUMMARY)
            sample.flags |= WR_SAMPLE_NO_ROOM;
        if (text && !(sample.note = wr_segment_add_note(segment, text, strlen(text))))
            return false;
        segment->summaries |= sample.kind == WEIR_KIND_SUMMARY;
        segment->samples[segment->count++] = sample;
    }
    segment->other_kinds |= segment->summaries;
    return true;
}

/* Counts samples up to number `more` of a block. */
static void count_to(uint32_t *samples, const struct wr_spool_block *block, uint32_t more)
{
    if (block->kind == WR_SPOOL_BLOCK_SAMPLES && block->first >= *samples && more <= UINT32_MAX - block->first)
        *samples = block->first + more;
}

/* How many values, more than one for each sample, a block's samples from number `settled` of the file on are.
 * Less than zero, so that it wraps, of summaries of no values. */
static uint64_t count_more(const char *payload, const struct wr_spool_block *block, uint32_t settled)
{
    uint32_t skip = settled > block->first ? settled - block->first : 0;
    if (block->kind != WR_SPOOL_BLOCK_SAMPLES || skip >= block->count ||
        block->count > block->length / sizeof(weir_sample))
        return 0;
    uint64_t gone = count_values(payload, skip);
    if (gone > block->values) /* the payload is damaged */
        return 0;
    return block->values - gone - (block->count - skip);
}

uint32_t wr_spool_reader_measure(const char *data, size_t size, uint32_t settled, uint64_t *values,
                                 bool *damaged)
{
    struct wr_spool_writer_info info;
    struct wr_spool_block block;
    size_t at = 0;
    uint32_t samples = 0;
    *damaged = false;
    *values = 0;
    wr_spool_block_read_head(data, size, &info, &at);
    for (; find_block(data, size, &at, &block, damaged); at = end_of(size, at, &block)) {
        count_to(&samples, &block, block.count);
        *values += count_more(data + at + sizeof block, &block, settled);
    }
    if (at < size)
        count_to(&samples, &block, 0); /* cut off: what is in front of it */
    *values += samples > settled ? samples - settled : 0;
    return samples;
}
