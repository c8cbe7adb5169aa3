#include <stdio.h>
#include <string.h>

#include "http.h"

/* How many of the samples the server has refused. A document has as many points as samples; lines are events,
 * and may have several samples: if all do not have the same number, this is an estimate. */
static uint32_t count_refused_samples(const struct http *http, const weir_encoded *encoded,
                                      const struct response *response)
{
    uint64_t lines = 0;
    if (!response->dropped_points)
        return encoded->count;
    if (http->encoder->format(http->host) == WEIR_FORMAT_DOCUMENTS)
        lines = encoded->count;
    else
        for (size_t i = 0; i < encoded->length; i++)
            lines += encoded->data[i] == '\n';
    if (response->dropped_points >= lines)
        return encoded->count;
    return (uint32_t)((response->dropped_points * (uint64_t)encoded->count + lines - 1) / lines);
}

/* What a server has taken, but has something to say about. A warning is logged once, until there is another. */
static void log_warning(struct http *http, const struct response *response)
{
    if (!*response->message || strcmp(response->message, http->warning) == 0)
        return;
    http->host->log(http->host, WEIR_LOG_WARNING, "%s", response->message);
    snprintf(http->warning, sizeof http->warning, "%s", response->message);
}

static void set_delivered(struct http *http, const weir_batch *batch, uint32_t count, weir_outcome *outcome)
{
    wr_sending_note_taken(http, count);
    outcome->done += count;
    if (outcome->done == batch->count)
        http->search.max_samples = UINT32_MAX;
}

/* Returns false: the reason applies to these samples alone, so the emit must return. */
static bool set_refused(struct http *http, const weir_encoded *encoded, const struct response *response,
                        weir_outcome *outcome)
{
    uint32_t refused = count_refused_samples(http, encoded, response);
    if (refused < encoded->count)
        http->search.refusals = 0;
    wr_sending_count_refused(http, response->status, refused);
    outcome->done += encoded->count;
    outcome->rejected = refused;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", response->message);
    return false;
}

/* Sends the next events. Returns false if the emit must return. */
static bool send_events(struct http *http, const weir_batch *batch, weir_outcome *outcome)
{
    weir_batch part = wr_sending_next_part(http, batch, outcome->done);
    weir_encoded encoded;
    struct response response;
    if (wr_sending_encode(http, &part, outcome->done, &encoded, &response))
        wr_sending_send(http, encoded.data, encoded.length, NULL, &response);
    switch (response.kind) {
    case RESPONSE_RETRY: wr_sending_set_retry(&response, outcome); return false;
    case RESPONSE_DELIVERED:
        log_warning(http, &response);
        set_delivered(http, batch, encoded.count, outcome);
        return true;
    default:
        return wr_sending_divide(http, &part, outcome->done, encoded.count, &response) ||
               set_refused(http, &encoded, &response, outcome);
    }
}

void wr_events_emit(struct http *http, const weir_batch *batch, weir_outcome *outcome)
{
    while (batch->count && !outcome->done && send_events(http, batch, outcome))
        ;
}
