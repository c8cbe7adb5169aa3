#include "format/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "registry/labels_walk.h"
#include "segment/batch.h"
#include "text/array.h"
#include "text/common.h"
#include "text/escape.h"
#include "text/number.h"

void wr_encoder_init(struct wr_encoder *encoder, const struct wr_format *format, const void *options)
{
    *encoder = (struct wr_encoder){.format = format, .options = options};
    if (format->make_state)
        encoder->state = format->make_state(options);
    wr_encoder_set_second(encoder, 0);
}

void wr_encoder_fini(struct wr_encoder *encoder)
{
    if (encoder->state)
        encoder->format->free_state(encoder->state);
    wr_buffer_fini(&encoder->out);
    wr_buffer_fini(&encoder->affix_text);
    free(encoder->ends);
    free(encoder->omitted);
    free(encoder->affixes);
    *encoder = (struct wr_encoder){0};
}

/* ---- Constant text around values ------------------------------------------------------------- */

static bool are_current(const struct wr_encoder *encoder, const weir_batch *batch)
{
    const struct wr_batch_core *core = wr_batch_core(batch);
    return core->labels_number == encoder->labels && core->redefinitions == encoder->redefinitions;
}

/* The affixes contain the labels of the configuration and the meanings of series: when these change, all
 * affixes are discarded. */
static void check_affixes(struct wr_encoder *encoder)
{
    const struct wr_batch_core *core = wr_batch_core(encoder->batch);
    if (are_current(encoder, encoder->batch))
        return;
    free(encoder->affixes);
    encoder->affixes = NULL;
    encoder->affixes_room = 0;
    wr_buffer_clear(&encoder->affix_text);
    encoder->labels = core->labels_number;
    encoder->redefinitions = core->redefinitions;
}

const struct wr_affixes *wr_encoder_make_affixes(struct wr_encoder *encoder, uint32_t series)
{
    if (encoder->fixed || !WR_ARRAY_HAS_ROOM(&encoder->affixes, &encoder->affixes_room, series + 1))
        return NULL;
    const weir_series *view = encoder->batch->series(encoder->batch, series);
    struct wr_buffer *text = &encoder->affix_text;
    size_t start = text->length;
    encoder->format->put_prefix(encoder, view, text);
    size_t prefix = text->length - start;
    if (encoder->format->put_suffix)
        encoder->format->put_suffix(encoder, view, text);
    size_t suffix = text->length - start - prefix;
    wr_buffer_reserve(text, WR_ENCODER_SLACK);
    if (text->failed || text->length > UINT32_MAX) {
        text->length = start;
        text->failed = false;
        return NULL;
    }
    struct wr_affixes *affixes = &encoder->affixes[series];
    *affixes = (struct wr_affixes){(uint32_t)start, (uint32_t)prefix, (uint32_t)suffix, 1};
    return affixes;
}

bool wr_encoder_copy_affixes(struct wr_encoder *encoder, const weir_sample *sample, struct wr_affixes *affixes)
{
    const struct wr_affixes *found = wr_encoder_affixes(encoder, sample->series);
    if (found)
        *affixes = *found;
    else
        encoder->out.failed = true;
    return found;
}

bool wr_encoder_has_same_suffix(const struct wr_encoder *encoder, const struct wr_affixes *a,
                                const struct wr_affixes *b)
{
    return a->suffix == b->suffix &&
           memcmp(wr_encoder_suffix(encoder, a), wr_encoder_suffix(encoder, b), a->suffix) == 0;
}

void wr_encoder_put_repr(struct wr_encoder *encoder, const weir_sample *sample,
                         const struct wr_affixes *affixes)
{
    struct wr_buffer *out = &encoder->out;
    if (!wr_buffer_reserve(out, (size_t)affixes->prefix + WR_NUMBER_ROOM))
        return;
    char *at = out->data + out->length;
    memcpy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += affixes->prefix;
    at += sample->kind == WEIR_KIND_INT ? wr_number_put_int(at, sample->value.i64)
                                        : wr_number_put_repr(at, sample->value.f64);
    out->length = (size_t)(at - out->data);
}

