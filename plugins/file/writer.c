#include "writer.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_lock.h"

enum { CHUNK = 128 * 1024, TRIES = 1000 };

void wr_writer_init(struct writer *writer, const weir_host *host, const struct settings *settings)
{
    *writer = (struct writer){.settings = settings, .encoder = host->service(host, WEIR_SERVICE_ENCODER)};
    wr_output_file_init(&writer->output, host, settings);
    wr_rotation_init(&writer->rotation, settings);
}

/* At most what fits into an empty file: if that is exceeded, it is by a single event. */
size_t wr_writer_chunk(const struct writer *writer)
{
    int64_t size = writer->settings->options->rotate_size, header = (int64_t)writer->settings->header_length;
    if (!size || size - header >= CHUNK)
        return CHUNK;
    return size > header ? (size_t)(size - header) : 1;
}

/* ---- Locking --------------------------------------------------------------------------------- */

/* Whether the file may still be written to: it has not been rotated by another process and not been deleted,
 * as old files are once they are compressed. */
static bool is_current(const struct writer *writer, struct stat *status)
{
    const struct output_file *output = &writer->output;
    if (fstat(output->own.fd, status) != 0)
        return false;
    return writer->settings->rotates ? wr_output_file_is_in_place(output) : status->st_nlink > 0;
}

/* Locks the file, after reopening it if necessary. The lock is shared, so that processes can write
 * concurrently, but exclusive if the end of the file must be checked or a rotation is possible. Returns 0 or
 * errno. */
static int lock_file(struct writer *writer, struct stat *status)
{
    struct output_file *output = &writer->output;
    for (int i = 0; i < TRIES; i++) {
        bool exclusive = writer->settings->rotates || writer->settings->header_length || output->fresh;
        int error = wr_file_lock_take(output->host, output->own.fd, exclusive ? LOCK_EX : LOCK_SH);
        if (error)
            return error;
        if (is_current(writer, status)) {
            if (exclusive)
                wr_output_file_check_end(output, status->st_size);
            return 0;
        }
        wr_file_lock_release(output->own.fd);
        error = wr_output_file_reopen(output);
        if (error)
            return error;
    }
    return EAGAIN; /* other processes keep replacing the file */
}

/* How many of the encoded bytes fit into the file; 0: it must be rotated first. */
static size_t find_length(const struct writer *writer, const weir_encoded *encoded, const struct stat *status)
{
    size_t whole, room = wr_rotation_room(&writer->rotation, status);
    if (encoded->length <= room)
        return encoded->length;
    writer->encoder->settled(writer->output.host, room, &whole);
    return !whole && wr_rotation_is_empty(&writer->rotation, status) ? encoded->length : whole;
}

/* Locks a file that has room, rotating full ones. Returns 0 or errno. */
static int lock_file_with_room(struct writer *writer, const weir_encoded *encoded, struct stat *status,
                               size_t *length)
{
    for (;;) {
        int error = lock_file(writer, status);
        if (error)
            return error;
        *length = encoded->length;
        if (!wr_rotation_is_on(&writer->rotation))
            return 0;
        *length = find_length(writer, encoded, status);
        if (*length)
            return 0;
        error = wr_rotation_rotate(&writer->rotation, &writer->output);
        if (error)
            return error;
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int write_header(struct writer *writer, const struct stat *status)
{
    size_t written, length = writer->settings->header_length;
    if (!length || status->st_size)
        return 0;
    int error = wr_output_file_write(&writer->output, writer->settings->header, length, &written);
    if (written && written < length)
        wr_output_file_remove_tail(&writer->output, written);
    return error;
}

int wr_writer_write(struct writer *writer, const weir_encoded *encoded, uint32_t *settled)
{
    struct output_file *output = &writer->output;
    struct stat status;
    size_t written = 0, whole, length;
    *settled = encoded->length ? 0 : encoded->count;
    if (!encoded->length)
        return 0;
    int error = lock_file_with_room(writer, encoded, &status, &length);
    if (error)
        return error;
    error = write_header(writer, &status);
    if (!error)
        error = wr_output_file_write(output, encoded->data, length, &written);
    output->fresh = false;
    output->end = lseek(output->own.fd, 0, SEEK_CUR);
    *settled = writer->encoder->settled(output->host, written, &whole);
    if (written > whole)
        wr_output_file_remove_tail(output, written - whole);
    wr_file_lock_release(output->own.fd);
    return error;
}
