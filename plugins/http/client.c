#include "client.h"

#include <string.h>
#include <strings.h>

#include <weir/version.h>

#include "address.h"

enum {
    POLL_MS = 100,              /* how often a wait checks for a stop */
    REPLY_MAX = 64 * 1024,      /* bytes read of a reply */
    UPLOAD_BUFFER = 256 * 1024, /* reduces send(2) calls */
    CONNECTION_LIFE_S = 300,    /* then the name is resolved again */
    HEADERS_MAX = 64 * 1024,
};

/* ---- Receiving ------------------------------------------------------------------------------- */

static bool feed_sink(const struct client *client, const char *data, size_t length)
{
    long status = 0;
    curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!client->sink || status < 200 || status >= 300)
        return client->reply_bytes <= REPLY_MAX;
    return client->sink->take(client->sink->ctx, data, length);
}

/* Keeps the beginning and aborts the transfer after REPLY_MAX bytes, or as the sink says. */
static size_t receive_body(char *data, size_t size, size_t count, void *ctx)
{
    struct client *client = ctx;
    struct client_reply *reply = client->reply;
    size_t length = size * count, room = CLIENT_TEXT - 1 - reply->text_length;
    memcpy(reply->text + reply->text_length, data, length < room ? length : room);
    reply->text_length += length < room ? length : room;
    client->reply_bytes += length;
    return feed_sink(client, data, length) ? length : 0;
}

/* libcurl takes a number of seconds beyond 64 bits for none. */
static void read_retry_after(struct client_reply *reply, const char *data, size_t length)
{
    static const char name[] = "retry-after:";
    size_t at = sizeof name - 1, digits = 0;
    if (length < at || strncasecmp(data, name, at) != 0)
        return;
    while (at < length && (data[at] == ' ' || data[at] == '\t' || data[at] == '0'))
        at++;
    while (at + digits < length && data[at + digits] >= '0' && data[at + digits] <= '9')
        digits++;
    reply->is_retry_after_huge = digits > 18;
}

static size_t receive_header(char *data, size_t size, size_t count, void *ctx)
{
    struct client *client = ctx;
    size_t length = size * count;
    long status = 0;
    curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && (*data == '\r' || *data == '\n'))
        client->responded = true;
    read_retry_after(client->reply, data, length);
    client->header_bytes += length;
    return client->header_bytes > HEADERS_MAX ? 0 : length;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void set_text(CURL *easy, CURLoption option, const char *text)
{
    if (text)
        curl_easy_setopt(easy, option, text);
}

static void set_callbacks(struct client *client)
{
    CURL *easy = client->easy;
    wr_sockets_attach(&client->sockets, easy);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
}

static void set_tls(CURL *easy, const struct client_settings *settings)
{
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, settings->verify ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, settings->verify ? 2L : 0L);
    if (settings->ca_file) { /* and no other certificate authority */
        curl_easy_setopt(easy, CURLOPT_CAINFO, settings->ca_file);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    set_text(easy, CURLOPT_SSLCERT, settings->cert_file);
    set_text(easy, CURLOPT_SSLKEY, settings->key_file);
}

/* An empty proxy means none; NULL would make libcurl read the environment, at any time. */
static void set_request(CURL *easy, const struct client_settings *settings)
{
    curl_easy_setopt(easy, CURLOPT_URL, settings->url);
    curl_easy_setopt(easy, CURLOPT_PROXY, settings->proxy ? settings->proxy : "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, settings->method);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, settings->headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "weir/" WEIR_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
    set_text(easy, CURLOPT_USERNAME, settings->username);
    set_text(easy, CURLOPT_PASSWORD, settings->password);
}

static void set_limits(CURL *easy, const struct client_settings *settings)
{
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)settings->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)settings->connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, (long)CONNECTION_LIFE_S);
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a resolver thread that hangs */
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
}

