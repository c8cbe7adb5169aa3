/* encoder: converts samples to bytes of a format, for one handler. Thread: the handler's worker.
 *
 * A format writes one event at a time. The encoder holds the output, the end of each event in it, the samples
 * that the format could not represent, and the constant text around the values of each series, which is made
 * once. */
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

/* How a format wants summaries to be taken apart: see handler/parts. */
enum {
    WR_WANTS_INSTANCE = 1u << 0, /* with the label `instance`: the destination stores one value for a series and
                                    time, or one for a series */
    WR_WANTS_DELTAS = 1u << 1,   /* what came in the interval, in place of running totals */
    WR_WANTS_NO_BUCKETS = 1u << 2, /* the format writes no labels, so buckets would look alike */
    WR_WANTS_WHOLE = 1u << 3,      /* not at all, except for those of values without an instrument */
    WR_WANTS_STATSD = 1u << 4,     /* as the server StatsD does; there is nothing for plain values */
    WR_WANTS_RANKS = 1u << 5,      /* with WHOLE: histograms with their sketches, not only their buckets */
};

/* A bit of weir_sample.flags, of parts: the value adds to the ones before, as an increment of a counter does.
 */
enum { WR_SAMPLE_INCREMENT = 1u << 15 };

struct wr_format {
    const char *name;
    const char *summary; /* one line */
    const char *content_type;
    uint32_t shape; /* one of WEIR_FORMAT_* */
    struct wr_options_table options;

    /* Checks options that depend on each other. Returns an error message, static, or NULL if they are valid.
     * May be NULL. */
    const char *(*find_fault)(const void *options);

    /* Returns the content type, if it depends on the options. Static. May be NULL. */
    const char *(*choose_content_type)(const void *options);

    /* WR_WANTS_*, and those that depend on the options. May be NULL: 0. */
    uint32_t wants;
    uint32_t (*wanted)(const void *options);

    /* Append the constant text before and after the value of each sample of a series. put_suffix may be NULL,
     * and put_prefix in a format that does not use affixes. */
    void (*put_prefix)(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out);
    void (*put_suffix)(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out);

    /* Appends samples [first, end) of encoder->batch: one event, or a part of one that is too long for a line;
     * in a format of documents all remaining samples; in a format of records one sample. */
    void (*put_event)(struct wr_encoder *encoder, uint32_t first, uint32_t end);

    /* Returns the text that each file or request starts with. Static. May be NULL: none. */
    const char *(*header)(const void *options);

    /* Returns encoder->state, on the configuring thread; NULL: out of memory, put_event tries again. May be
     * NULL: put_event makes it. */
    void *(*make_state)(const void *options);

    /* Frees encoder->state; NULL if the format has none. */
    void (*free_state)(void *state);
};

/* The constant text around the values of a series. */
struct wr_affixes {
    uint32_t offset; /* in encoder->affix_text; the suffix follows the prefix */
    uint32_t prefix, suffix;
    uint32_t mark; /* the format's own, 1 at first; 0: the text is not made yet */
};

/* wr_encoder_copy copies in pieces of so many bytes. Up to so many bytes after a text are read and written. */
enum { WR_ENCODER_SLACK = 16 };

struct wr_encoder {
    const struct wr_format *format;
    const void *options; /* the format's options struct */
    bool color;          /* the output is shown on a terminal with colours */
    size_t line_limit;   /* longer lines are split between samples; 0: no limit */
    void *state;         /* private to the format; NULL: not created yet */
    const weir_batch *batch;
    bool fixed; /* it must not allocate */
    struct wr_buffer out;

    uint32_t first, count; /* the samples of the batch that `out` holds */
    uint32_t *ends;        /* for each of them: the end of its event in `out` */
    uint32_t ends_room;

    uint32_t *omitted; /* indexes of samples in the batch, ascending */
    uint32_t omitted_count, omitted_room;

    struct wr_affixes *affixes; /* by series id */
    uint32_t affixes_room;
    struct wr_buffer affix_text;
    uint64_t labels;        /* number of the label set that the affixes contain */
    uint64_t redefinitions; /* what the registry had counted when they were begun */

