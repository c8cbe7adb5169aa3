/* compress: compresses one old file in slices, so that nothing else waits for long.
 *
 * The data is written to PATH.gz.tmp, whose lock identifies the process that does this. When all of it is on
 * disk, it is renamed to PATH.gz, and only then PATH is deleted: if the process or the machine crashes, at
 * least one of the two is complete. */
#ifndef FILE_COMPRESS_H
#define FILE_COMPRESS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include <weir/handler.h>

#include "../system.h"

struct archive_file;
struct z_stream_s;

enum compress_state {
    COMPRESS_WORKING, /* not finished: call wr_compress_step */
    COMPRESS_DONE,    /* finished, nothing to do, or another process does it */
    COMPRESS_FAILED,  /* failed; the partial file is deleted; see `error` */
};

struct compression {
    const weir_host *host;
    struct z_stream_s *stream; /* NULL: idle */
    unsigned char *buffer;
    struct wr_own_fd in, out;
    char path[PATH_MAX], partial_path[PATH_MAX + 8], gz_path[PATH_MAX + 32];
    off_t done; /* bytes read of the original */
    int error;
};

/* Whether this build can compress. If not, the other functions must not be called. */
bool wr_compress_is_available(void);

void wr_compress_init(struct compression *compression, const weir_host *host);

enum compress_state wr_compress_begin(struct compression *compression, const struct archive_file *file);
enum compress_state wr_compress_step(struct compression *compression);

static inline bool wr_compress_is_busy(const struct compression *compression)
{
    return compression->stream;
}

/* Aborts: releases the file and deletes the partial file, unless the program has closed it. */
void wr_compress_stop(struct compression *compression);

/* [fork] */
void wr_compress_abandon(const struct compression *compression);

#endif
