/* writer: writes whole lines to the output file and rotates it between lines. */
#ifndef FILE_WRITER_H
#define FILE_WRITER_H

#include <weir/handler.h>

#include "rotation.h"
#include "settings.h"
#include "output_file.h"

struct writer {
    const struct settings *settings;
    const weir_encoder *encoder;
    struct output_file output;
    struct rotation rotation;
};

void wr_writer_init(struct writer *writer, const weir_host *host, const struct settings *settings);

/* How many bytes to encode at a time. */
size_t wr_writer_chunk(const struct writer *writer);

/* Writes the encoded values or some of them. *settled: number of samples that were completely written.
 * Returns 0 or errno. */
int wr_writer_write(struct writer *writer, const weir_encoded *encoded, uint32_t *settled);

#endif
