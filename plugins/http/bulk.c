#include "bulk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/array.h"

#include "bulk_reply.h"
#include "http.h"

/* What is known of an event. Others are the status with which it was refused. */
enum {
    EVENT_UNKNOWN = 0,
    EVENT_STORED,  /* or it has no documents */
    EVENT_WAITING, /* it has to be sent */
    EVENT_FAILED,  /* the same; + n: the server has failed with it n times */
    EVENT_TRIES = 5,
    EVENT_REFUSED = 400, /* and above */
};

void wr_bulk_fini(struct bulk *bulk)
{
    free(bulk->states);
    free(bulk->samples);
    free(bulk->verdicts);
    wr_buffer_fini(&bulk->text);
    *bulk = (struct bulk){0};
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static bool is_settled(uint16_t state)
{
    return state == EVENT_STORED || state >= EVENT_REFUSED;
}

/* Makes the memory begin at the batch. What it knows of samples behind the batch stays. */
static bool align(struct bulk *bulk, const weir_batch *batch)
{
    uint64_t passed = batch->sequence - bulk->sequence;
    bool is_known = strcmp(bulk->origin, batch->origin) == 0 && passed < bulk->count;
    if (!WR_ARRAY_HAS_ROOM(&bulk->states, &bulk->room, batch->count))
        return false;
    if (!is_known) {
        *bulk->refusal = '\0';
        bulk->is_held = false;
        bulk->count = 0;
    } else {
        bulk->count -= (uint32_t)passed;
        memmove(bulk->states, bulk->states + passed, bulk->count * sizeof *bulk->states);
    }
    for (; bulk->count < batch->count; bulk->count++)
        bulk->states[bulk->count] = EVENT_UNKNOWN;
    snprintf(bulk->origin, sizeof bulk->origin, "%s", batch->origin);
    bulk->sequence = batch->sequence;
    return true;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* What is sent. */
struct parcel {
    const char *text;
    size_t length;
    uint32_t start;     /* the first sample of the request */
    uint32_t count;     /* samples that it covers */
    uint32_t documents; /* that are sent */
};

/* Returns the length of the document that begins there: two lines. */
static size_t document_length(const char *text, const char *end)
{
    const char *at = memchr(text, '\n', (size_t)(end - text));
    at = at ? memchr(at + 1, '\n', (size_t)(end - at - 1)) : NULL;
    return (size_t)((at ? at + 1 : end) - text);
}

static bool has_document_room(struct bulk *bulk, uint32_t count)
{
    return WR_ARRAY_HAS_ROOM(&bulk->samples, &bulk->sample_room, count) &&
           WR_ARRAY_HAS_ROOM(&bulk->verdicts, &bulk->verdict_room, count);
}

/* Whether some of the samples are known to be settled. */
static bool has_settled(const struct bulk *bulk, uint32_t start, uint32_t count)
{
    for (uint32_t i = start; i < start + count; i++)
        if (is_settled(bulk->states[i]))
            return true;
    return false;
}

/* Finds the documents of events that are not settled. An event has any number of them; a part of the encoded
 * data is complete for as many samples as `settled` says. copy: they are copied to bulk->text. */
static void list_documents(struct http *http, const weir_encoded *encoded, struct parcel *parcel, bool copy)
{
    struct bulk *bulk = &http->bulk;
    const char *end = encoded->data + encoded->length;
    parcel->documents = 0;
    parcel->length = 0;
    wr_buffer_clear(&bulk->text);
    for (const char *at = encoded->data; at < end;) {
        size_t length = document_length(at, end);
        uint32_t sample =
            parcel->start + http->encoder->settled(http->host, (size_t)(at - encoded->data), NULL);
        if (!is_settled(bulk->states[sample])) {
            bulk->samples[parcel->documents++] = sample;
            if (copy)
                wr_buffer_put(&bulk->text, at, length);
            parcel->length += length;
        }
        at += length;
    }
}

/* Returns false if out of memory. */
static bool make_parcel(struct http *http, const weir_encoded *encoded, struct parcel *parcel)
{
    struct bulk *bulk = &http->bulk;
    bool copy = has_settled(bulk, parcel->start, encoded->count);
    parcel->count = encoded->count;
    if (!has_document_room(bulk, encoded->count))
        return false;
    list_documents(http, encoded, parcel, copy);
    parcel->text = copy ? bulk->text.data : encoded->data;
    return !bulk->text.failed;
}

/* Documents that are sent make their events wait; the rest has none, or is settled. */
static void mark_waiting(struct bulk *bulk, const struct parcel *parcel)
{
    for (uint32_t i = 0; i < parcel->documents; i++) {
        uint16_t *state = &bulk->states[bulk->samples[i]];
        *state = *state == EVENT_UNKNOWN ? EVENT_WAITING : *state;
    }
}

/* ---- Results --------------------------------------------------------------------------------- */

/* The server fails with a document for a reason of its own, which may be the document. 429, 502, 503 and 504
 * are not: it has too much to do, or a part of it is away. */
static bool is_failure(uint16_t status)
{
    return status >= 500 && status != 502 && status != 503 && status != 504;
}

static uint16_t state_after(uint16_t before, uint16_t status)
{
    if (status == BULK_STORED)
        return EVENT_STORED;
    if (wr_bulk_is_refused(status))
        return status;
    if (!is_failure(status))
        return before;
    uint16_t tries = before > EVENT_FAILED && before < EVENT_REFUSED ? (uint16_t)(before - EVENT_FAILED) : 0;
    return tries + 1 < EVENT_TRIES ? (uint16_t)(EVENT_FAILED + tries + 1) : status;
}

/* Of an event with several documents the one that waits decides, then the one that was refused. */
static uint16_t worse(uint16_t a, uint16_t b)
{
    if (!is_settled(a) || !is_settled(b))
        return is_settled(a) ? b : a;
    return a >= EVENT_REFUSED ? a : b;
}

/* Returns whether a document is given up. */
static bool apply_verdicts(struct bulk *bulk, uint32_t documents)
{
    bool gives_up = false;
    for (uint32_t i = 0, next; i < documents; i = next) {
        uint16_t *state = &bulk->states[bulk->samples[i]], before = *state;
        *state = state_after(before, bulk->verdicts[i]);
        for (next = i + 1; next < documents && bulk->samples[next] == bulk->samples[i]; next++)
            *state = worse(*state, state_after(before, bulk->verdicts[next]));
        gives_up |= *state >= EVENT_REFUSED && is_failure(*state);
    }
    return gives_up;
}

static void note_refusal(struct bulk *bulk, const char *message)
{
    snprintf(bulk->refusal, sizeof bulk->refusal, "%s", message);
}

static void set_failure_message(const struct http *http, const struct bulk_failure *failure, uint32_t documents,
                                struct response *response)
{
    const struct response_request *request = &http->request;
    response->secrets = request->secrets;
    wr_response_set_message(response, "%s %s: %u of %u documents: status %u%s%s", request->method, request->url,
                            failure->count, documents, failure->status, *failure->error ? ": " : "",
                            failure->error);
}

/* Sets why the rest is sent again, which may be no failure of documents. */
static void set_again(const struct http *http, enum bulk_end end, const struct bulk_reply *reply,
                      struct response *response)
{
    const struct response_request *request = &http->request;
    response->kind = RESPONSE_RETRY;
    response->secrets = request->secrets;
    if (end == BULK_CUT)
        wr_response_set_message(response, "%s %s: the response breaks off behind %u of %u documents",
                                request->method, request->url, reply->read, reply->count);
    else if (end == BULK_WRONG_COUNT)
        wr_response_set_message(response, "%s %s: the response has %s items than the %u documents",
                                request->method, request->url, reply->read < reply->count ? "fewer" : "more",
                                reply->count);
    else if (end == BULK_INVALID)
        wr_response_set_message(response, "%s %s: returned %ld, but no response of _bulk", request->method,
                                request->url, response->status);
    else
        set_failure_message(http, &reply->again, reply->count, response);
    bool is_denied = end == BULK_COMPLETE && (reply->again.status == 401 || reply->again.status == 403);
    response->retry_after_ms = is_denied ? RESPONSE_DELAY_MAX : response->retry_after_ms;
}

/* Reads what became of the documents. The response tells why some are to be sent again, if any. */
static void read_results(struct http *http, struct bulk_reply *reply, struct response *response)
{
    struct bulk *bulk = &http->bulk;
    enum bulk_end end = wr_bulk_reply_end(reply);
    bool gives_up = apply_verdicts(bulk, reply->count);
    if (reply->refused.count || gives_up) {
        set_failure_message(http, reply->refused.count ? &reply->refused : &reply->again, reply->count,
                            response);
        note_refusal(bulk, response->message);
    }
    if (end != BULK_COMPLETE || reply->again.count)
        set_again(http, end, reply, response);
}

/* All documents of the request were refused with it. */
static void refuse_all(struct bulk *bulk, const struct parcel *parcel, const struct response *response)
{
    for (uint32_t i = 0; i < parcel->documents; i++)
        bulk->states[bulk->samples[i]] = (uint16_t)response->status;
    note_refusal(bulk, response->message);
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

/* Refused samples must be the last ones of those that an emit settles. */
static bool ends_front(uint16_t state, bool has_refused)
{
    return has_refused && state < EVENT_REFUSED;
}

/* Passes the settled events at the front of the request. Returns how many samples that is; *refused: of these.
 */
static uint32_t settle_front(const struct http *http, const weir_batch *batch, const struct parcel *parcel,
                             uint32_t *refused)
{
    const struct bulk *bulk = &http->bulk;
    uint32_t at = parcel->start;
    *refused = 0;
    while (at < parcel->start + parcel->count) {
        uint16_t state = bulk->states[at];
        if (!is_settled(state) && state != EVENT_UNKNOWN) /* UNKNOWN: the event has no documents */
            break;
        if (ends_front(state, *refused))
            break;
        uint32_t end = wr_sending_find_end(batch, at, 1);
        if (state >= EVENT_REFUSED) {
            wr_sending_count_refused(http, state, end - at);
            *refused += end - at;
        }
        at = end;
    }
    return at - parcel->start;
}

/* The reason of refused samples is returned with them, so that of the next attempt has to wait for the next
 * call. Some that are refused may have to wait for it, too.
 */
static bool report(struct http *http, const weir_batch *batch, const struct parcel *parcel,
                   const struct response *response, weir_outcome *outcome)
{
    struct bulk *bulk = &http->bulk;
    uint32_t refused, done = settle_front(http, batch, parcel, &refused);
    outcome->done += done;
    outcome->rejected = refused;
    bool again = done < parcel->count;
    if (refused) {
        snprintf(outcome->reason, sizeof outcome->reason, "%s", bulk->refusal);
        bulk->held = *response;
        bulk->is_held = again && response->kind == RESPONSE_RETRY;
        bulk->held_at = batch->sequence + outcome->done;
        return false;
    }
    if (again)
        wr_sending_set_retry(response, outcome);
    else
        wr_sending_note_taken(http, parcel->count);
    return !again;
}

/* Of events that are settled already, those are a part of their own that one emit can report: the others would
 * be encoded for nothing. */
static weir_batch next_part(const struct http *http, const weir_batch *batch, uint32_t start)
{
    const uint16_t *states = http->bulk.states;
    weir_batch part = wr_sending_next_part(http, batch, start);
    uint32_t end = start;
    for (bool has_refused = false; end < part.count && is_settled(states[end]);) {
        if (ends_front(states[end], has_refused))
            break;
        has_refused |= states[end] >= EVENT_REFUSED;
        end = wr_sending_find_end(batch, end, 1);
    }
    if (end > start)
        part.count = end;
    return part;
}

/* Sends what is not settled of the next events. Returns false if the emit must return. */
static bool send_part(struct http *http, const weir_batch *batch, weir_outcome *outcome)
{
    struct bulk *bulk = &http->bulk;
    weir_batch part = next_part(http, batch, outcome->done);
    struct parcel parcel = {.start = outcome->done};
    struct response response;
    struct bulk_reply reply;
    const struct client_sink sink = {wr_bulk_reply_take, &reply};
    weir_encoded encoded;
    if (!wr_sending_encode(http, &part, parcel.start, &encoded, &response)) {
        wr_sending_set_retry(&response, outcome);
        return false;
    }
    if (!make_parcel(http, &encoded, &parcel)) {
        response = (struct response){.kind = RESPONSE_RETRY, .message = "out of memory"};
        wr_sending_set_retry(&response, outcome);
        return false;
    }
    mark_waiting(bulk, &parcel);
    wr_bulk_reply_begin(&reply, bulk->verdicts, parcel.documents);
    wr_sending_send(http, parcel.text, parcel.length, &sink, &response);
    if (response.kind == RESPONSE_DELIVERED && parcel.documents)
        read_results(http, &reply, &response);
    else if (response.kind == RESPONSE_TOO_LARGE || response.kind == RESPONSE_REFUSED) {
        if (wr_sending_divide(http, &part, parcel.start, parcel.count, &response))
            return true;
        refuse_all(bulk, &parcel, &response);
    }
    return report(http, &part, &parcel, &response, outcome);
}

void wr_bulk_emit(struct http *http, const weir_batch *batch, weir_outcome *outcome)
{
    struct bulk *bulk = &http->bulk;
    if (!align(bulk, batch)) {
        const struct response response = {.kind = RESPONSE_RETRY, .message = "out of memory"};
        wr_sending_set_retry(&response, outcome);
        return;
    }
    bool is_held = bulk->is_held && bulk->held_at == batch->sequence;
    bulk->is_held = false;
    if (is_held) {
        wr_sending_set_retry(&bulk->held, outcome);
        return;
    }
    while (batch->count && !outcome->done && send_part(http, batch, outcome))
        ;
    if (outcome->done == batch->count)
        http->search.max_samples = UINT32_MAX;
}
