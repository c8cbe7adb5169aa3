/* http: sends values to a server over HTTP, one batch per request, on a persistent connection.
 *
 * settings.c checks the options, client.c wraps libcurl, response.c classifies responses. This file divides
 * batches into requests and reports what was delivered. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <weir/handler.h>

#include "body.h"
#include "client.h"
#include "settings.h"
#include "response.h"

enum { BODY_MAX = 8 * 1024 * 1024, RECORD_TRIES = 5, REFUSALS_MAX = 40 };

static const weir_default http_defaults[] = {
    {"overflow", "drop_oldest"}, {"queue", "16MiB"}, {"linger", "1s"}, {"format", "json"}, {NULL, NULL}};

/* A record that the server responds to with 500. */
struct failing_record {
    char origin[33];
    uint64_t sequence;
    unsigned tries;          /* 0: there is none */
    bool refused_before;     /* and no record of refused_series was delivered since */
    uint32_t refused_series; /* that of the last record refused for this */
};

/* For the event that makes a server refuse a request of many. */
struct search {
    uint32_t max_samples; /* limit of samples per request; UINT32_MAX: no search */
    unsigned refusals;    /* in a row */
};

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
    struct search search;

    /* Formats of records send one sample per request. State of an interrupted event: the sequence number of
     * the next sample to send, and how many of the samples before it were refused. */
    uint64_t next;
    char origin[33]; /* that `next` is a number of */
    uint32_t refused;
    char refusal[256]; /* the reason of the last refusal */
    struct failing_record failing;
};

/* ---- Creating -------------------------------------------------------------------------------- */

/* In a program with the privileges of another user than its caller, the caller could have libcurl write TLS
 * keys to any file (SSLKEYLOGFILE), or OpenSSL load any library (OPENSSL_CONF). */
static bool http_prepare(const weir_host *host)
{
    if (getauxval(AT_SECURE)) {
        host->refuse(
            host, "",
            "not available in a program with raised privileges (setuid, setgid, capabilities): libcurl "
            "and its libraries read the environment of the user who starts it");
        return false;
    }
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
        .secrets = (const char *const *)settings->secrets,
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
    http->search.max_samples = UINT32_MAX;
    wr_client_init(&http->client, host);
    if (!wr_settings_init(&http->settings, host, options, http->encoder->content_type(host))) {
        free(http);
        return NULL;
    }
    init_request(http);
    return http;
}

