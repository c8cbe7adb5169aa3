#include "otlp_env.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

static const char *get(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

char *wr_otlp_env_url(bool *no_memory)
{
    static const char path[] = "/v1/metrics";
    const char *own = get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
    const char *common = own ? NULL : get("OTEL_EXPORTER_OTLP_ENDPOINT");
    const char *base = own ? own : common;
    *no_memory = false;
    if (!base)
        return NULL;
    size_t length = strlen(base);
    while (common && length && base[length - 1] == '/')
        length--;
    char *url = calloc(1, length + sizeof path);
    *no_memory = !url;
    if (url) {
        memcpy(url, base, length);
        if (common)
            memcpy(url + length, path, sizeof path);
    }
    return url;
}

/* ---- Headers --------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns a copy without surrounding blanks, percent-decoded. NULL: out of memory. */
static char *copy_part(const char *text, size_t length)
{
    while (length && is_blank(*text))
        text++, length--;
    while (length && is_blank(text[length - 1]))
        length--;
    char *raw = strndup(text, length);
    char *decoded = raw ? curl_easy_unescape(NULL, raw, 0, NULL) : NULL;
    char *part = decoded ? strdup(decoded) : NULL;
    curl_free(decoded);
    free(raw);
    return part;
}

static bool add_item(const char *variable, const char *text, size_t length, otlp_env_add *add, void *ctx)
{
    const char *equals = memchr(text, '=', length);
    size_t name_length = (size_t)(equals - text);
    char *name = copy_part(text, name_length);
    char *value = copy_part(equals + 1, length - name_length - 1);
    bool added = name && value && add(ctx, variable, name, value);
    if (value)
        explicit_bzero(value, strlen(value));
    free(value);
    free(name);
    return added;
}

bool wr_otlp_env_headers(otlp_env_add *add, void *ctx, const char **fault)
{
    const char *name = get("OTEL_EXPORTER_OTLP_METRICS_HEADERS") ? "OTEL_EXPORTER_OTLP_METRICS_HEADERS"
                                                                 : "OTEL_EXPORTER_OTLP_HEADERS";
    const char *list = get(name);
    *fault = NULL;
    while (list && *list) {
        size_t length = strcspn(list, ",");
        bool is_empty = strspn(list, " \t") >= length;
        if (!is_empty && !memchr(list, '=', length)) {
            *fault = name;
            return false;
        }
        if (!is_empty && !add_item(name, list, length, add, ctx))
            return false;
        list += length + (list[length] == ',');
    }
    return true;
}
