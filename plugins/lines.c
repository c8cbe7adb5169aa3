#include "lines.h"

#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

size_t wr_lines_fit(const char *lines, size_t length, size_t most)
{
    if (length <= most)
        return length;
    const char *last = memrchr(lines, '\n', most);
    return last ? (size_t)(last - lines) + 1 : 0;
}

size_t wr_lines_event_end(const weir_host *host, const weir_encoder *encoder, uint32_t settled, size_t low,
                          size_t high)
{
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (encoder->settled(host, middle, NULL) > settled)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Lines of an event that cannot be written, because they are too long for a piece. Each is that of a single
 * value, since the encoder splits the others. Zero: none. */
struct refused {
    uint32_t count;
    bool all; /* a piece of several lines was too long, for the network: all samples count as refused */
    const char *first;
    size_t first_length, most;
};

static void refuse(struct refused *refused, const char *line, size_t length, size_t most)
{
    if (refused->count++)
        return;
    refused->first = line;
    refused->first_length = length;
    refused->most = most;
}

/* The start of a line has the name of its value. */
static void report_refused(const struct refused *refused, const char *what, uint32_t samples,
                           weir_outcome *outcome)
{
    outcome->rejected += refused->count < samples && !refused->all ? refused->count : samples;
    snprintf(outcome->reason, sizeof outcome->reason,
             "%zu bytes of lines are more than the %zu that %s may have: %.100s...", refused->first_length,
             refused->most, what, refused->first);
    outcome->error = WEIR_ERR_TOO_LARGE;
}

/* Returns false if `write` failed. */
static bool write_lines(const struct lines_writer *writer, const char *lines, size_t length,
                        struct refused *refused)
{
    for (size_t pos = 0, piece; pos < length; pos += piece) {
        piece = wr_lines_fit(lines + pos, length - pos, writer->most);
        if (!piece) {
            const char *end = memchr(lines + pos, '\n', length - pos);
            piece = end ? (size_t)(end - lines) + 1 - pos : length - pos;
            refuse(refused, lines + pos, piece, writer->most);
            continue;
        }
        enum lines_result result = writer->write(writer->ctx, lines + pos, piece, pos == 0);
        if (result == LINES_FAILED)
            return false;
        if (result == LINES_TOO_LONG) {
            refuse(refused, lines + pos, piece, piece - 1);
            refused->all = true;
        }
    }
    return true;
}

/* Finds the events for the next piece: as many as fit, or one that is too long. Returns how many samples are
 * settled with them. */
static uint32_t find_events(const struct lines_writer *writer, const weir_encoded *encoded, uint32_t settled,
                            size_t pos, size_t *end)
{
    uint32_t next = writer->encoder->settled(writer->host, pos + writer->most, end);
    if (next > settled)
        return next;
    *end = wr_lines_event_end(writer->host, writer->encoder, settled, pos + writer->most, encoded->length);
    return writer->encoder->settled(writer->host, *end, NULL);
}

void wr_lines_write_events(const struct lines_writer *writer, const weir_encoded *encoded,
                           weir_outcome *outcome)
{
    const uint32_t done_before = outcome->done;
    struct refused refused = {0};
    size_t pos = 0, end;
    for (uint32_t settled = 0, next; settled < encoded->count && !refused.count; settled = next, pos = end) {
        next = find_events(writer, encoded, settled, pos, &end);
        if (!write_lines(writer, encoded->data + pos, end - pos, &refused))
            return;
        outcome->done = done_before + next;
        if (refused.count)
            report_refused(&refused, writer->what, next - settled, outcome);
    }
}
