/* lines: functions shared by handlers that write whole lines in pieces of a limited size: the writes to a named
 * pipe, datagrams. */
#ifndef WEIR_PLUGINS_LINES_H
#define WEIR_PLUGINS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

/* The length of the whole lines that fit into a piece of `most` bytes; 0: the first line is too long. */
size_t wr_lines_fit(const char *lines, size_t length, size_t most);

size_t wr_lines_first_length(const char *lines, size_t length);

/* The end, in (low, high], of the event that follows the first `settled` of the encoded samples. */
size_t wr_lines_event_end(const weir_host *host, const weir_encoder *encoder, uint32_t settled, size_t low,
                          size_t high);

/* Lines of an event that cannot be written, because they are too long for a piece. Each is that of a single
 * value, since the encoder splits the others. Zero: none. */
struct lines_refused {
    uint32_t count;
    bool all; /* a piece of several lines was too long, for the network: all samples count as refused */
    const char *first;
    size_t first_length, most;
};

void wr_lines_refuse(struct lines_refused *refused, const char *line, size_t length, size_t most);

/* Reports lines that were refused of an event with so many samples. Writing these values again cannot deliver
 * them. The start of a line has the name of its value. */
void wr_lines_report_refused(const struct lines_refused *refused, const char *piece, uint32_t samples,
                             weir_outcome *outcome);

#endif
