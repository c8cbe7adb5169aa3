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

size_t wr_lines_first_length(const char *lines, size_t length)
{
    const char *end = memchr(lines, '\n', length);
    return end ? (size_t)(end - lines) + 1 : length;
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

void wr_lines_refuse(struct lines_refused *refused, const char *line, size_t length, size_t most)
{
    if (refused->count++)
        return;
    refused->first = line;
    refused->first_length = length;
    refused->most = most;
}

void wr_lines_report_refused(const struct lines_refused *refused, const char *piece, uint32_t samples,
                             weir_outcome *outcome)
{
    outcome->rejected += refused->count < samples && !refused->all ? refused->count : samples;
    snprintf(outcome->reason, sizeof outcome->reason,
             "%zu bytes of lines are more than the %zu that %s may have: %.100s...", refused->first_length,
             refused->most, piece, refused->first);
    outcome->error = WEIR_ERR_TOO_LARGE;
}
