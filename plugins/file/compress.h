/* compress: compresses one old file, a slice at a time, so that nothing else has to wait for long.
 *
 * What is half done is in PATH.gz.tmp, whose lock says which process is at it. It gets its name when all of it
 * is on the disk, and only then PATH is deleted: whenever a process or a machine dies, one of the two is whole.
 */
#ifndef FILE_COMPRESS_H
#define FILE_COMPRESS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include <weir/handler.h>

struct archive_file;
struct z_stream_s;

enum compress_state {
    COMPRESS_WORKING, /* there is more to do */
    COMPRESS_DONE,    /* or there was nothing to do, or somebody else is at it */
    COMPRESS_FAILED,  /* what is half done is deleted; compress->problem tells why */
};

struct compress {
    const weir_host *host;
    struct z_stream_s *stream; /* NULL: at no file */
    unsigned char *room;
    int in, out;
    char path[PATH_MAX], half[PATH_MAX + 8], packed[PATH_MAX + 32];
    off_t done; /* bytes read */
    int problem;
};

/* Whether this build can compress at all; the other functions are called only if it can. */
bool wr_compress_is_built(void);

void wr_compress_init(struct compress *compress, const weir_host *host);

enum compress_state wr_compress_begin(struct compress *compress, const struct archive_file *file);
enum compress_state wr_compress_go_on(struct compress *compress);

static inline bool wr_compress_is_busy(const struct compress *compress)
{
    return compress->stream;
}

/* Lets go of the file, and deletes what is half done. */
void wr_compress_stop(struct compress *compress);

/* [fork] */
void wr_compress_abandon(const struct compress *compress);

#endif
