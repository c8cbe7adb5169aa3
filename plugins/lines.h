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

/* The end, in (low, high], of the event that follows the first `settled` of the encoded samples. */
size_t wr_lines_event_end(const weir_host *host, const weir_encoder *encoder, uint32_t settled, size_t low,
                          size_t high);

enum lines_result {
    LINES_WRITTEN,
    LINES_FAILED,   /* nothing more can be written now */
    LINES_TOO_LONG, /* the piece can never be written, since the network refuses its size */
};

struct lines_writer {
    const weir_host *host;
    const weir_encoder *encoder;
    size_t most;      /* bytes of a piece */
    const char *what; /* a piece is, for messages */
    /* Writes a piece, or nothing of it. at_event: it begins an event. */
    enum lines_result (*write)(void *ctx, const char *lines, size_t length, bool at_event);
    void *ctx;
};

/* Writes what was encoded, as many events per piece as fit, and adds to outcome->done. An event that is larger
 * is written in several pieces, and its lines that are too long for one are left out: writing these values
 * again cannot deliver them. Returns early behind events with such lines, so that `rejected` and the reason
 * apply to them alone, and in front of an event for which `write` failed. */
void wr_lines_write_events(const struct lines_writer *writer, const weir_encoded *encoded,
                           weir_outcome *outcome);

#endif
