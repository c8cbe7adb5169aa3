#include "post.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../listening/framing.h"

void post_refuse(struct post *post, unsigned status, const char *format, ...)
{
    if (post->status)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(post->reason, sizeof post->reason, format, arguments);
    va_end(arguments);
    post->status = status;
}

/* ---- Headers --------------------------------------------------------------------------------- */

static const char *header_of(const struct post *post, const char *name)
{
    return MHD_lookup_connection_value(post->connection, MHD_HEADER_KIND, name);
}

static void check_framing(struct post *post, const struct post_rules *rules)
{
    struct framing framing;
    framing_check(&framing, post->connection, true, rules->body_limit);
    if (framing.status)
        post_refuse(post, framing.status, "%s", framing.reason);
}

static void check_token(struct post *post, const struct post_rules *rules)
{
    const char *given = header_of(post, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!rules->tenants->count)
        return;
    if (given && framing_count_headers(post->connection, MHD_HTTP_HEADER_AUTHORIZATION) == 1) {
        size_t scheme = strncasecmp(given, "Bearer ", 7) == 0  ? 7
                        : strncasecmp(given, "Token ", 6) == 0 ? 6
                                                               : 0;
        if (scheme)
            post->tenant = tenants_find(rules->tenants, given + scheme + strspn(given + scheme, " "));
    }
    if (!post->tenant)
        post_refuse(post, MHD_HTTP_UNAUTHORIZED,
                    "%s; allowed: one header \"Authorization: Bearer TOKEN\" or \"Authorization: Token TOKEN\"",
                    given ? "the token is not known" : "there is no token");
}

static void check_encoding(struct post *post, bool *is_gzip)
{
    const char *coding = header_of(post, MHD_HTTP_HEADER_CONTENT_ENCODING);
    *is_gzip = coding && (strcasecmp(coding, "gzip") == 0 || strcasecmp(coding, "x-gzip") == 0);
    if (coding && !*is_gzip && strcasecmp(coding, "identity") != 0)
        post_refuse(post, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                    "Content-Encoding: \"%.40s\" is not known; allowed: gzip, identity", coding);
}

static void check_id(struct post *post)
{
    const char *id = header_of(post, "X-Weir-Id");
    if (!id)
        id = header_of(post, "Idempotency-Key");
    if (id && strlen(id) >= sizeof post->id)
        post_refuse(post, MHD_HTTP_BAD_REQUEST, "the id of the request has %zu bytes; allowed: up to %zu",
                    strlen(id), sizeof post->id - 1);
    else if (id)
        memcpy(post->id, id, strlen(id) + 1);
}

/* ---- What the body is ------------------------------------------------------------------------ */

static bool is_type(const char *given, const char *type)
{
    size_t length = strlen(type);
    return strncasecmp(given, type, length) == 0 && strchr("; \t", given[length]);
}

/* Sets *known to false for a type that is none of these. NULL: the source's option. */
static const char *parse_of_type(const char *given, bool *known)
{
    static const char *const types[][2] = {
        {"application/json", "json"},
        {"application/x-ndjson", "json"},
        {"application/ndjson", "json"},
        {"application/jsonl", "json"},
        {"text/csv", "csv"},
        {"application/openmetrics-text", "openmetrics"},
        {"application/octet-stream", NULL},
        {"application/x-www-form-urlencoded", NULL},
        {"application/vnd.influx.line", "influx"},
    };
    *known = true;
    if (!given)
        return NULL;
    if (is_type(given, "text/plain"))
        return strstr(given, "version=") ? "prometheus" : NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_type(given, types[i][0]))
            return types[i][1];
    *known = false;
    return NULL;
}

static bool is_allowed(const weir_list *formats, const char *parse)
{
    for (size_t i = 0; i < formats->count; i++)
        if (strcmp(formats->items[i], parse) == 0)
            return true;
    return false;
}

