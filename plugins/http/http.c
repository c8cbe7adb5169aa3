/* http: sends values to a server, a batch at a time, over one connection that is kept.
 *
 * What the options come to is in settings.c, libcurl in client.c, the meaning of answers in response.c; here is
 * what is sent, in which pieces, and what that settles. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>

#include "body.h"
#include "client.h"
#include "settings.h"
#include "response.h"

enum { BODY_MOST = 8 * 1024 * 1024 };

static const weir_default http_defaults[] = {
    {"overflow", "drop_oldest"}, {"queue", "16MiB"}, {"linger", "1s"}, {"format", "json"}, {NULL, NULL}};

struct http {
    const weir_host *host;
    const weir_encoder *encoder;
    const char *header; /* of each request */
    bool gzip;
    struct settings settings;
    struct response_site site;
    struct client client;
    struct body body;
    uint32_t most; /* samples a request: less than all once a server found a request too large */

    /* Of an event whose samples go one by one, when it was interrupted: the first sample that the server has
     * not had yet, and how many of those before it were refused. */
    uint64_t next;
    uint32_t refused;
    char refusal[256]; /* why */
};

/* ---- Creating -------------------------------------------------------------------------------- */

static bool http_prepare(const weir_host *host)
{
    CURLcode code = curl_global_init(CURL_GLOBAL_ALL);
    if (code != CURLE_OK)
        host->refuse(host, "", "libcurl cannot be used: %s", curl_easy_strerror(code));
    return code == CURLE_OK;
}

static void fill_site(struct http *http)
{
    const struct settings *settings = &http->settings;
    http->site = (struct response_site){
        .method = settings->client.method,
        .url = settings->address.shown,
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
        host->refuse(host, "", "no memory");
        return NULL;
    }
    http->host = host;
    http->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    http->header = http->encoder->header(host);
    http->gzip = options->compress == SETTINGS_GZIP;
    http->most = UINT32_MAX;
    client_init(&http->client, host);
    if (!settings_init(&http->settings, host, options, http->encoder->content_type(host))) {
        free(http);
        return NULL;
    }
    fill_site(http);
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

/* The connection itself is made with the first request. */
static void http_open(void *self, weir_outcome *outcome)
{
    struct http *http = self;
    if (client_open(&http->client, &http->settings.client))
        return;
    outcome->code = WEIR_OUTCOME_RETRY;
    snprintf(outcome->reason, sizeof outcome->reason, "no memory, or no descriptors");
}

/* A connection is all that can be tried without sending something. */
static void http_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct http *http = self;
    struct response_site site = http->site;
    struct client_reply reply;
    struct response response;
    http_open(http, outcome);
    if (outcome->code != WEIR_OUTCOME_OK)
        return;
    if (timeout_ms < site.timeout_ms)
        site.timeout_ms = timeout_ms;
    if (client_connect(&http->client, &http->settings.client, timeout_ms, &reply)) {
        snprintf(outcome->reason, sizeof outcome->reason, "%.200s takes connections", site.peer);
    } else {
        response_find(&site, &reply, &response);
        outcome->code = WEIR_OUTCOME_RETRY;
        snprintf(outcome->reason, sizeof outcome->reason, "%s", response.words);
    }
    client_close(&http->client);
}

static void http_close(void *self)
{
    struct http *http = self;
    if (client_is_whole(&http->client))
        client_close(&http->client);
    else
        client_forget(&http->client);
}