void wr_client_init(struct client *client, const weir_host *host)
{
    *client = (struct client){.host = host, .waiting = host->service(host, WEIR_SERVICE_BLOCKING_CALL)};
    wr_sockets_init(&client->sockets);
}

bool wr_client_open(struct client *client, const struct client_settings *settings)
{
    client->multi = curl_multi_init();
    client->easy = curl_easy_init();
    if (!client->multi || !client->easy || !wr_sockets_open(&client->sockets, client->multi)) {
        wr_client_close(client);
        return false;
    }
    set_callbacks(client);
    set_request(client->easy, settings);
    set_tls(client->easy, settings);
    set_limits(client->easy, settings);
    return true;
}

static int abort_request(void *ctx, char *remote, char *local, int remote_port, int local_port)
{
    (void)ctx, (void)remote, (void)local, (void)remote_port, (void)local_port;
    return CURL_PREREQFUNC_ABORT;
}

/* When libcurl closes a persistent connection during cleanup, it changes the disposition of SIGPIPE for a
 * moment; during a transfer with CURLOPT_NOSIGNAL it does not. So start one more request on that connection
 * and abort it before anything is sent: this closes the connection. */
static void disconnect(struct client *client)
{
    int running;
    curl_easy_setopt(client->easy, CURLOPT_PREREQFUNCTION, abort_request);
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, "");
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
    if (curl_multi_add_handle(client->multi, client->easy) != CURLM_OK)
        return;
    curl_multi_perform(client->multi, &running);
    curl_multi_remove_handle(client->multi, client->easy);
}

void wr_client_close(struct client *client)
{
    if (client->easy && client->multi && wr_sockets_have_connection(&client->sockets))
        disconnect(client);
    if (client->easy)
        curl_easy_cleanup(client->easy);
    if (client->multi)
        curl_multi_cleanup(client->multi);
    wr_sockets_close(&client->sockets);
    client->easy = NULL;
    client->multi = NULL;
}

bool wr_client_is_open(const struct client *client)
{
    return client->easy;
}

bool wr_client_owns_descriptors(struct client *client)
{
    curl_socket_t active = CURL_SOCKET_BAD;
    if (client->easy)
        curl_easy_getinfo(client->easy, CURLINFO_ACTIVESOCKET, &active);
    wr_sockets_forget_closed(&client->sockets, active);
    return wr_sockets_are_ours(&client->sockets);
}

void wr_client_forget(struct client *client)
{
    wr_sockets_init(&client->sockets);
    client->easy = NULL;
    client->multi = NULL;
}

void wr_client_abandon(const struct client *client)
{
    wr_sockets_abandon(&client->sockets);
}

/* ---- A request ------------------------------------------------------------------------------- */

/* While a resolver thread is inside the C library, a forked child would inherit its locks in locked state: a
 * fork must wait for it, as for any other foreign code. */
static bool is_resolving(const struct client *client)
{
    curl_off_t resolved_us = 0;
    curl_easy_getinfo(client->easy, CURLINFO_NAMELOOKUP_TIME_T, &resolved_us);
    return resolved_us == 0;
}

static void wait_for_activity(struct client *client)
{
    bool may_fork = client->waiting && !is_resolving(client);
    if (may_fork)
        client->waiting->begin(client->host);
    curl_multi_poll(client->multi, NULL, 0, POLL_MS, NULL);
    if (may_fork)
        client->waiting->end(client->host);
}

static bool is_expired(const struct client *client)
{
    return client->waiting && client->waiting->remaining_ms(client->host) == 0;
}

/* Returns how the request ended, ignoring a received status: CLIENT_FAILED if libcurl is done, with or
 * without success. */
static enum client_end run(struct client *client)
{
    int running = 1;
    while (curl_multi_perform(client->multi, &running) == CURLM_OK) {
        if (!running)
            return CLIENT_FAILED;
        wait_for_activity(client);
        if (is_expired(client))
            return CLIENT_STOPPED;
    }
    return CLIENT_NO_MEMORY;
}

