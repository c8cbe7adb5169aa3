#include "tail.h"

#include <stdlib.h>
#include <string.h>

/* ---- Opening --------------------------------------------------------------------------------- */

/* A line that is too long for the room of the text is no header. */
static void read_header(struct tail *tail)
{
    size_t room;
    char *to = tail->pump.parser->room(tail->pump.text, &room);
    ssize_t length = to ? pread(tail->own.fd, to, room, 0) : 0;
    const char *newline = length > 0 ? memchr(to, '\n', (size_t)length) : NULL;
    if (newline && (uint64_t)(newline + 1 - to) <= tail->offset)
        tail->pump.is_full = !tail->pump.parser->parse(tail->pump.text, (size_t)(newline + 1 - to));
}

struct tail *tail_open(const weir_host *host, const char *path, int fd, const struct stat *status,
                       uint64_t offset, bool has_header)
{
    struct tail *tail = calloc(1, sizeof *tail);
    char *kept = strdup(path);
    if (!tail || !kept || lseek(fd, (off_t)offset, SEEK_SET) < 0 || !wr_pump_init(&tail->pump, host, path)) {
        free(tail);
        free(kept);
        close(fd);
        return NULL;
    }
    tail->path = kept;
    tail->own = (struct wr_own_fd){fd, status->st_dev, status->st_ino};
    tail->watch = -1;
    tail->offset = tail->added = tail->marked = tail->settled = offset;
    tail->is_dirty = tail->is_found = true;
    if (has_header && offset)
        read_header(tail);
    return tail;
}

uint64_t tail_find_last_line(int fd, uint64_t size)
{
    enum { PART = 4096 };
    char part[PART];
    while (size) {
        uint64_t from = size > PART ? size - PART : 0;
        ssize_t length = pread(fd, part, (size_t)(size - from), (off_t)from);
        if (length != (ssize_t)(size - from))
            return 0; /* it has just become shorter */
        const char *newline = memrchr(part, '\n', (size_t)length);
        if (newline)
            return from + (uint64_t)(newline + 1 - part);
        size = from;
    }
    return 0;
}

/* What was not added is before no position that is kept, so it is read again. */
void tail_close(struct tail *tail)
{
    tail->pump.parser->cancel(tail->pump.text);
    wr_own_fd_close(&tail->own);
}

void tail_free(struct tail *tail)
{
    free(tail->path);
    free(tail);
}

/* ---- Reading --------------------------------------------------------------------------------- */

bool tail_resume(struct tail *tail)
{
    if (!wr_pump_resume(&tail->pump))
        return false;
    tail->added = tail->offset - wr_pump_pending(&tail->pump);
    return true;
}

bool tail_finish(struct tail *tail)
{
    if (!tail_resume(tail))
        return false;
    if (tail->added != tail->offset)
        wr_pump_finish(&tail->pump, true);
    return tail_resume(tail);
}

/* Whether the end that was reached is before what was read. */
static bool is_truncated(const struct tail *tail)
{
    struct stat status;
    return fstat(tail->own.fd, &status) == 0 && (uint64_t)status.st_size < tail->offset;
}

static void begin_anew(struct tail *tail)
{
    wr_pump_finish(&tail->pump, false);
    lseek(tail->own.fd, 0, SEEK_SET);
    tail->offset = tail->added = tail->marked = tail->settled = 0;
    tail->hashed = 0;
}

enum pump_result tail_read(struct tail *tail, bool *truncated)
{
    *truncated = false;
    if (!wr_own_fd_is_open(&tail->own))
        return PUMP_EMPTY;
    enum pump_result result = wr_pump_read(&tail->pump, tail->own.fd);
    *truncated = result == PUMP_END && is_truncated(tail);
    if (*truncated) {
        begin_anew(tail);
        return PUMP_READ;
    }
    tail->offset += tail->pump.last_length;
    if (!tail->pump.is_full && !tail->pump.is_ending)
        tail->added = tail->offset - wr_pump_pending(&tail->pump);
    return result;
}
