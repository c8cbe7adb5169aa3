/* forward_wire: the frames between a handler `forward` and a source `forward`. doc/forward.md describes them.
 *
 * A frame is a header of 8 bytes, which are the length of its payload (32 bits), its type (8 bits) and zeros,
 * and the payload. Numbers are little-endian. A text is its length (16 bits), its bytes, and a NUL that is not
 * counted, so that a decoded text is used where it lies. */
#ifndef FORWARD_WIRE_H
#define FORWARD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "text/buffer.h"

enum {
    WIRE_MAJOR = 1, /* another one is refused */
    WIRE_MINOR = 2,
    WIRE_MINOR_WEIGHTS = 1, /* of a receiver that knows WEIGHTS */
    WIRE_HEADER = 8,
    WIRE_ID = 16,              /* bytes of a process's id, and of an origin */
    WIRE_DEPTH = 8,            /* through how many processes values may come */
    WIRE_PATH = 64,            /* ids of a path */
    WIRE_NAME = 255,           /* bytes of the names of a process, a machine and a handler */
    WIRE_TOKEN = 512,          /* bytes of a token */
    WIRE_REASON = 511,         /* bytes of a reason */
    WIRE_LABELS = 256,         /* labels of a series */
    WIRE_SERIES = 100000,      /* ids of series: 0 to this - 1 */
    WIRE_SLOTS = 1000,         /* samples of a block, less one for each 32 bytes of metadata */
    WIRE_HELLO_MOST = 4096,    /* the longest payloads: of HELLO, and of all that comes before it is accepted */
    WIRE_PAYLOAD = 512 * 1024, /* of all others */
};

enum wire_type {
    WIRE_HELLO = 1,   /* from the sender, once, first */
    WIRE_WELCOME = 2, /* the reply */
    WIRE_SERIES_IS = 3,
    WIRE_BLOCK = 4,
    WIRE_ACK = 5, /* one for each block, in their order */
    WIRE_REFUSE = 6,
    WIRE_BYE = 7,     /* the sender's last frame */
    WIRE_PATH_IS = 8, /* from the sender, when its path has changed */
    WIRE_WEIGHTS = 9, /* from the sender, before a block with samples that are not one value each */
};

enum wire_ack { WIRE_ACK_STORED = 0, WIRE_ACK_TAKEN = 1 };

/* What became of a block. */
enum wire_state {
    WIRE_IS_TAKEN = 0,
    WIRE_IS_STORED = 1,
    WIRE_IS_DELIVERED = 2,
    WIRE_IS_DROPPED = 3, /* taken over, and dropped by the receiver, which counts it */
};

/* ---- What is in the frames ------------------------------------------------------------------- */

/* The processes whose values the sender may pass on. */
struct wire_path {
    /* through how many processes they may have come, the sender included; 0: it has its own only */
    uint8_t depth;
    uint8_t count;
    uint8_t ids[WIRE_PATH][WIRE_ID];
};

/* Of values. */
struct wire_totals {
    uint64_t sent; /* in blocks of this connection; when in a block, it is included */
    /* the ledger of the sender's handler, since its process began or it took leave the last time */
    uint64_t added, recovered, delivered, lost; /* what is neither delivered nor lost waits */
};

struct wire_hello {
    uint16_t major, minor;
    uint8_t ack;         /* enum wire_ack */
    uint8_t id[WIRE_ID]; /* of the sender's process */
    struct wire_path path;
    uint32_t pid;
    const char *process, *machine, *handler, *token; /* never NULL */
    struct wire_totals totals;
};

struct wire_welcome {
    uint16_t major, minor;
    uint8_t id[WIRE_ID]; /* of the receiver's process */
    bool is_late; /* it has no journal, and acknowledges as stored what an interval of `aggregate` has summed up
                   */
};

struct wire_series {
    uint32_t id; /* one that was used before means this series from now on */
    uint8_t instrument;
    bool is_cumulative;
    const char *group, *name, *unit, *help; /* unit, help: "": not known */
    size_t label_count;
    weir_label labels[WIRE_LABELS];
};