static CURLcode find_result(const struct client *client)
{
    int left;
    for (const CURLMsg *message; (message = curl_multi_info_read(client->multi, &left));)
        if (message->msg == CURLMSG_DONE && message->easy_handle == client->easy)
            return message->data.result;
    return CURLE_FAILED_INIT;
}

static bool is_set(CURL *easy, CURLINFO time)
{
    curl_off_t us = 0;
    curl_easy_getinfo(easy, time, &us);
    return us > 0;
}

static void read_reply(const struct client *client, struct client_reply *reply)
{
    CURL *easy = client->easy;
    long system_error = 0;
    curl_off_t retry_after_s = 0;
    const char *redirect = NULL;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &reply->status);
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &system_error);
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &redirect);
    reply->system_error = (int)system_error;
    reply->retry_after_s = retry_after_s > 0 ? retry_after_s : 0;
    if (reply->is_retry_after_huge)
        reply->retry_after_s = INT64_MAX;
    curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &reply->connect_status);
    reply->resolved = is_set(easy, CURLINFO_NAMELOOKUP_TIME_T);
    reply->connected = is_set(easy, CURLINFO_PRETRANSFER_TIME_T);
    if (redirect)
        wr_address_format(redirect, reply->redirect, sizeof reply->redirect);
    reply->text[reply->text_length] = '\0';
    reply->text_is_cut = client->reply_bytes > reply->text_length || reply->result != CURLE_OK;
}

/* A status takes effect once its headers are complete, whatever happens to the rest. */
static enum client_end find_end(const struct client *client, enum client_end end)
{
    if (client->responded)
        return CLIENT_RESPONDED;
    return client->header_bytes > HEADERS_MAX ? CLIENT_HEADERS_TOO_LARGE : end;
}

static void perform(struct client *client, struct client_reply *reply)
{
    *reply = (struct client_reply){.end = CLIENT_NO_MEMORY};
    if (is_expired(client)) {
        reply->end = CLIENT_STOPPED;
        return;
    }
    client->reply = reply;
    client->reply_bytes = client->header_bytes = 0;
    client->responded = false;
    curl_easy_setopt(client->easy, CURLOPT_ERRORBUFFER, reply->error);
    if (curl_multi_add_handle(client->multi, client->easy) != CURLM_OK)
        return;
    enum client_end end = run(client);
    reply->result = find_result(client);
    read_reply(client, reply);
    curl_multi_remove_handle(client->multi, client->easy);
    curl_easy_setopt(client->easy, CURLOPT_ERRORBUFFER, NULL);
    reply->end = find_end(client, end);
    client->reply = NULL;
}

void wr_client_send(struct client *client, const char *body, size_t length, const struct client_sink *sink,
                    struct client_reply *reply)
{
    client->sink = sink;
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
    perform(client, reply);
    client->sink = NULL;
}

long wr_client_get(struct client *client, const struct client_settings *settings)
{
    struct client_reply reply;
    curl_easy_setopt(client->easy, CURLOPT_CUSTOMREQUEST, NULL);
    curl_easy_setopt(client->easy, CURLOPT_HTTPGET, 1L);
    perform(client, &reply);
    curl_easy_setopt(client->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(client->easy, CURLOPT_CUSTOMREQUEST, settings->method);
    return reply.end == CLIENT_RESPONDED ? reply.status : 0;
}

static long min_ms(int64_t a, int64_t b)
{
    return (long)(a < b ? a : b);
}

/* Starts a request and aborts it once the connection is ready for sending. */
bool wr_client_connect(struct client *client, const struct client_settings *settings, int64_t timeout_ms,
                       struct client_reply *reply)
{
    CURL *easy = client->easy;
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, min_ms(settings->timeout_ms, timeout_ms));
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, min_ms(settings->connect_timeout_ms, timeout_ms));
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, abort_request);
    wr_client_send(client, "", 0, NULL, reply);
    return reply->end == CLIENT_FAILED && reply->result == CURLE_ABORTED_BY_CALLBACK;
}
