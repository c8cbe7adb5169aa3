/* spool_writer: encodes samples as blocks of a spool's file, with the definitions that the file lacks. */
#ifndef WR_SPOOL_WRITER_H
#define WR_SPOOL_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "text/buffer.h"
#include "registry/labels.h"
#include "segment/queue.h"
#include "registry/registry.h"

/* The number that a series has in a file. */
struct wr_spool_number {
    uint32_t file; /* wr_spool_writer.file */
    uint32_t number;
};

/* All zeros but for the registry: no file begun. */
struct wr_spool_writer {
    const struct wr_registry *registry;
    struct wr_spool_number *numbers; /* by series id */
    uint32_t numbers_room;
    uint32_t file;            /* number of the current one, from 1 */
    uint32_t series, samples; /* in the file */
    uint32_t label_sets;
    uint64_t labels;   /* number of the last set that was defined; 0: none */
    uint64_t releases; /* see wr_reuse_releases, when the numbers were given */
};

void wr_spool_writer_fini(struct wr_spool_writer *writer);

/* Begins a new file, in which nothing is defined. */
void wr_spool_writer_begin(struct wr_spool_writer *writer);

/* Appends the blocks of a range of whole events; labels: the configuration's, NULL: none. Returns false if out
 * of memory; the caller must begin a new file then. */
bool wr_spool_writer_put(struct wr_spool_writer *writer, const struct wr_range *range,
                         const struct wr_label_set *labels, struct wr_buffer *out);

#endif
