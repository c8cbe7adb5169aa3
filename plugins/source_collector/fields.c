#include "fields.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text/utf8.h"
#include "text/array.h"

bool fields_check_text(struct request *request, const char *name, const char *text, size_t length)
{
    if (memchr(text, '\0', length))
        request_fail(request, MHD_HTTP_BAD_REQUEST, "%.60s: it has a NUL byte", name);
    else if (!wr_utf8_is_valid(text, length, NULL))
        request_fail(request, MHD_HTTP_BAD_REQUEST, "%.60s: it is not valid UTF-8", name);
    return !request->is_replied;
}

static bool add(struct fields *fields, const char *name, const char *value)
{
    struct field *all = wr_array_reserve(fields->all, &fields->room, fields->count + 1, sizeof *all);
    if (!all)
        return false;
    fields->all = all;
    all[fields->count++] = (struct field){name, value};
    return true;
}

/* ---- Forms ----------------------------------------------------------------------------------- */

/* Returns the length, since %00 is a NUL. */
static size_t decode(char *text)
{
    for (char *at = text; *at; at++)
        if (*at == '+')
            *at = ' ';
    return MHD_http_unescape(text);
}

static bool add_decoded(struct fields *fields, struct request *request, char *name, char *value)
{
    size_t name_length = decode(name), length = decode(value);
    return fields_check_text(request, "a field's name", name, name_length) &&
           fields_check_text(request, name, value, length) && add(fields, name, value);
}

static bool read_form(struct fields *fields, struct request *request)
{
    fields->form = strdup(request->body.data ? request->body.data : "");
    if (!fields->form)
        return false;
    for (char *rest = fields->form, *pair; (pair = strsep(&rest, "&"));) {
        char *equals = strchr(pair, '=');
        if (!*pair)
            continue;
        if (equals)
            *equals = '\0';
        char *value = equals ? equals + 1 : pair + strlen(pair);
        if (!add_decoded(fields, request, pair, value))
            return false;
    }
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool add_json(struct fields *fields, struct request *request, const char *name,
                     struct json_object *value)
{
    const char *text = json_object_get_string(value);
    size_t length =
        json_object_is_type(value, json_type_string) ? (size_t)json_object_get_string_len(value) : strlen(text);
    return fields_check_text(request, "a field's name", name, strlen(name)) &&
           fields_check_text(request, name, text, length) && add(fields, name, text);
}

/* null is as if it were not there; other values are their text. */
static bool read_json(struct fields *fields, struct request *request)
{
    fields->json = json_tokener_parse(request->body.data ? request->body.data : "");
    if (!json_object_is_type(fields->json, json_type_object))
        return request_fail(request, MHD_HTTP_BAD_REQUEST, "the body is not a JSON object");
    json_object_object_foreach(fields->json, name, value)
    {
        if (value && !add_json(fields, request, name, value))
            return false;
    }
    return true;
}

/* ---- Both ------------------------------------------------------------------------------------ */

bool fields_read(struct fields *fields, struct request *request)
{
    *fields = (struct fields){0};
    if (request->body.data && memchr(request->body.data, '\0', request->body.length))
        return request_fail(request, MHD_HTTP_BAD_REQUEST, "the body has a NUL byte");
    bool is_read =
        request_has_type(request, "application/json") ? read_json(fields, request) : read_form(fields, request);
    if (!is_read && !request->is_replied)
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    if (!is_read)
        fields_fini(fields);
    return is_read;
}

void fields_fini(struct fields *fields)
{
    json_object_put(fields->json);
    free(fields->form);
    free(fields->all);
    *fields = (struct fields){0};
}

const char *fields_find(const struct fields *fields, const char *name)
{
    for (size_t i = fields->count; i > 0; i--)
        if (strcmp(fields->all[i - 1].name, name) == 0)
            return fields->all[i - 1].value;
    return NULL;
}

const char *fields_need(const struct fields *fields, struct request *request, const char *name)
{
    const char *value = fields_find(fields, name);
    if (!value)
        request_fail(request, MHD_HTTP_BAD_REQUEST, "%s is missing", name);
    return value;
}

bool fields_is_true(const struct fields *fields, const char *name)
{
    const char *value = fields_find(fields, name);
    return value && strcasecmp(value, "true") == 0;
}
