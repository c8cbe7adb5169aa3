/* http: sends values to a server over HTTP, one batch per request, on a persistent connection. */

#include "http.h"

#include "../system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

static const weir_default http_defaults[] = {
    {"overflow", "drop_oldest"}, {"queue", "16MiB"}, {"linger", "1s"}, {"format", "json"}, {NULL, NULL}};

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
    struct http *http = wr_system_allocate(host, sizeof *http);
    if (!http)
        return NULL;
    http->host = host;
    http->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    http->protocol = wr_protocol_find(host, http->encoder);
    http->header = http->encoder->header(host);
    http->gzip = options->compress == SETTINGS_GZIP;
    http->max_samples = UINT32_MAX;
    http->search.max_samples = UINT32_MAX;
    wr_client_init(&http->client, host);
    if (!wr_settings_init(&http->settings, host, options, http->encoder->content_type(host), http->protocol)) {
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
    wr_buffer_fini(&http->body);
    wr_bulk_fini(&http->bulk);
    free(http);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The first request connects. */
static void http_open(void *self, weir_outcome *outcome)
{
    struct http *http = self;
    if (!wr_client_open(&http->client, &http->settings.client))
        wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "out of memory or file descriptors");
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
        wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "%s", response.message);
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
    http->protocol->emit(http, batch, outcome);
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
    .flags = WEIR_TYPE_WORKS_AT_EXIT,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &http_type : NULL;
}
