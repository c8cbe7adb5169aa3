#include <stdio.h>
#include <string.h>

#include "http.h"

enum { RECORD_TRIES = 5 };

/* Resumes an interrupted event where it stopped, so that no sample is sent twice. */
static uint32_t find_start(struct http *http, const weir_batch *batch)
{
    bool interrupted = strcmp(http->origin, batch->origin) == 0 && http->next > batch->sequence &&
                       http->next < batch->sequence + batch->count;
    if (!interrupted)
        http->refused = 0;
    return interrupted ? (uint32_t)(http->next - batch->sequence) : 0;
}

/* Samples before `end` have been sent one by one; report them if an event ends there, because the core
 * counts whole events. Returns false if the emit must return. */
static bool report_records(struct http *http, const weir_batch *batch, uint32_t end, weir_outcome *outcome)
{
    snprintf(http->origin, sizeof http->origin, "%s", batch->origin);
    http->next = batch->sequence + end;
    if (end < batch->count && batch->samples[end - 1].flags & WEIR_SAMPLE_MORE)
        return true;
    outcome->done = end;
    outcome->rejected = http->refused;
    if (!http->refused)
        return true;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", http->refusal);
    http->refused = 0;
    return false;
}

/* Counts a response of 500 to a record. Returns how many there were to this one. */
static unsigned count_try(struct http *http, const weir_batch *batch, uint32_t pos)
{
    struct failing_record *failing = &http->failing;
    uint64_t sequence = batch->sequence + pos;
    if (!failing->tries || failing->sequence != sequence || strcmp(failing->origin, batch->origin) != 0)
        failing->tries = 0;
    failing->sequence = sequence;
    snprintf(failing->origin, sizeof failing->origin, "%s", batch->origin);
    return ++failing->tries;
}

/* A server may respond with 500 to a record that it will never accept, which would hold up all others. A record
 * that has been tried often is refused if the server responds well to a GET of the same URL: then the server,
 * and what is behind it, works. Other records of the same series are tried once, until one is delivered. Other
 * statuses of 5xx come from a server, or a proxy before it, that is not available; it may serve a GET even so.
 */
static void refuse_if_only_record_fails(struct http *http, const weir_batch *batch, uint32_t pos,
                                        struct response *response)
{
    struct failing_record *failing = &http->failing;
    const weir_sample *sample = &batch->samples[pos];
    if (response->kind != RESPONSE_RETRY || response->status != 500)
        return;
    unsigned tries = count_try(http, batch, pos);
    const weir_series *series = weir_batch_series(batch, sample);
    bool known = failing->refused_before && failing->refused_series == series->serial;
    if (!known && tries < RECORD_TRIES)
        return;
    long status = wr_client_get(&http->client, &http->settings.client);
    if (status < 200 || status >= 300)
        return;
    char cause[104];
    snprintf(cause, sizeof cause, "%.103s", response->message);
    snprintf(response->message, sizeof response->message, "\"%.60s\" of group \"%.40s\", tried %u times: %s",
             series->name, series->group, tries, cause);
    if (!known)
        http->host->log(http->host, WEIR_LOG_WARNING, "rejects %s", response->message);
    response->kind = RESPONSE_REFUSED;
    failing->tries = 0;
    failing->refused_before = true;
    failing->refused_series = series->serial;
}

/* The server accepts records of this series. */
static void note_delivered(struct http *http, const weir_series *series)
{
    if (http->failing.refused_series == series->serial)
        http->failing.refused_before = false;
}

void wr_records_emit(struct http *http, const weir_batch *batch, weir_outcome *outcome)
{
    uint32_t pos = find_start(http, batch);
    bool proceed = true;
    while (proceed && !outcome->done && pos < batch->count) {
        weir_encoded encoded;
        struct response response;
        if (wr_sending_encode(http, batch, pos, &encoded, &response))
            wr_sending_send(http, encoded.data, encoded.length, NULL, &response);
        refuse_if_only_record_fails(http, batch, pos, &response);
        if (response.kind == RESPONSE_RETRY) {
            wr_sending_set_retry(&response, outcome);
            return;
        }
        if (response.kind == RESPONSE_DELIVERED && encoded.length)
            note_delivered(http, weir_batch_series(batch, &batch->samples[pos]));
        if (response.kind != RESPONSE_DELIVERED) {
            wr_sending_count_refused(http, response.status, 1);
            http->refused++;
            snprintf(http->refusal, sizeof http->refusal, "%s", response.message);
        }
        pos += encoded.count;
        proceed = report_records(http, batch, pos, outcome);
    }
}
