#include "response.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../system.h"

enum { EXCERPT_BYTES = 120, MIN_SECRET_BYTES = 4, MAX_DELAY_S = 86400 };

/* A server may echo what it was sent, and a redirect's target may contain it. */
static void mask(char *text, const char *secret)
{
    size_t length = strlen(secret);
    if (length < MIN_SECRET_BYTES)
        return;
    for (char *found = strstr(text, secret); found; found = strstr(found + length, secret))
        memset(found, '*', length);
}

void wr_response_set_message(struct response *response, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (const char *const *secret = response->secrets; *secret; secret++)
        mask(text, *secret);
    memcpy(response->message, text, sizeof response->message - 1);
    response->message[sizeof response->message - 1] = '\0';
}

/* ---- Text of the reply ----------------------------------------------------------------------- */

/* The beginning of the reply, masked and without surrounding blanks. */
static const char *make_excerpt(const struct response_request *request, struct client_reply *reply)
{
    static const char blanks[] = " \t\r\n";
    for (const char *const *secret = request->secrets; *secret; secret++)
        mask(reply->text, *secret);
    char *text = reply->text + strspn(reply->text, blanks);
    size_t length = strlen(text);
    if (length > EXCERPT_BYTES) {
        length = EXCERPT_BYTES;
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80) /* not within a UTF-8 character */
            length--;
        memcpy(text + length, "...", 4);
        return text;
    }
    while (length && strchr(blanks, text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

static void set_status_message(const struct response_request *request, struct client_reply *reply,
                               struct response *response)
{
    const char *text = make_excerpt(request, reply);
    wr_response_set_message(response, "%s %s: returned %ld%s%s", request->method, request->url, reply->status,
                            *text ? ": " : "", text);
}

/* ---- Status ---------------------------------------------------------------------------------- */

static int64_t retry_delay_ms(const struct client_reply *reply)
{
    int64_t seconds = reply->retry_after_s < MAX_DELAY_S ? reply->retry_after_s : MAX_DELAY_S;
    return seconds * 1000;
}

/* Of a target elsewhere only the server is shown: its path may be a secret, such as a session's. */
static void classify_redirect(const struct response_request *request, struct client_reply *reply,
                              struct response *response)
{
    size_t length = strlen(request->url);
    bool only_slash =
        strncmp(reply->redirect, request->url, length) == 0 && strcmp(reply->redirect + length, "/") == 0;
    char *path = strstr(reply->redirect, "://");
    path = path ? strchr(path + 3, '/') : NULL;
    if (!only_slash && path && strlen(path) > 4)
        memcpy(path, "/...", 5);
    response->kind = RESPONSE_RETRY;
    response->retry_after_ms = RESPONSE_DELAY_MAX;
    wr_response_set_message(response, "%s %s: returned %ld%s%.70s; %s", request->method, request->url,
                            reply->status, *reply->redirect ? ", a redirect to " : "", reply->redirect,
                            only_slash ? "add the slash to \"url\"" : "redirects are not followed");
}

/* InfluxDB 1.x stores the other points, and reports dropped=0 if it could not parse some. Returns how many
 * points were not stored; 0: the reply does not show it, as one that names more points than are read of it. */
static uint32_t count_dropped_points(const struct client_reply *reply)
{
    const char *at =
        reply->status == 400 && !reply->text_is_cut ? strstr(reply->text, "partial write: ") : NULL;
    const char *dropped = NULL;
    uint32_t unparsed = 0;
    if (!at)
        return 0;
    for (const char *next = at; (next = strstr(next, "unable to parse ")); next++)
        unparsed++;
    for (const char *next = at; (next = strstr(next, " dropped=")); next++)
        dropped = next + strlen(" dropped=");
    unsigned long count = dropped ? strtoul(dropped, NULL, 10) : 0;
    return count > unparsed ? (count < UINT32_MAX ? (uint32_t)count : UINT32_MAX) : unparsed;
}

static void classify_status(const struct response_request *request, struct client_reply *reply,
                            struct response *response)
{
    long status = reply->status;
    response->status = status;
    if (status < 300) {
        response->kind = RESPONSE_DELIVERED;
        return;
    }
    if (status < 400) {
        classify_redirect(request, reply, response);
        return;
    }
    response->dropped_points = count_dropped_points(reply);
    set_status_message(request, reply, response);
    if (status == 401 || status == 403 || status == 407) {
        /* the credentials are wrong, not the values: the user can fix them */
        response->kind = RESPONSE_RETRY;
        response->retry_after_ms = RESPONSE_DELAY_MAX;
    } else if (status == 408 || status == 429 || status >= 500) {
        response->kind = RESPONSE_RETRY;
        response->retry_after_ms = retry_delay_ms(reply);
    } else {
        response->kind = status == 413 ? RESPONSE_TOO_LARGE : RESPONSE_REFUSED;
    }
}

/* ---- No status ------------------------------------------------------------------------------- */

static void set_timeout_message(const struct response_request *request, const struct client_reply *reply,
                                struct response *response)
{
    int64_t ms = request->timeout_ms;
    if (!reply->connected && request->connect_timeout_ms < ms)
        ms = request->connect_timeout_ms;
    if (!reply->resolved)
        wr_response_set_message(response, "resolve %s: no response within %" PRId64 " ms", request->peer, ms);
    else if (!reply->connected)
        wr_response_set_message(response, "connect %s: no connection within %" PRId64 " ms", request->peer, ms);
    else
        wr_response_set_message(response, "%s %s: no complete response within %" PRId64 " ms", request->method,
                                request->url, ms);
}

static void set_error_message(const struct response_request *request, const struct client_reply *reply,
                              struct response *response)
{
    if (reply->connect_status >= 300) {
        /* 407: the credentials are wrong, as with a proxy that is not asked for a tunnel */
        response->retry_after_ms = reply->connect_status == 407 ? RESPONSE_DELAY_MAX : 0;
        wr_response_set_message(response, "connect %s: the proxy returned %ld", request->peer,
                                reply->connect_status);
        return;
    }
    const char *why = *reply->error ? reply->error : curl_easy_strerror(reply->result);
    const char *system = reply->system_error ? wr_system_strerror(reply->system_error) : why;
    switch (reply->result) {
    case CURLE_OPERATION_TIMEDOUT: set_timeout_message(request, reply, response); break;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
        wr_response_set_message(response, "resolve %s: unknown name, or no name server responds",
                                request->peer);
        break;
    case CURLE_COULDNT_CONNECT:
        wr_response_set_message(response, "connect %s: %s", request->peer, system);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        wr_response_set_message(response, "%s: the certificate of %s is not trusted: %s", request->url,
                                request->host, why);
        break;
    case CURLE_SSL_CACERT_BADFILE: wr_response_set_message(response, "ca_file: %s", why); break;
    case CURLE_SSL_CERTPROBLEM: wr_response_set_message(response, "cert_file, key_file: %s", why); break;
    case CURLE_SSL_CONNECT_ERROR:
        wr_response_set_message(response, "connect %s: TLS: %s", request->peer, why);
        break;
    case CURLE_GOT_NOTHING:
        wr_response_set_message(response, "%s %s: the server closed the connection without a response",
                                request->method, request->url);
        break;
    default: wr_response_set_message(response, "%s %s: %s", request->method, request->url, why);
    }
}

void wr_response_classify(const struct response_request *request, struct client_reply *reply,
                          struct response *response)
{
    *response = (struct response){.kind = RESPONSE_RETRY, .secrets = request->secrets};
    switch (reply->end) {
    case CLIENT_RESPONDED: classify_status(request, reply, response); break;
    case CLIENT_FAILED: set_error_message(request, reply, response); break;
    case CLIENT_HEADERS_TOO_LARGE:
        wr_response_set_message(response, "%s %s: the response headers exceed 64 KiB", request->method,
                                request->url);
        break;
    case CLIENT_STOPPED:
        wr_response_set_message(response, "%s %s: no response before the time limit for stopping",
                                request->method, request->url);
        break;
    case CLIENT_NO_MEMORY: wr_response_set_message(response, "out of memory"); break;
    }
}
