/* tls: a handler type for tests that posts each batch by libcurl over TLS, and spends most of its time there.
 */

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/handler.h>

struct options {
    const char *url, *ca;
};

static const weir_option rows[] = {
    {"url", WEIR_OPTION_STRING, WEIR_OPTION_REQUIRED, NULL, NULL, "where to post",
     offsetof(struct options, url)},
    {"ca", WEIR_OPTION_PATH, WEIR_OPTION_REQUIRED, NULL, NULL, "the certificate", offsetof(struct options, ca)},
    {0},
};

struct tls {
    const weir_host *host;
    const weir_encoder *encoder;
    const struct options *options;
    CURL *curl;
    curl_socket_t socket;
};

static void *create(const weir_host *host, const void *options)
{
    struct tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return NULL;
    tls->host = host;
    tls->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    tls->options = options;
    tls->socket = CURL_SOCKET_BAD;
    return tls;
}

static size_t discard(char *data, size_t size, size_t count, void *ctx)
{
    (void)data;
    (void)ctx;
    return size * count;
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct tls *tls = self;
    tls->curl = curl_easy_init();
    if (!tls->curl) {
        outcome->code = WEIR_OUTCOME_RETRY;
        return;
    }
    curl_easy_setopt(tls->curl, CURLOPT_URL, tls->options->url);
    curl_easy_setopt(tls->curl, CURLOPT_CAINFO, tls->options->ca);
    curl_easy_setopt(tls->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(tls->curl, CURLOPT_TIMEOUT, 20L);
    curl_easy_setopt(tls->curl, CURLOPT_WRITEFUNCTION, discard);
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct tls *tls = self;
    weir_encoded encoded;
    outcome->done = 0;
    if (!tls->encoder->encode(tls->host, batch, 0, SIZE_MAX, &encoded)) {
        outcome->code = WEIR_OUTCOME_RETRY;
        return;
    }
    curl_easy_setopt(tls->curl, CURLOPT_POSTFIELDS, encoded.data);
    curl_easy_setopt(tls->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)encoded.length);
    CURLcode result = curl_easy_perform(tls->curl);
    curl_easy_getinfo(tls->curl, CURLINFO_ACTIVESOCKET, &tls->socket);
    if (result == CURLE_OK) {
        outcome->done = batch->count;
        return;
    }
    outcome->code = WEIR_OUTCOME_REOPEN;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", curl_easy_strerror(result));
}

static void close_it(void *self)
{
    struct tls *tls = self;
    curl_easy_cleanup(tls->curl);
    tls->curl = NULL;
    tls->socket = CURL_SOCKET_BAD;
}

static void abandon(void *self)
{
    const struct tls *tls = self;
    if (tls->socket != CURL_SOCKET_BAD)
        close(tls->socket);
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "tls",
    .summary = "posts over TLS, for tests",
    .formats = WEIR_FORMAT_LINES,
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .create = create,
    .open = open_it,
    .emit = emit,
    .close = close_it,
    .destroy = free,
    .abandon = abandon,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
