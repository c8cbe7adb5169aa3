#include "response.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../system.h"

enum { SHOWN_TEXT = 120, SHORTEST_SECRET = 4, LONGEST_WAIT_S = 86400 };

static void say(struct response *response, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct response *response, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(response->words, sizeof response->words, format, arguments);
    va_end(arguments);
}

/* ---- What the server wrote ------------------------------------------------------------------- */

/* A server may send back what it was sent. */
static void mask(char *text, const char *secret)
{
    size_t length = strlen(secret);
    if (length < SHORTEST_SECRET)
        return;
    for (char *found = strstr(text, secret); found; found = strstr(found + length, secret))
        memset(found, '*', length);
}

/* Its beginning, in one line's length, without blanks at either end. */
static const char *cut(const struct response_site *site, struct client_reply *reply)
{
    static const char blanks[] = " \t\r\n";
    for (const char *const *secret = site->secrets; *secret; secret++)
        mask(reply->text, *secret);
    char *text = reply->text + strspn(reply->text, blanks);
    size_t length = strlen(text);
    if (length > SHOWN_TEXT) {
        length = SHOWN_TEXT;
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80) /* not within a character */
            length--;
        memcpy(text + length, "...", 4);
        return text;
    }
    while (length && strchr(blanks, text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

static void say_answer(const struct response_site *site, struct client_reply *reply, struct response *response)
{
    const char *text = cut(site, reply);
    say(response, "%s %s: answered %ld%s%s", site->method, site->url, reply->status, *text ? ": " : "", text);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static int64_t find_pause(const struct client_reply *reply)
{
    int64_t seconds = reply->retry_after_s < LONGEST_WAIT_S ? reply->retry_after_s : LONGEST_WAIT_S;
    return seconds * 1000;
}

static void judge_redirect(const struct response_site *site, const struct client_reply *reply,
                           struct response *response)
{
    response->kind = RESPONSE_LATER;
    response->retry_after_ms = RESPONSE_LONGEST;
    say(response, "%s %s: answered %ld%s%.70s; redirects are not followed", site->method, site->url,
        reply->status, *reply->redirect ? ", which leads to " : "", reply->redirect);
}

static void judge_status(const struct response_site *site, struct client_reply *reply,
                         struct response *response)
{
    long status = reply->status;
    response->status = status;
    if (status < 300) {
        response->kind = RESPONSE_DELIVERED;
        return;
    }
    if (status < 400) {
        judge_redirect(site, reply, response);
        return;
    }
    say_answer(site, reply, response);
    if (status == 401 || status == 403 || status == 407) {
        /* not the values are at fault, but the credentials: they can be put right */
        response->kind = RESPONSE_LATER;
        response->retry_after_ms = RESPONSE_LONGEST;
    } else if (status == 408 || status == 429 || status >= 500) {
        response->kind = RESPONSE_LATER;
        response->retry_after_ms = find_pause(reply);
    } else {
        response->kind = status == 413 ? RESPONSE_TOO_LARGE : RESPONSE_REFUSED;
    }
}

/* ---- No answer ------------------------------------------------------------------------------- */

static void say_timeout(const struct response_site *site, const struct client_reply *reply,
                        struct response *response)
{
    int64_t ms = site->timeout_ms;
    if (!reply->connected && site->connect_timeout_ms < ms)
        ms = site->connect_timeout_ms;
    if (!reply->resolved)
        say(response, "resolve the name of %s: no answer within %" PRId64 " ms", site->peer, ms);
    else if (!reply->connected)
        say(response, "connect %s: no connection within %" PRId64 " ms", site->peer, ms);
    else
        say(response, "%s %s: no complete answer within %" PRId64 " ms", site->method, site->url, ms);
}

static void say_broken(const struct response_site *site, const struct client_reply *reply,
                       struct response *response)
{
    const char *why = *reply->error ? reply->error : curl_easy_strerror(reply->result);
    const char *system = reply->system_error ? system_strerror(reply->system_error) : why;
    switch (reply->result) {
    case CURLE_OPERATION_TIMEDOUT: say_timeout(site, reply, response); break;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
        say(response, "resolve the name of %s: it is not known, or no name server answers", site->peer);
        break;
    case CURLE_COULDNT_CONNECT: say(response, "connect %s: %s", site->peer, system); break;
    case CURLE_PEER_FAILED_VERIFICATION:
        say(response, "%s: the certificate of %s is not accepted: %s", site->url, site->host, why);
        break;
    case CURLE_SSL_CACERT_BADFILE: say(response, "ca_file: %s", why); break;
    case CURLE_SSL_CERTPROBLEM: say(response, "cert_file, key_file: %s", why); break;
    case CURLE_SSL_CONNECT_ERROR: say(response, "connect %s: TLS: %s", site->peer, why); break;
    case CURLE_GOT_NOTHING:
        say(response, "%s %s: the connection was closed without an answer", site->method, site->url);
        break;
    default: say(response, "%s %s: %s", site->method, site->url, why);
    }
}

void response_find(const struct response_site *site, struct client_reply *reply, struct response *response)
{
    *response = (struct response){.kind = RESPONSE_LATER};
    switch (reply->end) {
    case CLIENT_ANSWERED: judge_status(site, reply, response); break;
    case CLIENT_BROKEN: say_broken(site, reply, response); break;
    case CLIENT_ENDLESS: say(response, "%s %s: headers without an end", site->method, site->url); break;
    case CLIENT_STOPPED:
        say(response, "%s %s: no answer before the time to stop", site->method, site->url);
        break;
    case CLIENT_NO_MEMORY: say(response, "no memory"); break;
    }
}