static void check_format(struct post *post, const struct post_rules *rules)
{
    bool known;
    const char *type = header_of(post, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *given = MHD_lookup_connection_value(post->connection, MHD_GET_ARGUMENT_KIND, "parse");
    post->parse = post->is_influx ? "influx" : given ? given : parse_of_type(type, &known);
    if (!post->is_influx && !given && !known)
        post_refuse(post, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                    "Content-Type: \"%.80s\" is not known; allowed: application/json, application/x-ndjson, "
                    "text/plain, text/csv, application/openmetrics-text, application/octet-stream, or a "
                    "parameter like ?parse=json",
                    type);
    else if (post->parse && !is_allowed(rules->formats, post->parse))
        post_refuse(post, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                    "the format \"%.40s\" is not allowed; allowed: those of the option \"formats\"",
                    post->parse);
}

static void check_precision(struct post *post)
{
    static const struct {
        const char *word;
        int64_t unit_ns;
    } units[] = {{"ns", 1}, {"n", 1}, {"us", 1000}, {"u", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    const char *word = MHD_lookup_connection_value(post->connection, MHD_GET_ARGUMENT_KIND, "precision");
    if (!word)
        return;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(word, units[i].word) == 0)
            post->time_unit_ns = units[i].unit_ns;
    if (!post->time_unit_ns)
        post_refuse(post, MHD_HTTP_BAD_REQUEST, "precision: \"%.20s\" is not allowed; allowed: ns, us, ms, s",
                    word);
}

void post_check(struct post *post, const struct post_rules *rules, const char *path, const char *method,
                bool *is_gzip)
{
    post->is_influx = strcmp(path, "/write") == 0 || strcmp(path, "/api/v2/write") == 0;
    *is_gzip = false;
    if (!post->is_influx && strcmp(path, "/") != 0 && strcmp(path, "/ingest") != 0)
        post_refuse(post, MHD_HTTP_NOT_FOUND,
                    "the path is not known; allowed: /ingest, /, /write, /api/v2/write");
    else if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
        post_refuse(post, MHD_HTTP_METHOD_NOT_ALLOWED, "the method \"%.20s\" is not allowed; allowed: POST",
                    method);
    check_token(post, rules);
    check_framing(post, rules);
    check_encoding(post, is_gzip);
    check_id(post);
    check_format(post, rules);
    if (post->is_influx)
        check_precision(post);
}

/* ---- The response ---------------------------------------------------------------------------- */

/* As a JSON string. What is not ASCII is left as it is: the reasons are valid UTF-8, or replaced by '?'. */
static size_t quote(char *out, size_t room, const char *text)
{
    size_t length = 0;
    for (; *text && length + 8 < room; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            out[length++] = '\\';
        out[length++] = c < ' ' || c > '~' ? '?' : (char)c;
    }
    out[length] = '\0';
    return length;
}

static struct MHD_Response *make_response(const struct post *post)
{
    char quoted[2 * POST_REASON_ROOM + 16], text[sizeof quoted + 256];
    if (post->status == MHD_HTTP_NO_CONTENT)
        return MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    quote(quoted, sizeof quoted, post->reason);
    int length = snprintf(text, sizeof text, "{\"added\":%llu,\"refused\":%llu,\"lines\":%llu%s%s%s%s}\n",
                          (unsigned long long)post->added, (unsigned long long)post->refused,
                          (unsigned long long)post->lines, post->is_repeated ? ",\"repeated\":true" : "",
                          *post->reason ? ",\"error\":\"" : "", quoted, *post->reason ? "\"" : "");
    return MHD_create_response_from_buffer((size_t)length, text, MHD_RESPMEM_MUST_COPY);
}

enum MHD_Result post_respond(const struct post *post, bool is_early)
{
    char seconds[16];
    struct MHD_Response *response = make_response(post);
    if (!response)
        return MHD_NO;
    if (post->status != MHD_HTTP_NO_CONTENT)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (is_early)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (post->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "POST");
    if (post->status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (post->retry_seconds) {
        snprintf(seconds, sizeof seconds, "%u", post->retry_seconds);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    enum MHD_Result result = MHD_queue_response(post->connection, post->status, response);
    MHD_destroy_response(response);
    return result;
}
