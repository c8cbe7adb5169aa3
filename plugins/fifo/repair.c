#include "repair.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../lines.h"
#include "../output.h"

enum {
    CAPACITY_BYTES = 64 * 1024, /* of a pipe whose capacity is not known */
    LOCK_WAIT_MS = 1000,
    IGNORE_LOCK_MS = 10000,
    TURNS = 4, /* how often to look whether there is more data in the pipe */
};

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool reserve(struct pipe_text *text, size_t room)
{
    char *data = text->room < room ? realloc(text->data, room) : text->data;
    if (!data)
        return false;
    text->data = data;
    text->room = text->room < room ? room : text->room;
    return true;
}

/* Returns the start of the last line of the first `end` bytes, `end` > 0. */
static size_t last_line(const char *data, size_t end)
{
    const char *before = memrchr(data, '\n', end - 1);
    return before ? (size_t)(before - data) + 1 : 0;
}

static bool ends_with(const char *data, size_t length, const char *tail, size_t tail_length)
{
    return tail_length <= length && memcmp(data + length - tail_length, tail, tail_length) == 0;
}

/* Twice as much room as is to be kept, so that it is seldom moved. Anyone who has the pipe open can enlarge it
 * at any time: so this is called again before lines are forgotten. What the pipe holds at that moment is kept,
 * and what is written later is added. */
static bool keep_capacity(struct pipe *pipe)
{
    int capacity = fcntl(pipe->own.fd, F_GETPIPE_SZ);
    size_t kept = (size_t)(capacity > 0 ? capacity : CAPACITY_BYTES) + PIPE_BUF;
    if (!reserve(&pipe->written, 2 * kept))
        return false;
    pipe->kept = kept;
    return true;
}

/* Leaves at most as many bytes as are to be kept. */
static void forget_first(struct pipe *pipe)
{
    struct pipe_text *written = &pipe->written;
    size_t start = written->length > pipe->kept ? written->length - pipe->kept : 0;
    const char *line = start ? memchr(written->data + start - 1, '\n', written->length - start + 1) : NULL;
    if (line)
        start = (size_t)(line - written->data) + 1;
    written->length -= start;
    memmove(written->data, written->data + start, written->length);
}

/* Without memory for what an enlarged pipe holds, as much is kept as before. */
void wr_repair_remember(struct pipe *pipe, const char *lines, size_t length)
{
    struct pipe_text *written = &pipe->written;
    if (written->length + length > written->room)
        keep_capacity(pipe);
    if (written->length + length > written->room)
        forget_first(pipe);
    memcpy(written->data + written->length, lines, length);
    written->length += length;
    pipe->unread = -1;
}

/* Returns how many bytes of the first line in the data were read before. *line: where it starts in `written`.
 */
static size_t find_torn(const struct pipe *pipe, const char *data, size_t length, size_t *line)
{
    const struct pipe_text *written = &pipe->written;
    const char *first_end = memchr(data, '\n', length);
    size_t first = first_end ? (size_t)(first_end - data) + 1 : length, end = written->length, start;
    for (size_t at = length; at > first && end; at = start) {
        size_t own = last_line(written->data, end);
        start = last_line(data, at);
        if (end - own == at - start && ends_with(written->data, end, data + start, at - start))
            end = own;
    }
    *line = end ? last_line(written->data, end) : 0;
    return end && ends_with(written->data + *line, end - *line, data, first) ? end - *line - first : 0;
}

size_t wr_repair_part_length(const char *lines, size_t length)
{
    size_t piece = wr_lines_fit(lines, length, PIPE_BUF);
    return piece ? piece : PIPE_BUF;
}

/* Writes lines until the pipe is full, or has no reader. Returns the number of bytes. */
static size_t write_now(struct pipe *pipe, const char *lines, size_t length)
{
    size_t pos = 0;
    while (pos < length) {
        size_t part = wr_repair_part_length(lines + pos, length - pos);
        ssize_t count = write(pipe->own.fd, lines + pos, part);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            break;
        wr_repair_remember(pipe, lines + pos, part);
        pos += part;
    }
    return pos;
}

static int count_unread(const struct pipe *pipe)
{
    int unread = 0;
    return ioctl(pipe->own.fd, FIONREAD, &unread) == 0 ? unread : 0;
}

