/* spool_block: how a file of a spool is laid out.
 *
 *     head, the handler's name | block | block | ...
 *
 * A file is self-contained: each series and each set of labels is defined by a block before the first block of
 * samples that refers to it, with numbers that are local to the file. A sample is the same 32 bytes everywhere,
 * except for these numbers. Head and blocks have checksums and begin at multiples of 8 bytes, so that a reader
 * finds the block behind a damaged one. Integers have the byte order of the machine. Reserved fields are 0.
 *
 * This module knows the bytes; spool_writer and spool_reader know what they mean. */
#ifndef WR_SPOOL_BLOCK_H
#define WR_SPOOL_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/origin.h"
#include "text/buffer.h"

/* Version 2 added to each block the origin and the sequence of its first sample, version 3 summaries. */
enum { WR_SPOOL_BLOCK_VERSION = 4 };

/* ---- The head -------------------------------------------------------------------------------- */

/* Who wrote a file. */
struct wr_spool_writer_info {
    const char *handler;
    uint32_t pid;
    int64_t created_ns; /* wall time */
    uint64_t position;  /* the lane's position of the file's first sample, in the process that wrote it */
};

/* How many samples at the front of a file are settled. The only part of a file that is overwritten. */
struct wr_spool_mark {
    uint32_t settled, check;
};

/* Appends a head. */
void wr_spool_block_put_head(struct wr_buffer *out, const struct wr_spool_writer_info *info);

/* Reads the head of a file, of which the first `size` bytes are given. Returns false if it is damaged or of
 * another version. *length: where blocks begin; info->handler points into `data`, and ends with a NUL. */
bool wr_spool_block_read_head(const char *data, size_t size, struct wr_spool_writer_info *info, size_t *length);

/* Returns the version of a file whose head is undamaged, or 0. The head's layout is that of all versions. */
uint32_t wr_spool_block_read_version(const char *data, size_t size);

/* The mark, and its offset in a file. A damaged mark reads as 0: settled samples are delivered again. */
extern const size_t wr_spool_block_mark_offset;
struct wr_spool_mark wr_spool_block_mark(uint32_t settled);
uint32_t wr_spool_block_read_mark(const char *data, size_t size);

/* ---- Blocks ---------------------------------------------------------------------------------- */

enum wr_spool_block_kind {
    WR_SPOOL_BLOCK_SERIES = 1, /* defines series `first` to before first + count */
    WR_SPOOL_BLOCK_LABELS = 2, /* defines label set `first`, of `count` labels */
    WR_SPOOL_BLOCK_SAMPLES = 3 /* samples `first` to before first + count of the file */
};

struct wr_spool_block {
    uint32_t magic;
    uint32_t kind;   /* enum wr_spool_block_kind */
    uint32_t length; /* of the payload that follows: a multiple of 8 */
    uint32_t payload_check;
    uint32_t first, count;
    uint32_t labels; /* SAMPLES: the number of their label set; 0: none */
    uint32_t notes;  /* SAMPLES: number of texts behind the records */
    /* SAMPLES: of the first one; the others follow without a gap */
    uint64_t position; /* the lane's, in the process that wrote it */
    struct wr_sample_id id;
    uint64_t values;   /* SAMPLES: how many they are */
    uint32_t reserved; /* 0 */
    uint32_t check;    /* of all before */
};

/* Reserves a block's header and returns its offset. The caller appends the payload and then calls `end`, which
 * pads it and writes the header with lengths and checksums. */
size_t wr_spool_block_begin(struct wr_buffer *out);
void wr_spool_block_end(struct wr_buffer *out, size_t start, const struct wr_spool_block *block);

/* Finds the first undamaged header at or behind `at`: sets *block and returns its offset, or `size` if there is
 * none. Its payload may be damaged, or extend beyond the end. */
size_t wr_spool_block_find(const char *data, size_t size, size_t at, struct wr_spool_block *block);

/* Whether the payload of the header at `at` is complete and undamaged. */
bool wr_spool_block_is_whole(const char *data, size_t size, size_t at, const struct wr_spool_block *block);

/* Whether the file ends in the middle of what begins at `at`, a block or (at 0) the head: its process died
 * while it wrote that, or before it wrote anything. Nobody has counted its samples as spooled. */
bool wr_spool_block_is_cut_off(const char *data, size_t size, size_t at);

/* ---- Definitions ----------------------------------------------------------------------------- */

/* Precedes the texts of a series: see series_codec.h. */
struct wr_spool_series {
    uint16_t flags;
    uint16_t labels;
};

#endif
