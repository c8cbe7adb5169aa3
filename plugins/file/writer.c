#include "writer.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 128 * 1024, TRIES = 1000 };

void wr_writer_init(struct writer *writer, const weir_host *host, const struct settings *settings)
{
    *writer = (struct writer){.settings = settings, .encoder = host->service(host, WEIR_SERVICE_ENCODER)};
    wr_output_file_init(&writer->target, host, settings);
    wr_rotation_init(&writer->rotation, settings);
}

/* Not more than fits into an empty file: then what does not fit there is a single event. */
size_t wr_writer_chunk(const struct writer *writer)
{
    int64_t size = writer->settings->options->rotate_size, header = (int64_t)writer->settings->header_length;
    if (!size || size - header >= CHUNK)
        return CHUNK;
    return size > header ? (size_t)(size - header) : 1;
}

/* ---- Getting in ------------------------------------------------------------------------------ */

/* A file that others may put aside is left as soon as they have, and any file once it is deleted: old files
 * that were compressed are. */
static bool is_good(const struct writer *writer, struct stat *status)
{
    const struct output_file *target = &writer->target;
    if (fstat(target->fd, status) != 0)
        return false;
    if (!target->regular)
        return true;
    return writer->settings->rotates ? wr_output_file_is_in_place(target) : status->st_nlink > 0;
}

/* Locks the file that is to be written to. Writes may go on side by side, but for those before which the file's
 * end is looked at. 0, or errno. */
static int enter(struct writer *writer, struct stat *status)
{
    struct output_file *target = &writer->target;
    for (int i = 0; i < TRIES; i++) {
        bool alone = writer->settings->rotates || writer->settings->header_length || target->fresh;
        wr_output_file_lock(target, alone ? LOCK_EX : LOCK_SH);
        if (is_good(writer, status)) {
            if (alone)
                wr_output_file_look_at_end(target, status->st_size);
            return 0;
        }
        wr_output_file_lock(target, LOCK_UN);
        int problem = wr_output_file_reopen(target);
        if (problem)
            return problem;
    }
    return EAGAIN; /* somebody keeps taking it away */
}

/* How much of what was encoded goes into the file now; 0: it has to be put aside first. */
static size_t find_fit(const struct writer *writer, const weir_encoded *encoded, const struct stat *status)
{
    size_t whole, room = wr_rotation_room(&writer->rotation, status);
    if (encoded->length <= room)
        return encoded->length;
    writer->encoder->settled(writer->target.host, room, &whole);
    return !whole && wr_rotation_is_empty(&writer->rotation, status) ? encoded->length : whole;
}

/* Locks a file that has room, and puts those aside that have none. 0, or errno. */
static int find_file(struct writer *writer, const weir_encoded *encoded, struct stat *status, size_t *fit)
{
    for (;;) {
        int problem = enter(writer, status);
        if (problem)
            return problem;
        *fit = encoded->length;
        if (!wr_rotation_is_on(&writer->rotation, &writer->target))
            return 0;
        *fit = find_fit(writer, encoded, status);
        if (*fit)
            return 0;
        problem = wr_rotation_turn(&writer->rotation, &writer->target);
        if (problem)
            return problem;
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int write_header(struct writer *writer, const struct stat *status)
{
    size_t written, length = writer->settings->header_length;
    if (!length || !writer->target.regular || status->st_size)
        return 0;
    int problem = wr_output_file_write(&writer->target, writer->settings->header, length, &written);
    if (written && written < length)
        wr_output_file_take_back(&writer->target, written);
    return problem;
}

int wr_writer_write(struct writer *writer, const weir_encoded *encoded, uint32_t *settled)
{
    struct output_file *target = &writer->target;
    struct stat status;
    size_t written = 0, whole, fit;
    *settled = encoded->length ? 0 : encoded->count;
    if (!encoded->length)
        return 0;
    int problem = find_file(writer, encoded, &status, &fit);
    if (problem)
        return problem;
    problem = write_header(writer, &status);
    if (!problem)
        problem = wr_output_file_write(target, encoded->data, fit, &written);
    target->fresh = false;
    target->end = lseek(target->fd, 0, SEEK_CUR);
    *settled = writer->encoder->settled(target->host, written, &whole);
    if (written > whole)
        wr_output_file_take_back(target, written - whole);
    wr_output_file_lock(target, LOCK_UN);
    return problem;
}
