/* encoder: samples become bytes, for one handler. Used by that handler's worker alone.
 *
 * A format says how one event is written; the encoder keeps the bytes, remembers where each event ends, which
 * samples the format could not carry, and the constant text around each series' value, which is made only once.
 */
#ifndef WR_ENCODER_H
#define WR_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "text/buffer.h"
#include "text/common.h"
#include "text/number.h"
#include "config/options.h"

struct wr_encoder;

struct wr_format {
    const char *name;
    const char *summary; /* one line */
    const char *content_type;
    uint32_t shape; /* one of WEIR_FORMAT_* */
    struct wr_options_table options;

    /* What is wrong with options that are each right by themselves, in words; NULL: nothing, or no need to ask.
     */
    const char *(*find_fault)(const void *options);

    /* Appends what stands before and behind the value of each sample of a series. */
    void (*put_prefix)(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out);
    void (*put_suffix)(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out);

    /* Appends samples [first, end) of encoder->batch: an event; all that is left, in a format of documents; one
     * sample, in a format of records. */
    void (*put_event)(struct wr_encoder *encoder, uint32_t first, uint32_t end);

    /* What a text of its own begins with. Static. NULL: nothing, whatever the options. */
    const char *(*header)(const void *options);

    /* Frees encoder->state; NULL: the format has none. */
    void (*free_state)(void *state);
};

/* The constant text around a series' values. */
struct wr_affixes {
    uint32_t offset; /* in encoder->affix_text; the suffix follows the prefix */
    uint32_t prefix, suffix;
    bool known;
};

/* Texts are copied in pieces of so many bytes: what stands behind them is read, and overwritten later. */
enum { WR_ENCODER_SLACK = 16 };

struct wr_encoder {
    const struct wr_format *format;
    const void *options; /* of the format; the format's struct */
    bool color;          /* what is written goes to a terminal that shows colours */
    void *state;         /* the format's own; NULL: none yet */
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

    int64_t second_ns; /* when the second began whose digits, and a dot, are below */
    char second_text[16];
    unsigned second_length;
};

void wr_encoder_init(struct wr_encoder *encoder, const struct wr_format *format, const void *options);
void wr_encoder_fini(struct wr_encoder *encoder);

/* The origin of the batch's samples. "": a plugin that was built with an older header made the batch. */
static inline const char *wr_encoder_origin(const struct wr_encoder *encoder)
{
    const weir_batch *batch = encoder->batch;
    return batch->size >= offsetof(weir_batch, origin) + sizeof batch->origin ? batch->origin : "";
}

/* A batch begins: nothing of it is left out so far. */
void wr_encoder_begin(struct wr_encoder *encoder);

/* As weir_encoder.encode. */
bool wr_encoder_encode(struct wr_encoder *encoder, const weir_batch *batch, uint32_t start, size_t limit,
                       weir_encoded *encoded);

/* As weir_encoder.settled. */
uint32_t wr_encoder_settled(const struct wr_encoder *encoder, size_t length, size_t *end);

/* As weir_encoder.header. */
const char *wr_encoder_header(const struct wr_encoder *encoder);

/* What a shape is called where formats are described: "lines". */
const char *wr_encoder_shape_name(uint32_t shape);

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

/* Copies a text into `out`, where there must be WR_ENCODER_SLACK bytes more than it needs; answers where it
 * ends. from: of the affixes. */
static inline char *wr_encoder_copy(char *to, const char *from, size_t length)
{
    for (size_t done = 0; done < length; done += WR_ENCODER_SLACK)
        memcpy(to + done, from + done, WR_ENCODER_SLACK);
    return to + length;
}

/* Takes the second of a time that is not negative for those to come; answers the rest of it. */
uint64_t wr_encoder_set_second(struct wr_encoder *encoder, int64_t time_ns);

/* wr_encoder_put_time for times before 1970. */
size_t wr_encoder_put_early_time(char *out, int64_t time_ns, int decimals);

/* Writes a time as seconds since 1970 with `decimals` (1 to 9) decimals, cut, not rounded; answers the length,
 * at most 32. */
static inline size_t wr_encoder_put_time(struct wr_encoder *encoder, char *out, int64_t time_ns, int decimals)
{
    static const uint32_t units_ns[] = {0, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1};
    uint64_t rest_ns = (uint64_t)time_ns - (uint64_t)encoder->second_ns;
    if (WR_UNLIKELY(rest_ns >= (uint64_t)WR_NS_PER_S)) {
        if (time_ns < 0)
            return wr_encoder_put_early_time(out, time_ns, decimals);
        rest_ns = wr_encoder_set_second(encoder, time_ns);
    }
    memcpy(out, encoder->second_text, sizeof encoder->second_text);
    wr_number_put_padded(out + encoder->second_length, (uint32_t)rest_ns / units_ns[decimals], decimals);
    return encoder->second_length + (size_t)decimals;
}

#endif
