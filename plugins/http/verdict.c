#include "verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../system.h"

enum { SHOWN_TEXT = 120, SHORTEST_SECRET = 4, LONGEST_WAIT_S = 86400 };

static void say(struct verdict *verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct verdict *verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(verdict->words, sizeof verdict->words, format, arguments);
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
static const char *cut(const struct verdict_site *site, struct client_reply *reply)
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

static void say_answer(const struct verdict_site *site, struct client_reply *reply, struct verdict *verdict)
{
    const char *text = cut(site, reply);
    say(verdict, "%s %s: answered %ld%s%s", site->method, site->url, reply->status, *text ? ": " : "", text);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static int64_t find_pause(const struct client_reply *reply)
{
    int64_t seconds = reply->retry_after_s < LONGEST_WAIT_S ? reply->retry_after_s : LONGEST_WAIT_S;
    return seconds * 1000;
}

static void judge_redirect(const struct verdict_site *site, const struct client_reply *reply,
                           struct verdict *verdict)
{
    verdict->kind = VERDICT_LATER;
    verdict->retry_after_ms = VERDICT_LONGEST;
    say(verdict, "%s %s: answered %ld%s%.70s; redirects are not followed", site->method, site->url,
        reply->status, *reply->redirect ? ", which leads to " : "", reply->redirect);
}

static void judge_status(const struct verdict_site *site, struct client_reply *reply, struct verdict *verdict)
{
    long status = reply->status;
    verdict->status = status;
    if (status < 300) {
        verdict->kind = VERDICT_DELIVERED;
        return;
    }
    if (status < 400) {
        judge_redirect(site, reply, verdict);
        return;
    }
    say_answer(site, reply, verdict);
    if (status == 401 || status == 403 || status == 407) {
        /* not the values are at fault, but the credentials: they can be put right */
        verdict->kind = VERDICT_LATER;
        verdict->retry_after_ms = VERDICT_LONGEST;
    } else if (status == 408 || status == 429 || status >= 500) {
        verdict->kind = VERDICT_LATER;
        verdict->retry_after_ms = find_pause(reply);
    } else {
        verdict->kind = status == 413 ? VERDICT_TOO_LARGE : VERDICT_REFUSED;
    }
}

/* ---- No answer ------------------------------------------------------------------------------- */

static void say_timeout(const struct verdict_site *site, const struct client_reply *reply,
                        struct verdict *verdict)
{
    int64_t ms = site->timeout_ms;
    if (!reply->connected && site->connect_timeout_ms < ms)
        ms = site->connect_timeout_ms;
    if (!reply->resolved)
        say(verdict, "resolve the name of %s: no answer within %" PRId64 " ms", site->peer, ms);
    else if (!reply->connected)
        say(verdict, "connect %s: no connection within %" PRId64 " ms", site->peer, ms);
    else
        say(verdict, "%s %s: no complete answer within %" PRId64 " ms", site->method, site->url, ms);
}

static void say_broken(const struct verdict_site *site, const struct client_reply *reply,
                       struct verdict *verdict)
{
    const char *why = *reply->error ? reply->error : curl_easy_strerror(reply->result);
    const char *system = reply->system_error ? system_words(reply->system_error) : why;
    switch (reply->result) {
    case CURLE_OPERATION_TIMEDOUT: say_timeout(site, reply, verdict); break;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
        say(verdict, "resolve the name of %s: it is not known, or no name server answers", site->peer);
        break;
    case CURLE_COULDNT_CONNECT: say(verdict, "connect %s: %s", site->peer, system); break;
    case CURLE_PEER_FAILED_VERIFICATION:
        say(verdict, "%s: the certificate of %s is not accepted: %s", site->url, site->host, why);
        break;
    case CURLE_SSL_CACERT_BADFILE: say(verdict, "ca_file: %s", why); break;
    case CURLE_SSL_CERTPROBLEM: say(verdict, "cert_file, key_file: %s", why); break;
    case CURLE_SSL_CONNECT_ERROR: say(verdict, "connect %s: TLS: %s", site->peer, why); break;
    case CURLE_GOT_NOTHING:
        say(verdict, "%s %s: the connection was closed without an answer", site->method, site->url);
        break;
    default: say(verdict, "%s %s: %s", site->method, site->url, why);
    }
}

void verdict_find(const struct verdict_site *site, struct client_reply *reply, struct verdict *verdict)
{
    *verdict = (struct verdict){.kind = VERDICT_LATER};
    switch (reply->end) {
    case CLIENT_ANSWERED: judge_status(site, reply, verdict); break;
    case CLIENT_BROKEN: say_broken(site, reply, verdict); break;
    case CLIENT_ENDLESS: say(verdict, "%s %s: headers without an end", site->method, site->url); break;
    case CLIENT_STOPPED:
        say(verdict, "%s %s: no answer before the time to stop", site->method, site->url);
        break;
    case CLIENT_NO_MEMORY: say(verdict, "no memory"); break;
    }
}
