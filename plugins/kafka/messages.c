#include "messages.h"

#include <string.h>

uint32_t wr_messages_event_end(const weir_batch *batch, uint32_t first)
{
    while (first + 1 < batch->count && batch->samples[first].flags & WEIR_SAMPLE_MORE)
        first++;
    return first + 1;
}

static size_t find_line_end(const struct messages *messages, size_t at)
{
    const char *data = messages->encoded->data;
    const char *end = memchr(data + at, '\n', messages->encoded->length - at);
    return end ? (size_t)(end - data) + 1 : messages->encoded->length;
}

/* Events without lines are settled together with what precedes them. */
bool wr_messages_next_event(struct messages *messages, struct messages_event *event)
{
    size_t begin = messages->at;
    if (begin >= messages->encoded->length)
        return false;
    uint32_t settled = messages->encoder->settled(messages->host, begin, NULL);
    event->first = messages->start + settled;
    event->end = wr_messages_event_end(messages->batch, event->first);
    event->lines = messages->encoded->data + begin;
    event->count = 0;
    do {
        messages->at = find_line_end(messages, messages->at);
        event->count++;
    } while (messages->at < messages->encoded->length &&
             messages->encoder->settled(messages->host, messages->at, NULL) == settled);
    event->length = messages->at - begin;
    return true;
}

bool wr_messages_is_plain(const struct messages_event *event)
{
    return event->count == event->end - event->first;
}
