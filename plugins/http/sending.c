#include <stdio.h>

#include "../gzip.h"
#include "../system.h"
#include "http.h"

enum { BODY_MAX = 8 * 1024 * 1024, REFUSALS_MAX = 40 };

/* ---- Requests -------------------------------------------------------------------------------- */

uint32_t wr_sending_find_end(const weir_batch *batch, uint32_t start, uint32_t max_samples)
{
    uint32_t end = start;
    for (uint32_t i = start; i < batch->count; i++) {
        if (batch->samples[i].flags & WEIR_SAMPLE_MORE && i + 1 < batch->count)
            continue;
        if (end > start && i + 1 - start > max_samples)
            break;
        end = i + 1;
    }
    return end;
}

weir_batch wr_sending_next_part(const struct http *http, const weir_batch *batch, uint32_t start)
{
    weir_batch part = *batch;
    uint32_t max_samples =
        http->max_samples < http->search.max_samples ? http->max_samples : http->search.max_samples;
    part.count = wr_sending_find_end(batch, start, max_samples);
    return part;
}

static void set_no_memory(struct response *response)
{
    *response = (struct response){.kind = RESPONSE_RETRY, .message = "out of memory"};
}

bool wr_sending_encode(struct http *http, const weir_batch *batch, uint32_t start, weir_encoded *encoded,
                       struct response *response)
{
    if (http->encoder->encode(http->host, batch, start, BODY_MAX, encoded))
        return true;
    set_no_memory(response);
    return false;
}

/* Sets *data and *length to the body for encoded data, valid until the next call. Returns false if out of
 * memory. */
static bool build_body(struct http *http, const char **data, size_t *length)
{
    struct wr_buffer *body = &http->body;
    if (!*http->header && !http->gzip)
        return true;
    wr_buffer_clear(body);
    wr_buffer_put_text(body, http->header);
    wr_buffer_put(body, *data, *length);
    if (body->failed || (http->gzip && !gzip_text(body)))
        return false;
    *data = body->data;
    *length = body->length;
    return true;
}

void wr_sending_send(struct http *http, const char *data, size_t length, const struct client_sink *sink,
                     struct response *response)
{
    struct client_reply reply;
    *response = (struct response){.kind = RESPONSE_DELIVERED};
    if (!length) /* none of the samples can be encoded */
        return;
    if (!build_body(http, &data, &length)) {
        set_no_memory(response);
        return;
    }
    wr_client_send(&http->client, data, length, sink, &reply);
    http->protocol->classify(&http->request, &reply, response);
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* After a 413, the next requests have half of the samples, then grow slowly. */
static void shrink(struct http *http, uint32_t sent)
{
    http->max_samples = sent / 2 ? sent / 2 : 1;
}

void wr_sending_note_taken(struct http *http, uint32_t samples)
{
    http->search.refusals = 0;
    if (samples >= http->max_samples && http->max_samples < UINT32_MAX / 2)
        http->max_samples += http->max_samples / 8 + 1;
}

/* One line that a server cannot take makes it refuse the whole request, with many that it would take. So what
 * it refuses is halved, until it takes one half, or refuses a single event; so is what it stores in part, until
 * its reply is short enough to count the others. The limit is for servers that refuse everything, for instance
 * because of the URL. */
static bool search_refused(struct http *http, bool single, uint32_t count, const struct response *response)
{
    struct search *search = &http->search;
    bool by_content = (response->status == 400 || response->status == 422) && !response->dropped_points;
    if (!by_content || http->encoder->format(http->host) != WEIR_FORMAT_LINES)
        return false;
    search->max_samples = single ? UINT32_MAX : count / 2 ? count / 2 : 1;
    if (search->refusals < REFUSALS_MAX)
        search->refusals++;
    else
        search->max_samples = UINT32_MAX;
    return search->max_samples < UINT32_MAX;
}

bool wr_sending_divide(struct http *http, const weir_batch *batch, uint32_t start, uint32_t count,
                       const struct response *response)
{
    bool single = count <= wr_sending_find_end(batch, start, 1) - start;
    if (response->kind != RESPONSE_TOO_LARGE)
        return search_refused(http, single, count, response);
    if (single)
        return false;
    shrink(http, count);
    return true;
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

void wr_sending_set_retry(const struct response *response, weir_outcome *outcome)
{
    outcome->retry_after_ms = response->retry_after_ms;
    wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "%s", response->message);
}

void wr_sending_count_refused(const struct http *http, long status, uint32_t count)
{
    char counter[32];
    snprintf(counter, sizeof counter, "status.%ld", status);
    http->host->count(http->host, counter, count);
}
