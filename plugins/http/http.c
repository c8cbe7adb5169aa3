/* http: sends values to a server over HTTP, one batch per request, on a persistent connection.
 *
 * settings.c checks the options, client.c wraps libcurl, response.c classifies responses. This file divides
 * batches into requests and reports what was delivered. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>

#include "body.h"
#include "client.h"
#include "settings.h"
#include "response.h"

enum { BODY_MAX = 8 * 1024 * 1024 };

static const weir_default http_defaults[] = {
    {"overflow", "drop_oldest"}, {"queue", "16MiB"}, {"linger", "1s"}, {"format", "json"}, {NULL, NULL}};

struct http {
    const weir_host *host;
    const weir_encoder *encoder;
    const char *header; /* prepended to each request body */
    bool gzip;
    struct settings settings;
    struct response_request request;
    struct client client;
    struct body body;
    uint32_t max_samples; /* limit of samples per request: lowered when a server returns 413 */

    /* Formats of records send one sample per request. State of an interrupted event: the sequence number of
     * the next sample to send, and how many of the samples before it were refused. */
    uint64_t next;
    char origin[33]; /* that `next` is a number of */
    uint32_t refused;
    char refusal[256]; /* the reason of the last refusal */
};

/* ---- Creating -------------------------------------------------------------------------------- */

static bool http_prepare(const weir_host *host)
{
    CURLcode code = curl_global_init(CURL_GLOBAL_ALL);
    if (code != CURLE_OK)
        host->refuse(host, "", "libcurl cannot be used: %s", curl_easy_strerror(code));
    return code == CURLE_OK;
}

static void init_request(struct http *http)
{
    const struct settings *settings = &http->settings;
    http->request = (struct response_request){
        .method = settings->client.method,
        .url = settings->address.display,
        .host = settings->address.host,
        .peer = *settings->proxy.host ? settings->proxy.peer : settings->address.peer,
        .timeout_ms = settings->client.timeout_ms,
        .connect_timeout_ms = settings->client.connect_timeout_ms,
        .secrets = settings->secrets,
    };
}

static void *http_create(const weir_host *host, const void *given)
{
    const struct settings_options *options = given;
    struct http *http = calloc(1, sizeof *http);
    if (!http) {
        host->refuse(host, "", "out of memory");
        return NULL;
    }
    http->host = host;
    http->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    http->header = http->encoder->header(host);
    http->gzip = options->compress == SETTINGS_GZIP;
    http->max_samples = UINT32_MAX;
    client_init(&http->client, host);
    if (!settings_init(&http->settings, host, options, http->encoder->content_type(host))) {
        free(http);
        return NULL;
    }
    init_request(http);
    return http;
}

static void http_destroy(void *self)
{
    struct http *http = self;
    settings_fini(&http->settings);
    body_fini(&http->body);
    free(http);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The first request connects. */
static void http_open(void *self, weir_outcome *outcome)
{
    struct http *http = self;
    if (client_open(&http->client, &http->settings.client))
        return;
    outcome->code = WEIR_OUTCOME_RETRY;
    snprintf(outcome->reason, sizeof outcome->reason, "out of memory or file descriptors");
}

/* Without sending a request, only the connection can be tested. */
static void http_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct http *http = self;
    struct response_request request = http->request;
    struct client_reply reply;
    struct response response;
    http_open(http, outcome);
    if (outcome->code != WEIR_OUTCOME_OK)
        return;
    if (timeout_ms < request.timeout_ms)
        request.timeout_ms = timeout_ms;
    if (client_connect(&http->client, &http->settings.client, timeout_ms, &reply)) {
        snprintf(outcome->reason, sizeof outcome->reason, "%.200s accepts connections", request.peer);
    } else {
        response_classify(&request, &reply, &response);
        outcome->code = WEIR_OUTCOME_RETRY;
        snprintf(outcome->reason, sizeof outcome->reason, "%s", response.message);
    }
    client_close(&http->client);
}

static void http_close(void *self)
{
    struct http *http = self;
    if (client_owns_descriptors(&http->client))
        client_close(&http->client);
    else
        client_forget(&http->client);
}

