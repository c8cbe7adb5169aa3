#include "nats_reply.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* err_code: the message is larger than the stream allows, or its headers are larger than JetStream's limit. */
enum { TOO_LARGE = 10054, HEADERS_TOO_LARGE = 10097 };

static bool has(const char *data, size_t length, const char *text)
{
    return memmem(data, length, text, strlen(text));
}

static void fail(struct nats_reply *reply, const char *data, size_t length)
{
    reply->kind = NATS_REPLY_FAILED;
    snprintf(reply->text, sizeof reply->text, "the reply is not JetStream's: %.*s",
             (int)(length < 60 ? length : 60), data);
}

static void read_error(struct nats_reply *reply, struct json_object *error)
{
    struct json_object *field;
    const char *description = "an error without description";
    if (json_object_object_get_ex(error, "err_code", &field))
        reply->code = json_object_get_int(field);
    if (json_object_object_get_ex(error, "description", &field) && json_object_is_type(field, json_type_string))
        description = json_object_get_string(field);
    bool is_final = reply->code == TOO_LARGE || reply->code == HEADERS_TOO_LARGE;
    reply->kind = is_final ? NATS_REPLY_REFUSED : NATS_REPLY_FAILED;
    snprintf(reply->text, sizeof reply->text, "%.100s (error %d)", description, reply->code);
}

static bool has_field(const struct json_object *object, const char *key, enum json_type type)
{
    struct json_object *field;
    return json_object_object_get_ex(object, key, &field) && json_object_is_type(field, type);
}

/* Anybody who subscribes to the subject can reply to what is published. */
static bool is_success(const struct json_object *root, enum nats_reply_of of)
{
    return of == NATS_REPLY_OF_REQUEST ||
           (has_field(root, "stream", json_type_string) && has_field(root, "seq", json_type_int));
}

static void parse(struct nats_reply *reply, enum nats_reply_of of, const char *data, size_t length)
{
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *root = tokener ? json_tokener_parse_ex(tokener, data, (int)length) : NULL;
    struct json_object *error, *field;
    if (json_object_is_type(root, json_type_object) && json_object_object_get_ex(root, "error", &error))
        read_error(reply, error);
    else if (!json_object_is_type(root, json_type_object) || !is_success(root, of))
        fail(reply, data, length);
    else if (json_object_object_get_ex(root, "duplicate", &field) && json_object_get_boolean(field))
        reply->kind = NATS_REPLY_DUPLICATE;
    json_object_put(root);
    if (tokener)
        json_tokener_free(tokener);
}

/* As the server writes it. */
static bool is_plain(const char *data, size_t length)
{
    return has(data, length, "{\"stream\":\"") && has(data, length, "\"seq\":") &&
           !has(data, length, "\"error\"");
}

/* An acknowledgement comes for each event, and only an error needs more than a look: a stream's name cannot
 * have quotation marks that are not escaped, so the texts below are keys. */
void wr_nats_reply_read(struct nats_reply *reply, enum nats_reply_of of, const char *data, size_t length)
{
    *reply = (struct nats_reply){.kind = NATS_REPLY_STORED};
    if (length > 1000000 || !is_plain(data, length))
        parse(reply, of, data, length < 1000000 ? length : 1000000);
    else if (has(data, length, "\"duplicate\":true") || has(data, length, "\"duplicate\": true"))
        reply->kind = NATS_REPLY_DUPLICATE;
}