static void http_abandon(void *self)
{
    const struct http *http = self;
    client_abandon(&http->client);
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* Where the events end that begin with sample number start and have at most `most` samples, or the first one of
 * them has. */
static uint32_t find_end(const weir_batch *batch, uint32_t start, uint32_t most)
{
    uint32_t end = start;
    for (uint32_t i = start; i < batch->count; i++) {
        if (batch->samples[i].flags & WEIR_SAMPLE_MORE && i + 1 < batch->count)
            continue;
        if (end > start && i + 1 - start > most)
            break;
        end = i + 1;
    }
    return end;
}

/* A server that found a request too large is sent half of it, and from then on a little more each time. */
static void shrink(struct http *http, uint32_t sent)
{
    http->most = sent / 2 ? sent / 2 : 1;
}

static void grow(struct http *http, uint32_t sent)
{
    if (sent >= http->most && http->most < UINT32_MAX / 2)
        http->most += http->most / 8 + 1;
}

static void send_text(struct http *http, const weir_encoded *encoded, struct response *response)
{
    const char *data = encoded->data;
    size_t length = encoded->length;
    struct client_reply reply;
    *response = (struct response){.kind = RESPONSE_DELIVERED};
    if (!length) /* nothing of it could be written */
        return;
    if (!body_begin(&http->body, http->header, &data, &length) ||
        (http->gzip && !body_compress(&http->body, &data, &length))) {
        *response = (struct response){.kind = RESPONSE_LATER, .words = "no memory"};
        return;
    }
    client_send(&http->client, data, length, &reply);
    response_find(&http->site, &reply, response);
}

static bool encode(struct http *http, const weir_batch *batch, uint32_t start, weir_encoded *encoded,
                   struct response *response)
{
    if (http->encoder->encode(http->host, batch, start, BODY_MOST, encoded))
        return true;
    *response = (struct response){.kind = RESPONSE_LATER, .words = "no memory"};
    return false;
}

/* ---- Settling -------------------------------------------------------------------------------- */

static void come_back_later(const struct response *response, weir_outcome *outcome)
{
    outcome->code = WEIR_OUTCOME_RETRY;
    outcome->retry_after_ms = response->retry_after_ms;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", response->words);
}

static void count_refused(const struct http *http, const struct response *response, uint32_t count)
{
    char counter[32];
    snprintf(counter, sizeof counter, "status.%ld", response->status);
    http->host->count(http->host, counter, count);
}

/* ---- Lines and documents --------------------------------------------------------------------- */

/* Sends the events that follow; false: enough for now. */
static bool send_piece(struct http *http, const weir_batch *batch, weir_outcome *outcome)
{
    weir_batch piece = *batch;
    weir_encoded encoded;
    struct response response;
    piece.count = find_end(batch, outcome->done, http->most);
    if (encode(http, &piece, outcome->done, &encoded, &response))
        send_text(http, &encoded, &response);
    if (response.kind == RESPONSE_LATER) {
        come_back_later(&response, outcome);
        return false;
    }
    if (response.kind == RESPONSE_DELIVERED) {
        grow(http, encoded.count);
        outcome->done += encoded.count;
        return true;
    }
    if (response.kind == RESPONSE_TOO_LARGE &&
        encoded.count > find_end(&piece, outcome->done, 1) - outcome->done) {
        shrink(http, encoded.count);
        return true;
    }
    count_refused(http, &response, encoded.count);
    outcome->done += encoded.count;
    outcome->rejected = encoded.count;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", response.words);
    return false; /* the reason is that of these alone */
}

/* ---- Records --------------------------------------------------------------------------------- */

/* An event that was interrupted goes on where it was, so that no sample is sent again that the server has had.
 */
static uint32_t find_start(struct http *http, const weir_batch *batch)
{
    bool interrupted = http->next > batch->sequence && http->next < batch->sequence + batch->count;
    if (!interrupted)
        http->refused = 0;
    return interrupted ? (uint32_t)(http->next - batch->sequence) : 0;
}

/* Samples in front of `end` have been sent, one by one; the core knows of whole events only. false: enough for
 * now. */
static bool settle_records(struct http *http, const weir_batch *batch, uint32_t end, weir_outcome *outcome)
{
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
    uint32_t at = find_start(http, batch);
    bool go_on = true;
    while (go_on && at < batch->count) {
        weir_encoded encoded;
        struct response response;
        if (encode(http, batch, at, &encoded, &response))
            send_text(http, &encoded, &response);
        if (response.kind == RESPONSE_LATER) {
            come_back_later(&response, outcome);
            return;
        }
        if (response.kind != RESPONSE_DELIVERED) {
            count_refused(http, &response, 1);
            http->refused++;
            snprintf(http->refusal, sizeof http->refusal, "%s", response.words);
        }
        at += encoded.count;
        go_on = settle_records(http, batch, at, outcome);
    }
}

/* ---- The type -------------------------------------------------------------------------------- */

/* A program that has closed all descriptors, as daemons do, gets new ones. */
static bool is_ready(struct http *http, weir_outcome *outcome)
{
    if (!client_is_whole(&http->client))
        client_forget(&http->client);
    if (!client_is_open(&http->client))
        http_open(http, outcome);
    return outcome->code == WEIR_OUTCOME_OK;
}

static void http_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct http *http = self;
    outcome->done = 0;
    if (!is_ready(http, outcome))
        return;
    if (http->encoder->format(http->host) == WEIR_FORMAT_RECORDS) {
        send_records(http, batch, outcome);
        return;
    }
    while (outcome->done < batch->count && send_piece(http, batch, outcome))
        ;
}

static const weir_handler_type http_type = {
    .size = sizeof http_type,
    .abi = WEIR_ABI,
    .name = "http",
    .summary = "sends values to a server by HTTP",
    .formats = WEIR_FORMAT_LINES | WEIR_FORMAT_DOCUMENTS | WEIR_FORMAT_RECORDS,
    .options = settings_rows,
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
