#include "otlp_reply.h"

#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "json_scan.h"
#include "response.h"

/* https://opentelemetry.io/docs/specs/otlp/#otlphttp-response */

/* ---- Protobuf -------------------------------------------------------------------------------- */

/* ExportMetricsServiceResponse, ExportMetricsPartialSuccess and google.rpc.Status. */
enum { PARTIAL_SUCCESS = 1, REJECTED_POINTS = 1, ERROR_MESSAGE = 2, STATUS_MESSAGE = 2 };
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct field {
    uint64_t number, value; /* value: of a varint, or the length of bytes */
    unsigned wire;
    const unsigned char *bytes; /* may be fewer than `value`, if the body is cut */
    size_t length;
};

static bool take_varint(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        unsigned char byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Returns false at the end, and where the body is no message. */
static bool next_field(const unsigned char **at, const unsigned char *end, struct field *field)
{
    uint64_t key;
    if (!take_varint(at, end, &key))
        return false;
    *field = (struct field){.number = key >> 3, .wire = key & 7, .bytes = *at};
    size_t left = (size_t)(end - *at), skip = 0;
    switch (field->wire) {
    case WIRE_VARINT: return take_varint(at, end, &field->value);
    case WIRE_FIXED64: skip = 8; break;
    case WIRE_FIXED32: skip = 4; break;
    case WIRE_BYTES:
        if (!take_varint(at, end, &field->value))
            return false;
        field->bytes = *at;
        left = (size_t)(end - *at);
        field->length = field->value < left ? (size_t)field->value : left;
        skip = field->length;
        break;
    default: return false;
    }
    *at += skip < left ? skip : left;
    return skip <= left;
}

static uint32_t clamp(uint64_t rejected)
{
    if (rejected > INT64_MAX) /* negative */
        return 0;
    return rejected < UINT32_MAX ? (uint32_t)rejected : UINT32_MAX;
}

static void set_message(struct otlp_reply *reply, const void *text, size_t length)
{
    if (length >= sizeof reply->message)
        length = sizeof reply->message - 1;
    memcpy(reply->message, text, length);
    reply->message[length] = '\0';
}

static void read_partial(struct otlp_reply *reply, const unsigned char *at, const unsigned char *end)
{
    struct field field;
    while (next_field(&at, end, &field)) {
        if (field.number == REJECTED_POINTS && field.wire == WIRE_VARINT)
            reply->rejected = clamp(field.value);
        if (field.number == ERROR_MESSAGE && field.wire == WIRE_BYTES)
            set_message(reply, field.bytes, field.length);
    }
}

static void read_protobuf(struct otlp_reply *reply, const unsigned char *at, const unsigned char *end)
{
    struct field field;
    while (next_field(&at, end, &field))
        if (field.number == PARTIAL_SUCCESS && field.wire == WIRE_BYTES)
            read_partial(reply, field.bytes, field.bytes + field.length);
}

bool wr_otlp_read_status(struct otlp_reply *reply, const char *body, size_t length)
{
    const unsigned char *at = (const unsigned char *)body, *end = at + length;
    struct field field;
    *reply = (struct otlp_reply){0};
    while (next_field(&at, end, &field)) {
        if (field.number == 0 || field.number > 3)
            return false;
        if (field.number == STATUS_MESSAGE && field.wire == WIRE_BYTES)
            set_message(reply, field.bytes, field.length);
    }
    return *reply->message;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct reading {
    struct otlp_reply *reply;
    enum { FIELD_OTHER, FIELD_PARTIAL, FIELD_REJECTED, FIELD_MESSAGE } field;
    bool in_partial;
};

static void find_key(struct reading *reading, unsigned depth, const char *key)
{
    reading->field = FIELD_OTHER;
    if (depth == 1 && (strcmp(key, "partialSuccess") == 0 || strcmp(key, "partial_success") == 0))
        reading->field = FIELD_PARTIAL;
    if (depth == 2 && (strcmp(key, "rejectedDataPoints") == 0 || strcmp(key, "rejected_data_points") == 0))
        reading->field = FIELD_REJECTED;
    if (depth == 2 && (strcmp(key, "errorMessage") == 0 || strcmp(key, "error_message") == 0))
        reading->field = FIELD_MESSAGE;
}

static void find_text(struct reading *reading, unsigned depth, const char *text)
{
    if (depth != 2 || !reading->in_partial)
        return;
    if (reading->field == FIELD_REJECTED)
        reading->reply->rejected = *text == '-' ? 0 : clamp(strtoull(text, NULL, 10));
    if (reading->field == FIELD_MESSAGE)
        set_message(reading->reply, text, strlen(text));
}

static bool found(void *ctx, enum json_scan_kind kind, unsigned depth, const char *text)
{
    struct reading *reading = ctx;
    if (kind == JSON_SCAN_KEY)
        find_key(reading, depth, text);
    else if (kind == JSON_SCAN_STRING || kind == JSON_SCAN_WORD)
        find_text(reading, depth, text);
    else if (depth == 1)
        reading->in_partial = kind == JSON_SCAN_OPEN && reading->field == FIELD_PARTIAL;
    return true;
}

static void read_json(struct otlp_reply *reply, const char *body, size_t length)
{
    struct reading reading = {.reply = reply};
    struct json_scan scan = {.found = found, .ctx = &reading};
    wr_json_scan_read(&scan, body, length);
}

/* ---- Responses ------------------------------------------------------------------------------- */

/* No message of protobuf begins with a brace: it would be a group. */
void wr_otlp_read_success(struct otlp_reply *reply, const char *body, size_t length)
{
    size_t blanks = 0;
    *reply = (struct otlp_reply){0};
    while (blanks < length && strchr(" \t\r\n", body[blanks]) && body[blanks])
        blanks++;
    if (blanks < length && body[blanks] == '{')
        read_json(reply, body, length);
    else
        read_protobuf(reply, (const unsigned char *)body, (const unsigned char *)body + length);
}

static void classify_success(const struct response_request *request, const struct client_reply *reply,
                             struct response *response)
{
    struct otlp_reply read;
    wr_otlp_read_success(&read, reply->text, reply->text_length);
    if (!read.rejected && !*read.message)
        return;
    if (read.rejected)
        response->kind = RESPONSE_REFUSED;
    response->dropped_points = read.rejected;
    wr_response_set_message(response, "%s %s: %s: %s", request->method, request->url,
                            read.rejected ? "partial success" : "a warning",
                            *read.message ? read.message : "no reason given");
}

/* Shows the message in place of the body, which is binary. */
static void show_status(struct client_reply *reply)
{
    struct otlp_reply read;
    if (!reply->text_length || (unsigned char)*reply->text >= 0x20 ||
        !wr_otlp_read_status(&read, reply->text, reply->text_length))
        return;
    reply->text_length = strlen(read.message);
    memcpy(reply->text, read.message, reply->text_length + 1);
}

/* A 407 comes from a proxy, to which the standard does not apply. */
static bool is_sent_again(long status)
{
    return status < 400 || status == 407 || status == 429 || (status >= 502 && status <= 504);
}

void wr_otlp_classify(const struct response_request *request, struct client_reply *reply,
                      struct response *response)
{
    if (reply->end == CLIENT_RESPONDED && reply->status >= 400)
        show_status(reply);
    wr_response_classify(request, reply, response);
    if (reply->end != CLIENT_RESPONDED)
        return;
    if (response->kind == RESPONSE_DELIVERED)
        classify_success(request, reply, response);
    else if (response->kind == RESPONSE_RETRY && !is_sent_again(reply->status))
        response->kind = RESPONSE_REFUSED;
}