    int64_t second_ns; /* start of the second whose digits and a dot are in second_text */
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

/* Starts a new batch: forgets the samples that were omitted. */
void wr_encoder_begin(struct wr_encoder *encoder);

/* From here on it does not allocate or free memory (true), or may again (false): encoding fails where it would
 * have to. */
void wr_encoder_set_fixed(struct wr_encoder *encoder, bool fixed);

/* As weir_encoder.encode. */
bool wr_encoder_encode(struct wr_encoder *encoder, const weir_batch *batch, uint32_t start, size_t limit,
                       weir_encoded *encoded);

/* As weir_encoder.settled. */
uint32_t wr_encoder_settled(const struct wr_encoder *encoder, size_t length, size_t *end);

/* As weir_encoder.content_type. */
const char *wr_encoder_content_type(const struct wr_encoder *encoder);

/* As weir_encoder.header. */
const char *wr_encoder_header(const struct wr_encoder *encoder);

/* Returns the name of a shape in documents and messages, like "lines". */
const char *wr_encoder_shape_name(uint32_t shape);

/* Returns how many of the first `samples` samples of the batch were omitted. */
uint32_t wr_encoder_count_omitted(const struct wr_encoder *encoder, uint32_t samples);

/* ---- For formats ----------------------------------------------------------------------------- */

/* Marks a sample of the batch as one that the format cannot represent. */
void wr_encoder_omit(struct wr_encoder *encoder, uint32_t sample);

/* Returns the constant text of a series. NULL if out of memory. Valid until the next call. */
const struct wr_affixes *wr_encoder_make_affixes(struct wr_encoder *encoder, uint32_t series);

static inline const struct wr_affixes *wr_encoder_affixes(struct wr_encoder *encoder, uint32_t series)
{
    if (series < encoder->affixes_room && encoder->affixes[series].mark)
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

/* Copies the affixes of a series, which making those of another one may move. Returns false if out of memory,
 * and sets encoder->out.failed. */
bool wr_encoder_copy_affixes(struct wr_encoder *encoder, const weir_sample *sample, struct wr_affixes *affixes);

bool wr_encoder_has_same_suffix(const struct wr_encoder *encoder, const struct wr_affixes *a,
                                const struct wr_affixes *b);

/* Appends the prefix and the value, a double with a point or an exponent: where the first value of a name
 * decides how a destination stores all of them, 1 would make it an integer. */
void wr_encoder_put_repr(struct wr_encoder *encoder, const weir_sample *sample,
                         const struct wr_affixes *affixes);

/* Appends the labels of a series and of its batch, behind the text `before`, as a JSON object whose keys
 * put_key writes; nothing if there are none. */
void wr_encoder_put_labels(const struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out,
                           const char *before, void (*put_key)(struct wr_buffer *out, const char *key));

/* Returns the metadata of a sample, or NULL. */
static inline const char *wr_encoder_note(const struct wr_encoder *encoder, const weir_sample *sample)
{
    return sample->note ? encoder->batch->notes[sample->note] : NULL;
}

/* Copies a prefix or suffix into `out`, where WR_ENCODER_SLACK bytes more than its length must be reserved.
 * Returns its end. */
static inline char *wr_encoder_copy(char *to, const char *from, size_t length)
{
    for (size_t done = 0; done < length; done += WR_ENCODER_SLACK)
        memcpy(to + done, from + done, WR_ENCODER_SLACK);
    return to + length;
}

/* Caches the text of the second of a time, which must not be negative. Returns the nanoseconds within it. */
uint64_t wr_encoder_set_second(struct wr_encoder *encoder, int64_t time_ns);

/* As wr_encoder_put_time, for times before 1970. */
size_t wr_encoder_put_early_time(char *out, int64_t time_ns, int decimals);

/* Writes a time in seconds since 1970 with `decimals` (1 to 9) decimals, truncated. Returns the length, at
 * most 32.
 */
static inline size_t wr_encoder_put_time(struct wr_encoder *encoder, char *out, int64_t time_ns, int decimals)
{
    static const uint32_t units_ns[] = {0, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1};
    uint64_t rest_ns = (uint64_t)time_ns - (uint64_t)encoder->second_ns;
    /* both: in the last second that there is, the earliest times are less than a second away */
    if (WR_UNLIKELY(rest_ns >= (uint64_t)WR_NS_PER_S || time_ns < 0)) {
        if (time_ns < 0)
            return wr_encoder_put_early_time(out, time_ns, decimals);
        rest_ns = wr_encoder_set_second(encoder, time_ns);
    }
    memcpy(out, encoder->second_text, sizeof encoder->second_text);
    wr_number_put_padded(out + encoder->second_length, (uint32_t)rest_ns / units_ns[decimals], decimals);
    return encoder->second_length + (size_t)decimals;
}

#endif
