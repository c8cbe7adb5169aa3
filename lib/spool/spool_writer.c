#include "spool/spool_writer.h"

#include <stdlib.h>
#include <string.h>

#include "registry/reuse.h"
#include "segment/series_codec.h"
#include "spool/spool_block.h"
#include "text/array.h"

void wr_spool_writer_fini(struct wr_spool_writer *writer)
{
    free(writer->numbers);
    writer->numbers = NULL;
    writer->numbers_room = 0;
}

void wr_spool_writer_begin(struct wr_spool_writer *writer)
{
    writer->file++;
    writer->series = writer->samples = writer->label_sets = 0;
    writer->labels = 0;
}

/* ---- Definitions ----------------------------------------------------------------------------- */

static void put_text(struct wr_buffer *out, const char *text)
{
    wr_buffer_put(out, text, strlen(text) + 1);
}

static void put_labels(struct wr_buffer *out, const weir_label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_text(out, labels[i].key);
        put_text(out, labels[i].value);
    }
}

static void put_series(struct wr_buffer *out, const weir_series *view)
{
    const struct wr_spool_series series = {wr_series_codec_flags(view), (uint16_t)view->label_count};
    size_t bytes = wr_series_codec_bytes(view);
    wr_buffer_put(out, &series, sizeof series);
    if (!wr_buffer_reserve(out, bytes))
        return;
    wr_series_codec_put(out->data + out->length, view);
    out->length += bytes;
}

/* An id may stand for another series: each one gets another number, behind those that are in the file. The
 * range's samples were added before this. */
static void follow_reuse(struct wr_spool_writer *writer)
{
    uint64_t releases = wr_reuse_releases(writer->registry);
    if (releases != writer->releases && writer->numbers_room)
        memset(writer->numbers, 0, writer->numbers_room * sizeof *writer->numbers);
    writer->releases = releases;
}

/* Appends definitions of the range's series that the file lacks. */
static bool define_series(struct wr_spool_writer *writer, const struct wr_range *range, struct wr_buffer *out)
{
    struct wr_spool_block block = {.kind = WR_SPOOL_BLOCK_SERIES, .first = writer->series};
    size_t start = wr_spool_block_begin(out);
    for (uint32_t i = 0; i < range->count; i++) {
        uint32_t id = range->segment->samples[range->first + i].series;
        if (!WR_ARRAY_HAS_ROOM(&writer->numbers, &writer->numbers_room, id + 1))
            return false;
        if (writer->numbers[id].file == writer->file)
            continue;
        writer->numbers[id] = (struct wr_spool_number){writer->file, writer->series++};
        const struct weir_metric *metric = wr_registry_series(writer->registry, id);
        put_series(out, atomic_load_explicit(&metric->view, memory_order_acquire));
        block.count++;
    }
    if (block.count)
        wr_spool_block_end(out, start, &block);
    else
        out->length = start;
    return true;
}

/* Returns the number of the label set in the file. */
static uint32_t define_labels(struct wr_spool_writer *writer, const struct wr_label_set *labels,
                              struct wr_buffer *out)
{
    if (!labels)
        return 0;
    if (writer->labels == labels->number)
        return writer->label_sets;
    struct wr_spool_block block = {
        .kind = WR_SPOOL_BLOCK_LABELS, .first = ++writer->label_sets, .count = (uint32_t)labels->count};
    size_t start = wr_spool_block_begin(out);
    put_labels(out, labels->items, labels->count);
    wr_spool_block_end(out, start, &block);
    writer->labels = labels->number;
    return writer->label_sets;
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* Appends the records, then the texts that they refer to, numbered from 1 in the block. Returns the number of
 * texts. */
static uint32_t put_samples(const struct wr_spool_writer *writer, const struct wr_range *range,
                            struct wr_buffer *out)
{
    const weir_sample *samples = range->segment->samples + range->first;
    const char *const *texts = wr_segment_texts(range->segment);
    uint32_t notes = 0;
    for (uint32_t i = 0; i < range->count; i++) {
        weir_sample record = samples[i];
        record.series = writer->numbers[record.series].number;
        record.flags &= WEIR_SAMPLE_MORE | WEIR_SAMPLE_CUMULATIVE | WEIR_SAMPLE_ENDED;
        record.note = record.note ? ++notes : 0;
        record.reserved = 0;
        wr_buffer_put(out, &record, sizeof record);
    }
    for (uint32_t i = 0; notes && i < range->count; i++)
        if (samples[i].note)
            put_text(out, texts[samples[i].note]);
    return notes;
}

bool wr_spool_writer_put(struct wr_spool_writer *writer, const struct wr_range *range,
                         const struct wr_label_set *labels, struct wr_buffer *out)
{
    follow_reuse(writer);
    if (!wr_buffer_reserve(out, range->bytes) || !define_series(writer, range, out))
        return false;
    struct wr_spool_block block = {
        .kind = WR_SPOOL_BLOCK_SAMPLES,
        .labels = define_labels(writer, labels, out),
        .first = writer->samples,
        .count = range->count,
        .position = range->position,
        .id = range->id,
        .values = wr_range_values(range),
    };
    size_t start = wr_spool_block_begin(out);
    block.notes = put_samples(writer, range, out);
    wr_spool_block_end(out, start, &block);
    writer->samples += range->count;
    return !out->failed;
}
