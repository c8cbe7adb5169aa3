/* lines: functions shared by handlers that write whole lines in pieces of a limited size: the writes to a named
 * pipe, datagrams. */
#ifndef WEIR_PLUGINS_LINES_H
#define WEIR_PLUGINS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/weir.h>

/* The length of the whole lines that fit into a piece of `most` bytes; 0: the first line is too long. */
static inline size_t wr_lines_fit(const char *lines, size_t length, size_t most)
{
    if (length <= most)
        return length;
    const char *last = memrchr(lines, '\n', most);
    return last ? (size_t)(last - lines) + 1 : 0;
}

static inline size_t wr_lines_first_length(const char *lines, size_t length)
{
    const char *end = memchr(lines, '\n', length);
    return end ? (size_t)(end - lines) + 1 : length;
}

/* The end, in (low, high], of the event that follows the first `settled` of the encoded samples. */
static inline size_t wr_lines_event_end(const weir_host *host, const weir_encoder *encoder, uint32_t settled,
                                        size_t low, size_t high)
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

/* Lines of an event that cannot be written, because they are too long for a piece. Each is that of a single
 * value, since the encoder splits the others. Zero: none. */
struct lines_refused {
    uint32_t count;
    bool all; /* a piece of several lines was too long, for the network: all samples count as refused */
    const char *first;
    size_t first_length, most;
};

static inline void wr_lines_refuse(struct lines_refused *refused, const char *line, size_t length, size_t most)
{
    if (refused->count++)
        return;
    refused->first = line;
    refused->first_length = length;
    refused->most = most;
}

/* Reports lines that were refused of an event with so many samples. Writing these values again cannot deliver
 * them. The start of a line has the name of its value. */
static inline void wr_lines_report_refused(const struct lines_refused *refused, const char *piece,
                                           uint32_t samples, weir_outcome *outcome)
{
    outcome->rejected += refused->count < samples && !refused->all ? refused->count : samples;
    snprintf(outcome->reason, sizeof outcome->reason,
             "%zu bytes of lines are more than the %zu that %s may have: %.100s...", refused->first_length,
             refused->most, piece, refused->first);
    outcome->error = WEIR_ERR_TOO_LARGE;
}

#endif
