/* encoder: samples become bytes, for one handler. Used by that handler's worker alone.
 *
 * A format says how one event is written; the encoder keeps the bytes, remembers where each event ends, which
 * samples the format could not carry, and the constant text around each series' value, which is made only once.
 */
#ifndef WR_ENCODER_H
#define WR_ENCODER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "buffer.h"
#include "options.h"

struct wr_encoder;

struct wr_format {
    const char *name;
    const char *summary; /* one line */
    const char *content_type;
    uint32_t shape; /* WEIR_FORMAT_LINES or WEIR_FORMAT_DOCUMENTS */
    struct wr_options_table options;

    /* Appends what stands before and behind the value of each sample of a series. */
    void (*put_prefix)(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out);
    void (*put_suffix)(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out);

    /* Appends an event: samples [first, end) of encoder->batch. */
    void (*put_event)(struct wr_encoder *encoder, uint32_t first, uint32_t end);
};

/* The constant text around a series' values. */
struct wr_affixes {
    uint32_t offset; /* in encoder->affix_text; the suffix follows the prefix */
    uint32_t prefix, suffix;
    bool known;
};

struct wr_encoder {
    const struct wr_format *format;
    const void *options; /* of the format; the format's struct */
    bool color;          /* what is written goes to a terminal that shows colours */
    const weir_batch *batch;
    struct wr_buffer out;

    uint32_t first, count; /* of the batch: what `out` holds */
    uint32_t *ends;        /* for each of these: where in `out` its event ends */
    uint32_t ends_room;

    uint32_t *omitted; /* numbers of samples in the batch, rising */
    uint32_t omitted_count, omitted_room;

    struct wr_affixes *affixes; /* by series id */
    uint32_t affixes_room;
    struct wr_buffer affix_text;
    uint64_t labels; /* the number of the batch labels that the affixes were made with */

    int64_t second; /* of the digits below */
    char second_text[20];
    unsigned second_length;
};

void wr_encoder_init(struct wr_encoder *encoder, const struct wr_format *format, const void *options);
void wr_encoder_fini(struct wr_encoder *encoder);

/* A batch begins: nothing of it is left out so far. */
void wr_encoder_begin(struct wr_encoder *encoder);

/* As weir_encoder.encode. */
bool wr_encoder_encode(struct wr_encoder *encoder, const weir_batch *batch, uint32_t start, size_t limit,
                       weir_encoded *encoded);

/* As weir_encoder.settled. */
uint32_t wr_encoder_settled(const struct wr_encoder *encoder, size_t length, size_t *end);

/* How many of the batch's first `samples` samples were left out. */
uint32_t wr_encoder_count_omitted(const struct wr_encoder *encoder, uint32_t samples);

/* ---- For formats ----------------------------------------------------------------------------- */

/* Says that a sample of the batch cannot be written. */
void wr_encoder_omit(struct wr_encoder *encoder, uint32_t sample);

/* The text around the values of a sample's series; NULL without memory. Valid until the next call. */
const struct wr_affixes *wr_encoder_make_affixes(struct wr_encoder *encoder, uint32_t series);

static inline const struct wr_affixes *wr_encoder_affixes(struct wr_encoder *encoder, uint32_t series)
{
    if (series < encoder->affixes_room && encoder->affixes[series].known)
        return &encoder->affixes[series];
    return wr_encoder_make_affixes(encoder, series);
}

static inline const char *wr_encoder_prefix(const struct wr_encoder *encoder, const struct wr_affixes *affixes)
{
    return encoder->affix_text.data + affixes->offset;
}

static inline const char *wr_encoder_suffix(const struct wr_encoder *encoder, const struct wr_affixes *affixes)
{
    return encoder->affix_text.data + affixes->offset + affixes->prefix;
}

/* The metadata of a sample, or NULL. */
static inline const char *wr_encoder_note(const struct wr_encoder *encoder, const weir_sample *sample)
{
    return sample->note ? encoder->batch->notes[sample->note] : NULL;
}

/* Writes a time as seconds since 1970 with `decimals` (1 to 9) decimals, cut, not rounded; answers the length,
 * at most 32. */
size_t wr_encoder_put_time(struct wr_encoder *encoder, char *out, int64_t time_ns, int decimals);

#endif