/* Takes all data out of the pipe, and appends it. A writer that has not noticed the loss of the reader may be
 * adding to it, but not for ever, since it waits when it notices. Nothing is taken out for which `waiting`
 * would have no room. */
static void take_out(struct pipe *pipe, struct pipe_text *data)
{
    for (int turn = 0, unread; turn < TURNS && (unread = count_unread(pipe)) > 0; turn++) {
        size_t length = data->length + (size_t)unread;
        if (!reserve(data, length) || !reserve(&pipe->waiting, pipe->waiting.length + length))
            return;
        ssize_t count = read(pipe->read_fd, data->data + data->length, (size_t)unread);
        data->length += count > 0 ? (size_t)count : 0;
    }
}

/* Puts lines that were taken out before those that wait. There is room. */
static void wait_first(struct pipe_text *waiting, const char *lines, size_t length)
{
    memmove(waiting->data + length, waiting->data, waiting->length);
    memcpy(waiting->data, lines, length);
    waiting->length += length;
}

/* Takes all data out of the pipe and writes it again. */
static void rewrite(struct pipe *pipe)
{
    size_t line, torn;
    struct pipe_text data = {.length = PIPE_BUF}; /* room for the beginning of the first line */
    take_out(pipe, &data);
    size_t length = data.length - PIPE_BUF;
    if (!length) {
        free(data.data);
        return;
    }
    const char *taken = data.data + PIPE_BUF;
    if ((torn = find_torn(pipe, taken, length, &line)) && torn <= PIPE_BUF) {
        taken -= torn;
        length += torn;
        memcpy(data.data + PIPE_BUF - torn, pipe->written.data + line, torn);
    }
    pipe->written.length = 0;
    size_t done = write_now(pipe, taken, length);
    wait_first(&pipe->waiting, taken + done, length - done);
    free(data.data);
}

/* ---- The lock -------------------------------------------------------------------------------- */

/* Others hold the lock for less than a millisecond. */
static bool take_lock(const struct pipe *pipe, int operation)
{
    for (int i = 0; i < LOCK_WAIT_MS; i++) {
        if (flock(pipe->own.fd, operation | LOCK_NB) == 0)
            return true;
        pipe->host->wait(pipe->host, 1);
    }
    return false;
}

void wr_repair_wait(struct pipe *pipe)
{
    if (wr_output_now_ms() < pipe->ignore_lock_ms)
        return;
    if (take_lock(pipe, LOCK_SH))
        flock(pipe->own.fd, LOCK_UN);
    else
        pipe->ignore_lock_ms = wr_output_now_ms() + IGNORE_LOCK_MS;
}

/* ---- Repairing ------------------------------------------------------------------------------- */

static void open_and_rewrite(struct pipe *pipe)
{
    pipe->read_fd = wr_fd_open(pipe->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0);
    int error = errno;
    if (wr_fd_is_file(pipe->read_fd, pipe->own.device, pipe->own.inode))
        rewrite(pipe);
    else if (pipe->read_fd < 0 && !pipe->logged_access)
        pipe->host->log(pipe->host, WEIR_LOG_WARNING,
                        "%s cannot be opened for reading (%s): its next reader may start within a line",
                        pipe->path, wr_system_strerror(error));
    pipe->logged_access |= pipe->read_fd < 0;
    if (pipe->read_fd >= 0)
        close(pipe->read_fd);
    pipe->read_fd = -1;
}

/* Nothing is taken out if a reader has come meanwhile, or if nobody has written or read since the last repair.
 */
struct pipe_result wr_repair(struct pipe *pipe)
{
    int unread = count_unread(pipe);
    if (unread == pipe->unread || !take_lock(pipe, LOCK_EX))
        return wr_pipe_result(PIPE_NO_READER, 0);
    unread = wr_pipe_has_reader(pipe) ? -1 : count_unread(pipe);
    if (unread > 0 && unread != pipe->unread) {
        open_and_rewrite(pipe);
        unread = count_unread(pipe);
    }
    pipe->unread = unread;
    flock(pipe->own.fd, LOCK_UN);
    return wr_pipe_result(PIPE_NO_READER, 0);
}

bool wr_repair_start(struct pipe *pipe)
{
    pipe->written.length = 0;
    pipe->unread = -1;
    return keep_capacity(pipe);
}
