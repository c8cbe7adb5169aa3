/* origin: which process and which handler's lane numbered a sample.
 *
 * (origin, sequence) identifies a sample to a destination: it is the same whenever and by whichever process the
 * sample is delivered, and no other sample has it. Each lane of each process draws an origin of its own and
 * numbers what it is offered from 0. A spool and a journal store both with the samples. */
#ifndef WR_ORIGIN_H
#define WR_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* 128 random bits. */
struct wr_origin {
    unsigned char bytes[16];
};

/* The identity of one sample; that of the sample behind it, in the same range, has the next sequence. */
struct wr_sample_id {
    struct wr_origin origin;
    uint64_t sequence;
};

/* 32 lowercase hexadecimal digits and a NUL, as in weir_batch.origin. */
enum { WR_ORIGIN_TEXT = 33 };

/* Draws a new origin. Cannot fail, and never blocks. */
struct wr_origin wr_origin_new(void);

void wr_origin_put_text(const struct wr_origin *origin, char text[WR_ORIGIN_TEXT]);

static inline bool wr_origin_equal(const struct wr_origin *a, const struct wr_origin *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The identity of the sample `count` behind this one. */
static inline struct wr_sample_id wr_sample_id_behind(const struct wr_sample_id *id, uint64_t count)
{
    return (struct wr_sample_id){id->origin, id->sequence + count};
}

/* Whether `next` is the identity of the sample `count` behind `id`. */
static inline bool wr_sample_id_follows(const struct wr_sample_id *next, const struct wr_sample_id *id,
                                        uint64_t count)
{
    return wr_origin_equal(&next->origin, &id->origin) && next->sequence == id->sequence + count;
}

#endif