void wr_encoder_put_labels(const struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out,
                           const char *before, void (*put_key)(struct wr_buffer *out, const char *key))
{
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label = wr_labels_next(&walk, series, encoder->batch);
    if (!label)
        return;
    wr_buffer_put_text(out, before);
    for (char between = '{'; label; label = wr_labels_next(&walk, series, encoder->batch), between = ',') {
        wr_buffer_put_char(out, between);
        put_key(out, label->key);
        wr_buffer_put_char(out, ':');
        wr_escape_json(out, label->value);
    }
    wr_buffer_put_char(out, '}');
}

/* ---- Omitted samples ------------------------------------------------------------------------- */

void wr_encoder_omit(struct wr_encoder *encoder, uint32_t sample)
{
    if (!encoder->fixed &&
        WR_ARRAY_HAS_ROOM(&encoder->omitted, &encoder->omitted_room, encoder->omitted_count + 1))
        encoder->omitted[encoder->omitted_count++] = sample;
    else
        encoder->out.failed = true;
}

/* Index of the first omitted sample that is not before `sample`. */
static uint32_t find_omitted(const struct wr_encoder *encoder, uint32_t sample)
{
    uint32_t low = 0, high = encoder->omitted_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (encoder->omitted[middle] < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t wr_encoder_count_omitted(const struct wr_encoder *encoder, uint32_t samples)
{
    return find_omitted(encoder, samples);
}

void wr_encoder_begin(struct wr_encoder *encoder)
{
    encoder->omitted_count = 0;
}

/* ---- Encoding -------------------------------------------------------------------------------- */

void wr_encoder_set_fixed(struct wr_encoder *encoder, bool fixed)
{
    encoder->fixed = encoder->out.fixed = fixed;
}

/* Whether the batch can be encoded without allocating, as far as that is known before. Formats with a state
 * may allocate for it. */
static bool fits_fixed(const struct wr_encoder *encoder, const weir_batch *batch, uint32_t start)
{
    return !encoder->format->free_state && are_current(encoder, batch) && batch->count >= start &&
           batch->count - start <= encoder->ends_room;
}

const char *wr_encoder_content_type(const struct wr_encoder *encoder)
{
    const struct wr_format *format = encoder->format;
    return format->choose_content_type ? format->choose_content_type(encoder->options) : format->content_type;
}

const char *wr_encoder_header(const struct wr_encoder *encoder)
{
    return encoder->format->header ? encoder->format->header(encoder->options) : "";
}

const char *wr_encoder_shape_name(uint32_t shape)
{
    switch (shape) {
    case WEIR_FORMAT_LINES: return "lines";
    case WEIR_FORMAT_DOCUMENTS: return "documents";
    default: return "records";
    }
}

/* Returns the end of the piece (event, record or document) that starts with sample `first`. */
static uint32_t piece_end(const struct wr_encoder *encoder, uint32_t first)
{
    const weir_batch *batch = encoder->batch;
    if (encoder->format->shape == WEIR_FORMAT_DOCUMENTS)
        return batch->count;
    if (encoder->format->shape == WEIR_FORMAT_RECORDS)
        return first + 1;
    while (first + 1 < batch->count && batch->samples[first].flags & WEIR_SAMPLE_MORE)
        first++;
    return first + 1;
}

/* Whether one of the lines is longer than the limit. */
static bool has_long_line(const char *lines, size_t length, size_t limit)
{
    const char *at = lines, *end = lines + length;
    while ((size_t)(end - at) > limit) {
        const char *last = memrchr(at, '\n', limit);
        if (!last)
            return true;
        at = last + 1;
    }
    return false;
}

/* Encodes samples [first, end). An event with a line above the limit is encoded again in two halves. */
WR_NEVER_INLINE static void put_piece(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    struct wr_buffer *out = &encoder->out;
    const size_t start = out->length, limit = encoder->line_limit;
    const uint32_t omitted = encoder->omitted_count;
    encoder->format->put_event(encoder, first, end);
    if (WR_LIKELY(!limit || out->length - start <= limit) || end - first < 2 || out->failed ||
        encoder->format->shape != WEIR_FORMAT_LINES ||
        !has_long_line(out->data + start, out->length - start, limit))
        return;
    out->length = start;
    encoder->omitted_count = omitted;
    uint32_t middle = first + (end - first) / 2;
    put_piece(encoder, first, middle);
    put_piece(encoder, middle, end);
}

/* Encodes piece by piece up to the limit. Returns the end of the last one for which there was memory. */
static uint32_t put_pieces(struct wr_encoder *encoder, uint32_t start, size_t limit)
{
    struct wr_buffer *out = &encoder->out;
    uint32_t at = start;
    while (at < encoder->batch->count && out->length < limit) {
        uint32_t end = piece_end(encoder, at);
        size_t length = out->length;
        if (WR_LIKELY(!encoder->line_limit))
            encoder->format->put_event(encoder, at, end);
        else
            put_piece(encoder, at, end);
        if (WR_UNLIKELY(out->failed || out->length > UINT32_MAX)) {
            out->length = length;
            break;
        }
        for (; at < end; at++)
            encoder->ends[at - start] = (uint32_t)out->length;
    }
    return at;
}

bool wr_encoder_encode(struct wr_encoder *encoder, const weir_batch *batch, uint32_t start, size_t limit,
                       weir_encoded *encoded)
{
    if (WR_UNLIKELY(encoder->fixed) && !fits_fixed(encoder, batch, start))
        return false;
    encoder->batch = batch;
    check_affixes(encoder);
    wr_buffer_clear(&encoder->out);
    encoder->first = start;
    encoder->omitted_count = find_omitted(encoder, start);
    if (start > batch->count || !WR_ARRAY_HAS_ROOM(&encoder->ends, &encoder->ends_room, batch->count - start))
        return false;
    if (encoder->format->shape == WEIR_FORMAT_RECORDS || limit == 0)
        limit = 1;
    uint32_t end = put_pieces(encoder, start, limit);
    encoder->count = end - start;
    const struct wr_buffer *out = &encoder->out;
    *encoded = (weir_encoded){encoder->count, out->length ? out->data : "", out->length};
    return encoder->count > 0 || start == batch->count;
}

uint32_t wr_encoder_settled(const struct wr_encoder *encoder, size_t length, size_t *end)
{
    uint32_t low = 0, high = encoder->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (encoder->ends[middle] <= length)
            low = middle + 1;
        else
            high = middle;
    }
    if (end)
        *end = low ? encoder->ends[low - 1] : 0;
    return low;
}

/* ---- Time ------------------------------------------------------------------------------------ */

uint64_t wr_encoder_set_second(struct wr_encoder *encoder, int64_t time_ns)
{
    int64_t rest_ns = time_ns % WR_NS_PER_S;
    size_t length = wr_number_put_uint(encoder->second_text, (uint64_t)(time_ns / WR_NS_PER_S));
    encoder->second_text[length] = '.';
    encoder->second_length = (unsigned)length + 1;
    encoder->second_ns = time_ns - rest_ns;
    return (uint64_t)rest_ns;
}

size_t wr_encoder_put_early_time(char *out, int64_t time_ns, int decimals)
{
    uint64_t size = -(uint64_t)time_ns;
    char rest[9];
    *out = '-';
    size_t length = 1 + wr_number_put_uint(out + 1, size / WR_NS_PER_S);
    out[length++] = '.';
    wr_number_put_padded(rest, (uint32_t)(size % WR_NS_PER_S), sizeof rest);
    memcpy(out + length, rest, (size_t)decimals);
    return length + (size_t)decimals;
}
