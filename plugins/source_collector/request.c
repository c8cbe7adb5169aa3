#include "request.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- What was asked -------------------------------------------------------------------------- */

static bool ends_with(const char *text, size_t length, const char *ending)
{
    size_t wanted = strlen(ending);
    return length >= wanted && strcmp(text + length - wanted, ending) == 0;
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

bool request_set_path(struct request *request, const char *path)
{
    size_t length = strlen(path);
    if (length >= sizeof request->path || *path != '/' || has_control(path))
        return false;
    memcpy(request->path, path, length + 1);
    if (length > 1 && request->path[length - 1] == '/')
        request->path[--length] = '\0';
    if (strncmp(path, "/api/", 5) == 0 && ends_with(request->path, length, ".json"))
        request->path[length - 5] = '\0';
    return true;
}

bool request_put_body(struct request *request, const char *data, size_t length, size_t limit)
{
    request->is_too_long |= length > limit || request->body.length > limit - length;
    if (request->is_too_long)
        return true;
    wr_buffer_put(&request->body, data, length);
    return wr_buffer_text(&request->body);
}

bool request_is(const struct request *request, const char *method)
{
    return strcmp(request->method, method) == 0 ||
           (strcmp(method, MHD_HTTP_METHOD_GET) == 0 && strcmp(request->method, MHD_HTTP_METHOD_HEAD) == 0);
}

const char *request_header(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *request_parameter(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool request_has_type(const struct request *request, const char *type)
{
    const char *given = request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
    size_t length = strlen(type);
    return given && strncasecmp(given, type, length) == 0 && strchr("; \t", given[length]);
}

/* ---- Replying -------------------------------------------------------------------------------- */

/* Pages have all they need from here. No other site may frame them, read replies or be told where one comes
 * from.
 */
static void add_headers(struct MHD_Response *response)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-cache");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "X-Frame-Options", "DENY");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
    MHD_add_response_header(response, "Content-Security-Policy",
                            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                            "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
}

void request_reply_response(struct request *request, unsigned status, struct MHD_Response *response)
{
    request->is_replied = true;
    request->result = MHD_NO;
    if (!response)
        return;
    add_headers(response);
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, request->allowed);
    request->result = MHD_queue_response(request->connection, status, response);
    MHD_destroy_response(response);
}

void request_reply_bytes(struct request *request, unsigned status, const char *type, const void *bytes,
                         size_t length, const char *name)
{
    char text[512];
    snprintf(text, sizeof text, "attachment; filename=%s", name ? name : "");
    const struct request_field field = {name ? MHD_HTTP_HEADER_CONTENT_DISPOSITION : NULL, text};
    request_reply_fields(request, status, type, bytes, length, &field, 1);
}

void request_reply_fields(struct request *request, unsigned status, const char *type, const void *bytes,
                          size_t length, const struct request_field *fields, size_t count)
{
    void *data = (void *)(uintptr_t)bytes; /* it is copied */
    struct MHD_Response *response = MHD_create_response_from_buffer(length, data, MHD_RESPMEM_MUST_COPY);
    if (response && type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; response && i < count; i++)
        if (fields[i].name && fields[i].value)
            MHD_add_response_header(response, fields[i].name, fields[i].value);
    request_reply_response(request, status, response);
}

void request_reply_redirect(struct request *request, const char *path, const char *cookie)
{
    const struct request_field fields[] = {{MHD_HTTP_HEADER_LOCATION, path},
                                           {MHD_HTTP_HEADER_SET_COOKIE, cookie}};
    request_reply_fields(request, MHD_HTTP_SEE_OTHER, NULL, NULL, 0, fields, 2);
}

void request_reply(struct request *request, unsigned status, struct json_object *json)
{
    size_t length;
    const char *text = json ? json_object_to_json_string_length(
                                  json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length)
                            : NULL;
    if (text)
        request_reply_bytes(request, status, "application/json", text, length, NULL);
    else
        request_reply_response(request, status, NULL);
    json_object_put(json);
}

static const char *name_of(unsigned status)
{
    switch (status) {
    case MHD_HTTP_BAD_REQUEST: return "Bad Request";
    case MHD_HTTP_UNAUTHORIZED: return "Unauthorized";
    case MHD_HTTP_FORBIDDEN: return "Forbidden";
    case MHD_HTTP_NOT_FOUND: return "Not Found";
    case MHD_HTTP_METHOD_NOT_ALLOWED: return "Method Not Allowed";
    case MHD_HTTP_LENGTH_REQUIRED: return "Length Required";
    case MHD_HTTP_CONTENT_TOO_LARGE: return "Content Too Large";
    case MHD_HTTP_SERVICE_UNAVAILABLE: return "Service Unavailable";
    default: return "Internal Server Error";
    }
}

/* The query API has the number; MLBench's REST API, and all other paths, its name. */
static struct json_object *make_status(const struct request *request, unsigned status)
{
    static const char folder[] = "/api/v1";
    const size_t length = sizeof folder - 1;
    bool is_query =
        strncmp(request->path, folder, length) == 0 && (!request->path[length] || request->path[length] == '/');
    return is_query ? json_object_new_int((int)status) : json_object_new_string(name_of(status));
}

bool request_fail(struct request *request, unsigned status, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    struct json_object *json = json_object_new_object();
    if (json) {
        json_object_object_add(json, "status", make_status(request, status));
        json_object_object_add(json, "message", json_object_new_string(message));
    }
    request_reply(request, status, json);
    return false;
}

void request_refuse_method(struct request *request, const char *allowed)
{
    request->allowed = allowed;
    request_fail(request, MHD_HTTP_METHOD_NOT_ALLOWED, "the method \"%.20s\" is not allowed; allowed: %s",
                 request->method, allowed);
}
