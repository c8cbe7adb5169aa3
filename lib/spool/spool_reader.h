/* spool_reader: reads a file of a spool, which is in memory as a whole.
 *
 * The file may be damaged in any way: the reader finds the undamaged parts, and how many samples are missing
 * between them. A last block whose end is missing is no damage: its process died while it wrote the block.
 * Series are interned in this process, and samples loaded with its ids. Of a summary whose series would have to
 * be shared with others, as the limits leave no room for it, the flag WR_SAMPLE_NO_ROOM is set: the totals of
 * several series are no total. Other values are shared as those that are added are. */
#ifndef WR_SPOOL_READER_H
#define WR_SPOOL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/labels.h"
#include "registry/registry.h"
#include "segment/segment.h"
#include "segment/series_codec.h"

enum wr_spool_part_kind {
    WR_SPOOL_PART_GOOD,      /* samples that can be loaded */
    WR_SPOOL_PART_LOST,      /* damaged or missing samples */
    WR_SPOOL_PART_END,       /* the end of the file */
    WR_SPOOL_PART_NO_MEMORY, /* out of memory; the file has to be read again from the start */
};

/* Samples of one block, or what is missing before it. */
struct wr_spool_part {
    enum wr_spool_part_kind kind;
    uint32_t first, count;       /* in the file */
    struct wr_sample_id id;      /* of the first one. GOOD only, as all that follows */
    uint64_t position;           /* of the first one, in the lane of the process that wrote it */
    struct wr_label_set *labels; /* borrowed; NULL: none */
    const char *payload;
    size_t length;
};

struct wr_spool_reader {
    const char *data;
    size_t size;
    size_t at;      /* offset behind the last part that was taken */
    uint32_t index; /* samples before that */
    struct wr_registry *registry;
    uint64_t *labels_made;                /* counts label sets, to give each a number of its own */
    struct wr_series_codec_place *series; /* by the file's numbers; number 0: not defined */
    uint32_t series_count;                /* length of `series` */
    uint64_t releases;                    /* see wr_reuse_releases, when it began: `series` is of then */
    struct wr_label_set **labels;         /* by the file's numbers minus 1; NULL: not defined */
    uint32_t label_sets;
    bool damaged; /* something was damaged, invalid, or missing in the middle */
    bool no_memory;
    struct wr_spool_part part; /* the next one, if `looked` */
    size_t part_end;
    bool looked;
};

/* The data is borrowed until `fini`. */
void wr_spool_reader_init(struct wr_spool_reader *reader, const char *data, size_t size,
                          struct wr_registry *registry, uint64_t *labels_made);
void wr_spool_reader_fini(struct wr_spool_reader *reader);

/* Returns the next part, borrowed until it is taken. */
const struct wr_spool_part *wr_spool_reader_look(struct wr_spool_reader *reader);

/* Moves behind the part that wr_spool_reader_look returned. */
void wr_spool_reader_take(struct wr_spool_reader *reader);

/* Appends the samples of a GOOD part, without the first `skip`, to a segment with room for them. Returns false
 * if out of memory; the segment is incomplete then. */
bool wr_spool_reader_load(const struct wr_spool_reader *reader, const struct wr_spool_part *part, uint32_t skip,
                          struct wr_segment *segment);

/* Returns how many samples a file holds, according to its block headers, without a block that is cut off.
 * *values: of those that are not settled; one that is damaged counts as one. *damaged: there is something else
 * than blocks between the head and the end. */
uint32_t wr_spool_reader_measure(const char *data, size_t size, uint32_t settled, uint64_t *values,
                                 bool *damaged);

#endif