static void http_abandon(void *self)
{
    const struct http *http = self;
    client_abandon(&http->client);
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* The end of the events that begin at sample `start`: as many events as have at most `max_samples` samples
 * together, but at least one. */
static uint32_t find_end(const weir_batch *batch, uint32_t start, uint32_t max_samples)
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

/* After a 413, the next requests have half of the samples, then grow slowly. */
static void shrink(struct http *http, uint32_t sent)
{
    http->max_samples = sent / 2 ? sent / 2 : 1;
}

static void grow(struct http *http, uint32_t sent)
{
    if (sent >= http->max_samples && http->max_samples < UINT32_MAX / 2)
        http->max_samples += http->max_samples / 8 + 1;
}

static void send_text(struct http *http, const weir_encoded *encoded, struct response *response)
{
    const char *data = encoded->data;
    size_t length = encoded->length;
    struct client_reply reply;
    *response = (struct response){.kind = RESPONSE_DELIVERED};
    if (!length) /* none of the samples can be encoded */
        return;
    if (!body_prepend(&http->body, http->header, &data, &length) ||
        (http->gzip && !body_compress(&http->body, &data, &length))) {
        *response = (struct response){.kind = RESPONSE_RETRY, .message = "out of memory"};
        return;
    }
    client_send(&http->client, data, length, &reply);
    response_classify(&http->request, &reply, response);
}

static bool encode(struct http *http, const weir_batch *batch, uint32_t start, weir_encoded *encoded,
                   struct response *response)
{
    if (http->encoder->encode(http->host, batch, start, BODY_MAX, encoded))
        return true;
    *response = (struct response){.kind = RESPONSE_RETRY, .message = "out of memory"};
    return false;
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

static void set_retry(const struct response *response, weir_outcome *outcome)
{
    outcome->code = WEIR_OUTCOME_RETRY;
    outcome->retry_after_ms = response->retry_after_ms;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", response->message);
}

static void count_refused(const struct http *http, const struct response *response, uint32_t count)
{
    char counter[32];
    snprintf(counter, sizeof counter, "status.%ld", response->status);
    http->host->count(http->host, counter, count);
}

/* ---- Lines and documents --------------------------------------------------------------------- */

/* Sends the next events. Returns false if the emit must return. */
static bool send_events(struct http *http, const weir_batch *batch, weir_outcome *outcome)
{
    weir_batch part = *batch;
    weir_encoded encoded;
    struct response response;
    part.count = find_end(batch, outcome->done, http->max_samples);
    if (encode(http, &part, outcome->done, &encoded, &response))
        send_text(http, &encoded, &response);
    if (response.kind == RESPONSE_RETRY) {
        set_retry(&response, outcome);
        return false;
    }
    if (response.kind == RESPONSE_DELIVERED) {
        grow(http, encoded.count);
        outcome->done += encoded.count;
        return true;
    }
    if (response.kind == RESPONSE_TOO_LARGE &&
        encoded.count > find_end(&part, outcome->done, 1) - outcome->done) {
        shrink(http, encoded.count);
        return true;
    }
    count_refused(http, &response, encoded.count);
    outcome->done += encoded.count;
    outcome->rejected = encoded.count;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", response.message);
    return false; /* the reason applies to these samples alone */
}

/* ---- Records --------------------------------------------------------------------------------- */

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

static void send_records(struct http *http, const weir_batch *batch, weir_outcome *outcome)
{
    uint32_t pos = find_start(http, batch);
    bool proceed = true;
    while (proceed && pos < batch->count) {
        weir_encoded encoded;
        struct response response;
        if (encode(http, batch, pos, &encoded, &response))
            send_text(http, &encoded, &response);
        if (response.kind == RESPONSE_RETRY) {
            set_retry(&response, outcome);
            return;
        }
        if (response.kind != RESPONSE_DELIVERED) {
            count_refused(http, &response, 1);
            http->refused++;
            snprintf(http->refusal, sizeof http->refusal, "%s", response.message);
        }
        pos += encoded.count;
        proceed = report_records(http, batch, pos, outcome);
    }
}

/* ---- The type -------------------------------------------------------------------------------- */

/* If the program has closed all descriptors, as daemons do, opens new ones. */
static bool ensure_open(struct http *http, weir_outcome *outcome)
{
    if (!client_owns_descriptors(&http->client))
        client_forget(&http->client);
    if (!client_is_open(&http->client))
        http_open(http, outcome);
    return outcome->code == WEIR_OUTCOME_OK;
}

static void http_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct http *http = self;
    outcome->done = 0;
    if (!ensure_open(http, outcome))
        return;
    if (http->encoder->format(http->host) == WEIR_FORMAT_RECORDS) {
        send_records(http, batch, outcome);
        return;
    }
    while (outcome->done < batch->count && send_events(http, batch, outcome))
        ;
}

static const weir_handler_type http_type = {
    .size = sizeof http_type,
    .abi = WEIR_ABI,
    .name = "http",
    .summary = "sends values to a server over HTTP",
    .formats = WEIR_FORMAT_LINES | WEIR_FORMAT_DOCUMENTS | WEIR_FORMAT_RECORDS,
    .options = settings_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct settings_options),
    .defaults = http_defaults,
    .prepare = http_prepare,
    .create = http_create,
    .open = http_open,
    .emit = http_emit,
    .close = http_close,
    .destroy = http_destroy,
    .abandon = http_abandon,
    .probe = http_probe,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &http_type : NULL;
}
