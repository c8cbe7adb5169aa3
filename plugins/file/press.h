/* press: compresses one old file, a slice at a time, so that nothing else has to wait for long.
 *
 * What is half done is in PATH.gz.tmp, whose lock says which process is at it. It gets its name when all of it
 * is on the disk, and only then PATH is deleted: whenever a process or a machine dies, one of the two is whole.
 */
#ifndef FILE_PRESS_H
#define FILE_PRESS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include <weir/handler.h>

struct attic_file;
struct z_stream_s;

enum press_state {
    PRESS_WORKING, /* there is more to do */
    PRESS_DONE,    /* or there was nothing to do, or somebody else is at it */
    PRESS_FAILED,  /* what is half done is deleted; press->problem tells why */
};

struct press {
    const weir_host *host;
    struct z_stream_s *stream; /* NULL: at no file */
    unsigned char *room;
    int in, out;
    char path[PATH_MAX], half[PATH_MAX + 8], packed[PATH_MAX + 32];
    off_t done; /* bytes read */
    int problem;
};

/* Whether this build can compress at all; the other functions are called only if it can. */
bool wr_press_is_built(void);

void wr_press_init(struct press *press, const weir_host *host);

enum press_state wr_press_begin(struct press *press, const struct attic_file *file);
enum press_state wr_press_go_on(struct press *press);

static inline bool wr_press_is_busy(const struct press *press)
{
    return press->stream;
}

/* Lets go of the file, and deletes what is half done. */
void wr_press_stop(struct press *press);

/* [fork] */
void wr_press_abandon(const struct press *press);

#endif
