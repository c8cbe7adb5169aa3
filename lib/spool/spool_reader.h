/* spool_reader: makes sense of a file of a spool, which lies in memory whole.
 *
 * What it is given may be torn or damaged in any way: it finds the parts that are sound, and tells how many
 * samples are missing between them. Series are interned anew: what comes out has the ids of this process. */
#ifndef WR_SPOOL_READER_H
#define WR_SPOOL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/labels.h"
#include "registry/registry.h"
#include "segment/segment.h"

enum wr_spool_part_kind {
    WR_SPOOL_PART_GOOD,      /* samples that can be had */
    WR_SPOOL_PART_LOST,      /* samples that were here and cannot be had */
    WR_SPOOL_PART_END,       /* nothing more */
    WR_SPOOL_PART_NO_MEMORY, /* to make sense of it; the reader has to begin anew */
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
    size_t at;      /* behind the last part that was taken */
    uint32_t index; /* samples before that */
    struct wr_registry *registry;
    uint64_t *labels_made;        /* counts label sets, whose numbers must differ */
    uint32_t *series;             /* ids by the file's numbers, plus 1; 0: not known */
    uint32_t series_count;        /* numbers from here on were not seen */
    struct wr_label_set **labels; /* by the file's numbers minus 1; NULL: not known */
    uint32_t label_sets;
    bool damaged; /* something was torn, damaged or senseless */
    bool no_memory;
    struct wr_spool_part part; /* the next one, once it was looked at */
    size_t part_end;
    bool looked;
};

/* The data must stay as long as the reader does. */
void wr_spool_reader_init(struct wr_spool_reader *reader, const char *data, size_t size,
                          struct wr_registry *registry, uint64_t *labels_made);
void wr_spool_reader_fini(struct wr_spool_reader *reader);

/* The next part. Borrowed, until it is taken. */
const struct wr_spool_part *wr_spool_reader_look(struct wr_spool_reader *reader);

/* Goes on behind the part that was looked at. */
void wr_spool_reader_take(struct wr_spool_reader *reader);

/* Appends the samples of a good part, but for the first `skip`, to a segment that has room for them. false: no
 * memory, and the segment is of no use. */
bool wr_spool_reader_load(const struct wr_spool_reader *reader, const struct wr_spool_part *part, uint32_t skip,
                          struct wr_segment *segment);

/* How many samples a file holds, as far as its headers tell. */
uint32_t wr_spool_reader_measure(const char *data, size_t size);

#endif
