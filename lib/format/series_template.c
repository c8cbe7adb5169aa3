#include "format/series_template.h"

#include <string.h>

#include "registry/labels_walk.h"

#define ALLOWED "allowed: {group}, {name}, {label.KEY}, and {{ and }} for braces"

/* ---- Reading --------------------------------------------------------------------------------- */

static struct series_template_part read_field(const char *text)
{
    static const char label[] = "label.";
    enum { LABEL = sizeof label - 1 };
    struct series_template_part part = {SERIES_TEMPLATE_INVALID, text, strcspn(text, "}")};
    bool is_closed = text[part.length];
    size_t length = part.length - 1; /* without the opening brace */
    const char *name = text + 1;
    part.length += is_closed;
    if (!is_closed || memchr(name, '{', length))
        return part;
    if (length == 5 && memcmp(name, "group", 5) == 0)
        part.kind = SERIES_TEMPLATE_GROUP;
    else if (length == 4 && memcmp(name, "name", 4) == 0)
        part.kind = SERIES_TEMPLATE_NAME;
    else if (length > LABEL && length - LABEL < SERIES_TEMPLATE_KEY && memcmp(name, label, LABEL) == 0)
        part = (struct series_template_part){SERIES_TEMPLATE_LABEL, name + LABEL, length - LABEL};
    return part;
}

struct series_template_part wr_series_template_next(const char **pos)
{
    const char *text = *pos;
    struct series_template_part part = {SERIES_TEMPLATE_TEXT, text, strcspn(text, "{}")};
    if (!*text) {
        part.kind = SERIES_TEMPLATE_END;
    } else if (part.length) {
        *pos += part.length;
    } else if (text[1] == text[0]) {
        part.length = 1;
        *pos += 2;
    } else if (*text == '}') {
        part = (struct series_template_part){SERIES_TEMPLATE_INVALID, text, 1};
        *pos += 1;
    } else {
        part = read_field(text);
        *pos = strchr(text, '}') ? strchr(text, '}') + 1 : text + strlen(text);
    }
    return part;
}

bool wr_series_template_check(const weir_host *host, const char *option, const char *text)
{
    struct series_template_part part;
    const char *pos = text;
    do
        part = wr_series_template_next(&pos);
    while (part.kind != SERIES_TEMPLATE_END && part.kind != SERIES_TEMPLATE_INVALID);
    if (part.kind == SERIES_TEMPLATE_INVALID && part.text[part.length - 1] == '}' && part.length > 1)
        host->refuse(host, option, "\"%s\": %.*s is not a field; " ALLOWED, text, (int)part.length, part.text);
    else if (part.kind == SERIES_TEMPLATE_INVALID)
        host->refuse(host, option, "\"%s\": the brace in \"%.*s\" has no partner; " ALLOWED, text,
                     (int)part.length, part.text);
    return part.kind == SERIES_TEMPLATE_END;
}

bool wr_series_template_is_constant(const char *text)
{
    struct series_template_part part;
    do
        part = wr_series_template_next(&text);
    while (part.kind == SERIES_TEMPLATE_TEXT);
    return part.kind == SERIES_TEMPLATE_END;
}

/* ---- Expanding ------------------------------------------------------------------------------- */

/* Returns NULL if the series has no such label. */
static const char *find_label(const weir_batch *batch, const weir_series *series,
                              const struct series_template_part *part)
{
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    while ((label = wr_labels_next(&walk, series, batch)))
        if (strncmp(label->key, part->text, part->length) == 0 && !label->key[part->length])
            return label->value;
    return NULL;
}

struct output {
    char *bytes;
    size_t room, length;
};

static void put_byte(struct output *out, char byte)
{
    if (out->length + 1 < out->room)
        out->bytes[out->length] = byte;
    out->length++;
}

static void put_value(struct output *out, const struct series_template_rules *rules,
                      enum series_template_kind field, const char *value)
{
    for (; *value; value++) {
        char byte = rules->map ? rules->map(field, *value) : *value;
        if (byte)
            put_byte(out, byte);
    }
}

static void put_constant(struct output *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        put_byte(out, text[i]);
}

static void put_label(struct output *out, const struct series_template_rules *rules, const char *value)
{
    if (value && *value)
        put_value(out, rules, SERIES_TEMPLATE_LABEL, value);
    else if (rules->absent)
        put_constant(out, rules->absent, strlen(rules->absent));
}

size_t wr_series_template_expand(const char *text, const struct series_template_rules *rules,
                                 const weir_batch *batch, const weir_series *series, char *buffer, size_t room)
{
    struct output out = {buffer, room, 0};
    struct series_template_part part;
    while ((part = wr_series_template_next(&text)).kind != SERIES_TEMPLATE_END) {
        if (part.kind == SERIES_TEMPLATE_GROUP)
            put_value(&out, rules, part.kind, series->group);
        else if (part.kind == SERIES_TEMPLATE_NAME)
            put_value(&out, rules, part.kind, series->name);
        else if (part.kind == SERIES_TEMPLATE_LABEL)
            put_label(&out, rules, find_label(batch, series, &part));
        else
            put_constant(&out, part.text, part.length);
    }
    if (room)
        buffer[out.length < room ? out.length : room - 1] = '\0';
    return out.length;
}