struct wire_sample {
    uint32_t series;
    uint8_t kind; /* WEIR_KIND_DOUBLE or WEIR_KIND_INT */
    bool more;    /* the next one belongs to the same event */
    int64_t time_ns;
    uint64_t bits; /* of the value */
    const char *text;
    uint32_t text_length; /* 0: none */
};

struct wire_block {
    char origin[2 * WIRE_ID + 1];
    uint64_t sequence; /* of the first sample */
    struct wire_totals totals;
    uint32_t count;
    struct wire_sample samples[WIRE_SLOTS];
};

/* Of how many values the samples of the next block are in the sender's ledger. */
struct wire_weights {
    uint32_t count;
    uint64_t values[WIRE_SLOTS];
};

struct wire_acknowledgement {
    char origin[2 * WIRE_ID + 1];
    uint64_t sequence, end; /* of the block */
    uint32_t refused;       /* how many samples of it the receiver does not take */
    uint8_t state;          /* enum wire_state */
};

struct wire_frame {
    uint8_t type;
    const uint8_t *payload;
    uint32_t length;
};

/* ---- Encoding -------------------------------------------------------------------------------- */

void wr_wire_put_hello(struct wr_buffer *buffer, const struct wire_hello *hello);
void wr_wire_put_welcome(struct wr_buffer *buffer, const struct wire_welcome *welcome);
/* Returns false, with nothing put, if the series is longer than allowed. */
bool wr_wire_put_series(struct wr_buffer *buffer, const struct wire_series *series);
void wr_wire_put_ack(struct wr_buffer *buffer, const struct wire_acknowledgement *ack);
void wr_wire_put_refuse(struct wr_buffer *buffer, const char *reason);
void wr_wire_put_path(struct wr_buffer *buffer, const struct wire_path *path);
void wr_wire_put_weights(struct wr_buffer *buffer, const uint64_t *values, uint32_t count);
void wr_wire_put_bye(struct wr_buffer *buffer, const struct wire_totals *totals);

/* A block is begun, gets samples, and is ended. begin returns what end needs. origin: 32 hexadecimal digits. */
size_t wr_wire_begin_block(struct wr_buffer *buffer, const char *origin, uint64_t sequence);
void wr_wire_put_sample(struct wr_buffer *buffer, const struct wire_sample *sample);
/* The same of samples that are events of their own, without metadata. ids: by weir_sample.series, the id on the
 * wire + 1. */
void wr_wire_put_plain(struct wr_buffer *buffer, const weir_sample *samples, uint32_t count,
                       const uint32_t *ids);
void wr_wire_end_block(struct wr_buffer *buffer, size_t begin, uint32_t count,
                       const struct wire_totals *totals);

/* How many slots a sample with that much metadata needs. */
static inline uint32_t wr_wire_slots(uint64_t text_length)
{
    return 1 + (uint32_t)((text_length + 31) / 32);
}

/* ---- Decoding -------------------------------------------------------------------------------- */

/* Finds the frame at the begin of `length` bytes. Returns its length with its header; 0: it is not complete.
 * *fault: what is wrong, or NULL; most: the longest payload that is allowed. */
size_t wr_wire_find(const uint8_t *data, size_t length, uint32_t most, struct wire_frame *frame,
                    const char **fault);

/* These return what is wrong with the payload, or NULL. What is decoded borrows from it. Of HELLO and WELCOME
 * of another major version only the versions are set. */
const char *wr_wire_get_hello(const struct wire_frame *frame, struct wire_hello *hello);
const char *wr_wire_get_welcome(const struct wire_frame *frame, struct wire_welcome *welcome);
const char *wr_wire_get_series(const struct wire_frame *frame, struct wire_series *series);
const char *wr_wire_get_block(const struct wire_frame *frame, struct wire_block *block);
const char *wr_wire_get_ack(const struct wire_frame *frame, struct wire_acknowledgement *ack);
const char *wr_wire_get_refuse(const struct wire_frame *frame, const char **reason);
const char *wr_wire_get_path(const struct wire_frame *frame, struct wire_path *path);
const char *wr_wire_get_weights(const struct wire_frame *frame, struct wire_weights *weights);
const char *wr_wire_get_bye(const struct wire_frame *frame, struct wire_totals *totals);

#endif
