/* messages: divides encoded lines into messages, one for each line, and finds the samples that each is of. */
#ifndef KAFKA_MESSAGES_H
#define KAFKA_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

/* The lines of one event. */
struct messages_event {
    uint32_t first, end; /* its samples, as indexes in the batch */
    const char *lines;   /* each ends in a newline */
    size_t length;
    uint32_t count; /* of lines */
};

/* Where to go on in encoded samples. */
struct messages {
    const weir_host *host;
    const weir_encoder *encoder;
    const weir_batch *batch;
    const weir_encoded *encoded;
    uint32_t start; /* index of the first encoded sample */
    size_t at;      /* bytes that were looked at */
};

/* The index behind the event of the sample. */
uint32_t wr_messages_event_end(const weir_batch *batch, uint32_t first);

/* Sets *event to the next event that has lines. Returns false if there is none. */
bool wr_messages_next_event(struct messages *messages, struct messages_event *event);

/* Whether each of the event's samples has its line. */
bool wr_messages_is_plain(const struct messages_event *event);

#endif
