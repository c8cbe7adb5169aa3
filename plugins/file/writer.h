/* writer: puts lines into the target, whole, and has it rotated between them. */
#ifndef FILE_WRITER_H
#define FILE_WRITER_H

#include <weir/handler.h>

#include "rotation.h"
#include "settings.h"
#include "output_file.h"

struct writer {
    const struct settings *settings;
    const weir_encoder *encoder;
    struct output_file target;
    struct rotation rotation;
};

void wr_writer_init(struct writer *writer, const weir_host *host, const struct settings *settings);

/* How many bytes to encode at once. */
size_t wr_writer_chunk(const struct writer *writer);

/* Writes what was encoded, or a part of it; *settled: how many samples of it are in the file, whole. 0, or
 * errno. */
int wr_writer_write(struct writer *writer, const weir_encoded *encoded, uint32_t *settled);

#endif