static void http_destroy(void *self)
{
    struct http *http = self;
    wr_settings_fini(&http->settings);
    wr_body_fini(&http->body);
    free(http);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The first request connects. */
static void http_open(void *self, weir_outcome *outcome)
{
    struct http *http = self;
    if (wr_client_open(&http->client, &http->settings.client))
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
    if (wr_client_connect(&http->client, &http->settings.client, timeout_ms, &reply)) {
        snprintf(outcome->reason, sizeof outcome->reason, "%.200s accepts connections", request.peer);
    } else {
        wr_response_classify(&request, &reply, &response);
        outcome->code = WEIR_OUTCOME_RETRY;
        snprintf(outcome->reason, sizeof outcome->reason, "%s", response.message);
    }
    wr_client_close(&http->client);
}

static void http_close(void *self)
{
    struct http *http = self;
    if (wr_client_owns_descriptors(&http->client))
        wr_client_close(&http->client);
    else
        wr_client_forget(&http->client);
}

static void http_abandon(void *self)
{
    const struct http *http = self;
    wr_client_abandon(&http->client);
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
    if (!wr_body_prepend(&http->body, http->header, &data, &length) ||
        (http->gzip && !wr_body_compress(&http->body, &data, &length))) {
        *response = (struct response){.kind = RESPONSE_RETRY, .message = "out of memory"};
        return;
    }
    wr_client_send(&http->client, data, length, &reply);
    wr_response_classify(&http->request, &reply, response);
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

/* How many of the samples the server has refused. Lines are events, and may have several samples: if all do not
 * have the same number, this is an estimate. */
static uint32_t count_refused_samples(const weir_encoded *encoded, const struct response *response)
{
    uint64_t lines = 0;
    if (!response->dropped_points)
        return encoded->count;
    for (size_t i = 0; i < encoded->length; i++)
        lines += encoded->data[i] == '\n';
    if (response->dropped_points >= lines)
        return encoded->count;
    return (uint32_t)((response->dropped_points * (uint64_t)encoded->count + lines - 1) / lines);
}

/* One line that a server cannot take makes it refuse the whole request, with many that it would take. So what
 * it refuses is halved, until it takes one half, or refuses a single event; so is what it stores in part, until
 * its reply is short enough to count the others. The limit is for servers that refuse everything, for instance
 * because of the URL. Returns whether a smaller request is to be sent. */
static bool search_refused(struct http *http, const weir_batch *batch, uint32_t start, uint32_t count,
                           const struct response *response)
{
    struct search *search = &http->search;
    bool by_content = (response->status == 400 || response->status == 422) && !response->dropped_points;
    if (!by_content || http->encoder->format(http->host) != WEIR_FORMAT_LINES)
        return false;
    bool single = count <= find_end(batch, start, 1) - start;
    search->max_samples = single ? UINT32_MAX : count / 2 ? count / 2 : 1;
    if (search->refusals < REFUSALS_MAX)
        search->refusals++;
    else
        search->max_samples = UINT32_MAX;
    return search->max_samples < UINT32_MAX;
}

/* Sends the next events. Returns false if the emit must return. */
static bool send_events(struct http *http, const weir_batch *batch, weir_outcome *outcome)
{
    weir_batch part = *batch;
    weir_encoded encoded;
    struct response response;
    part.count =
        find_end(batch, outcome->done,
                 http->max_samples < http->search.max_samples ? http->max_samples : http->search.max_samples);
    if (encode(http, &part, outcome->done, &encoded, &response))
        send_text(http, &encoded, &response);
    if (response.kind == RESPONSE_RETRY) {
        set_retry(&response, outcome);
        return false;
    }
    if (response.kind == RESPONSE_DELIVERED) {
        grow(http, encoded.count);
        http->search.refusals = 0;
        outcome->done += encoded.count;
        if (outcome->done == batch->count)
            http->search.max_samples = UINT32_MAX;
        return true;
    }
    if (response.kind == RESPONSE_TOO_LARGE &&
        encoded.count > find_end(&part, outcome->done, 1) - outcome->done) {
        shrink(http, encoded.count);
        return true;
    }
    if (search_refused(http, &part, outcome->done, encoded.count, &response))
        return true;
    uint32_t refused = count_refused_samples(&encoded, &response);
    if (refused < encoded.count)
        http->search.refusals = 0;
    count_refused(http, &response, refused);
    outcome->done += encoded.count;
    outcome->rejected = refused;
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
    bool known = failing->refused_before && failing->refused_series == sample->series;
    if (!known && tries < RECORD_TRIES)
        return;
    long status = wr_client_get(&http->client, &http->settings.client);
    if (status < 200 || status >= 300)
        return;
    const weir_series *series = weir_batch_series(batch, sample);
    char cause[104];
    snprintf(cause, sizeof cause, "%.103s", response->message);
    snprintf(response->message, sizeof response->message, "\"%.60s\" of group \"%.40s\", tried %u times: %s",
             series->name, series->group, tries, cause);
    if (!known)
        http->host->log(http->host, WEIR_LOG_WARNING, "rejects %s", response->message);
    response->kind = RESPONSE_REFUSED;
    failing->tries = 0;
    failing->refused_before = true;
    failing->refused_series = sample->series;
}

/* The server accepts records of this series. */
static void note_delivered(struct http *http, uint32_t series)
{
    if (http->failing.refused_series == series)
        http->failing.refused_before = false;
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
        refuse_if_only_record_fails(http, batch, pos, &response);
        if (response.kind == RESPONSE_RETRY) {
            set_retry(&response, outcome);
            return;
        }
        if (response.kind == RESPONSE_DELIVERED && encoded.length)
            note_delivered(http, batch->samples[pos].series);
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
    if (!wr_client_owns_descriptors(&http->client))
        wr_client_forget(&http->client);
    if (!wr_client_is_open(&http->client))
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
    .options = wr_settings_table,
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
