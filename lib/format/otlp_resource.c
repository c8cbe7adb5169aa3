#include "format/otlp_resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/otlp_writer.h"
#include "registry/labels_walk.h"
#include "text/common.h"
#include "text/utf8.h"

/* https://opentelemetry.io/docs/specs/otel/resource/sdk/ */
enum { RESOURCE_ATTRIBUTES = 1, KEY = 1, VALUE = 2, STRING_VALUE = 1, TEXT_MAX = 1024 };

static const char service[] = "service.name";

void wr_otlp_put_attribute(const struct wr_otlp_writer *writer, unsigned number, const char *key,
                           const char *value)
{
    size_t attribute = wr_otlp_begin(writer, (struct wr_otlp_field){number, NULL});
    wr_otlp_put_text(writer, (struct wr_otlp_field){KEY, "key"}, key);
    size_t any = wr_otlp_begin(writer, (struct wr_otlp_field){VALUE, "value"});
    wr_otlp_put_text(writer, (struct wr_otlp_field){STRING_VALUE, "stringValue"}, value);
    wr_otlp_end(writer, any);
    wr_otlp_end(writer, attribute);
}

/* ---- The environment ------------------------------------------------------------------------- */

static const char *get(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

static int hex_of(char c)
{
    return wr_hex_digit(c, c >= 'a' ? 'a' : 'A');
}

/* Copies a part of the list without surrounding blanks, percent-decoded. Returns false if it is too long, empty
 * or not valid UTF-8. */
static bool decode(char out[TEXT_MAX], const char *text, size_t length)
{
    size_t written = 0;
    while (length && (*text == ' ' || *text == '\t'))
        text++, length--;
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    for (size_t i = 0; i < length && written < TEXT_MAX; i++) {
        bool may_be_escape = text[i] == '%' && i + 2 < length;
        int high = may_be_escape ? hex_of(text[i + 1]) : -1, low = may_be_escape ? hex_of(text[i + 2]) : -1;
        bool is_escape = high >= 0 && low >= 0;
        out[written++] = is_escape ? (char)(high * 16 + low) : text[i];
        i += is_escape ? 2 : 0;
    }
    if (written == TEXT_MAX)
        return false;
    out[written] = '\0';
    return strlen(out) == written && wr_utf8_is_valid(out, written, NULL);
}

struct item {
    char key[TEXT_MAX], value[TEXT_MAX];
};

/* Reads the next item of a list key=value,key=value. Returns 1, 0 at the end, -1 if it is not one. */
static int next_item(const char **list, struct item *item)
{
    while (**list == ',' || **list == ' ')
        ++*list;
    if (!**list)
        return 0;
    size_t length = strcspn(*list, ",");
    const char *equals = memchr(*list, '=', length);
    size_t key_length = equals ? (size_t)(equals - *list) : 0;
    bool valid = equals && decode(item->key, *list, key_length) && *item->key &&
                 decode(item->value, equals + 1, length - key_length - 1);
    *list += length;
    return valid ? 1 : -1;
}

const char *wr_otlp_resource_find_fault(void)
{
    const char *list = get("OTEL_RESOURCE_ATTRIBUTES"), *name = get("OTEL_SERVICE_NAME");
    struct item item;
    int result = list ? 1 : 0;
    while (result > 0)
        result = next_item(&list, &item);
    if (result < 0)
        return "the environment variable OTEL_RESOURCE_ATTRIBUTES must be a list like key=value,key=value, in "
               "UTF-8";
    if (name && !wr_utf8_is_valid(name, strlen(name), NULL))
        return "the environment variable OTEL_SERVICE_NAME must be valid UTF-8";
    return NULL;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static const char *find_attribute(const weir_map *map, const char *key)
{
    return map ? wr_labels_find(map->items, map->count, key) : NULL;
}

/* Finds the last item with this key, which takes precedence, as in OpenTelemetry's own SDKs. Returns false if
 * the list does not have it. */
static bool find_item(const char *list, const char *key, struct item *item)
{
    struct item next;
    bool is_found = false;
    while (list && next_item(&list, &next) > 0)
        if (strcmp(next.key, key) == 0) {
            *item = next;
            is_found = true;
        }
    return is_found;
}

static void put(const struct wr_otlp_writer *writer, const char *key, const char *value)
{
    wr_otlp_put_attribute(writer, RESOURCE_ATTRIBUTES, key, value);
}

static void put_service(const struct wr_otlp_writer *writer, const struct wr_otlp_resource *resource)
{
    struct item item;
    char unknown[TEXT_MAX];
    const char *name = resource->service_name;
    if (!name)
        name = find_attribute(resource->attributes, service);
    if (!name)
        name = get("OTEL_SERVICE_NAME");
    if (!name && find_item(get("OTEL_RESOURCE_ATTRIBUTES"), service, &item) && *item.value)
        name = item.value;
    if (!name) {
        const char *program = program_invocation_short_name;
        bool is_valid = wr_utf8_is_valid(program, strlen(program), NULL);
        snprintf(unknown, sizeof unknown, "unknown_service:%.500s", is_valid ? program : "program");
        name = unknown;
    }
    put(writer, service, name);
}

void wr_otlp_resource_put(const struct wr_otlp_writer *writer, const struct wr_otlp_resource *resource)
{
    struct item item, later;
    const weir_map *map = resource->attributes;
    const char *list = get("OTEL_RESOURCE_ATTRIBUTES");
    put_service(writer, resource);
    for (size_t i = 0; map && i < map->count; i++)
        if (strcmp(map->items[i].key, service) != 0)
            put(writer, map->items[i].key, map->items[i].value);
    while (list && next_item(&list, &item) > 0)
        if (strcmp(item.key, service) != 0 && !find_attribute(map, item.key) &&
            !find_item(list, item.key, &later))
            put(writer, item.key, item.value);
}
