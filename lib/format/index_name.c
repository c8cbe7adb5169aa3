#include "format/index_name.h"

#include <stdbool.h>
#include <string.h>

#include "registry/labels.h"
#include "text/buffer.h"

/* https://www.elastic.co/guide/en/elasticsearch/reference/current/indices-create-index.html */

static const char label_field[] = "label.";
enum { LABEL_FIELD = sizeof label_field - 1 };

/* ---- The template ---------------------------------------------------------------------------- */

/* A part of a template: a character, or a field. */
struct part {
    const char *text;
    size_t length;
    bool is_field; /* then text is what is between the braces */
};

/* Returns false at the end. A brace without partner is a part that is a character. */
static bool next_part(const char **at, struct part *part)
{
    const char *end = **at == '{' ? strchr(*at, '}') : NULL;
    *part = (struct part){.text = *at, .length = 1};
    if (!**at)
        return false;
    if (end)
        *part = (struct part){*at + 1, (size_t)(end - *at - 1), true};
    *at = part->text + part->length + part->is_field;
    return true;
}

static bool is_text(const struct part *part, const char *text)
{
    return part->length == strlen(text) && memcmp(part->text, text, part->length) == 0;
}

static bool is_label(const struct part *part)
{
    return part->length > LABEL_FIELD && memcmp(part->text, label_field, LABEL_FIELD) == 0;
}

static bool is_allowed(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

const char *wr_index_name_find_fault(const char *text)
{
    struct part part;
    const char *at = text;
    if (!*text || strlen(text) > WR_INDEX_NAME_LONGEST)
        return "\"index\" must have 1 to 255 characters";
    if (strchr("-_", *text) || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return "\"index\" must not begin with \"-\" or \"_\", nor be \".\" or \"..\"";
    while (next_part(&at, &part)) {
        if (part.is_field && !is_text(&part, "group") && !is_text(&part, "name") && !is_label(&part))
            return "\"index\" has an unknown field; allowed: {group}, {name}, {label.KEY}";
        if (!part.is_field && !is_allowed(*part.text))
            return "\"index\" has a character that index names do not have; allowed: lowercase letters, "
                   "digits, "
                   "\".\", \"_\", \"-\", and the fields {group}, {name}, {label.KEY}";
    }
    return NULL;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* One '_' for a character of several bytes. */
static void put_value(struct wr_buffer *out, const char *value)
{
    for (; *value; value++) {
        char c = *value >= 'A' && *value <= 'Z' ? (char)(*value - 'A' + 'a') : *value;
        if (((unsigned char)c & 0xc0) != 0x80)
            wr_buffer_put_char(out, is_allowed(c) ? c : '_');
    }
}

static void put_label(struct wr_buffer *out, const struct part *part, const weir_series *series,
                      const weir_batch *batch)
{
    const char *key = part->text + LABEL_FIELD;
    size_t length = part->length - LABEL_FIELD;
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    while ((label = wr_labels_next(&walk, series, batch)))
        if (strlen(label->key) == length && memcmp(label->key, key, length) == 0)
            break;
    put_value(out, label && *label->value ? label->value : "none");
}

static void put_part(struct wr_buffer *out, const struct part *part, const weir_series *series,
                     const weir_batch *batch)
{
    if (!part->is_field)
        wr_buffer_put_char(out, *part->text);
    else if (is_label(part))
        put_label(out, part, series, batch);
    else
        put_value(out, is_text(part, "group") ? series->group : series->name);
}

/* Names must not begin so, but what replaces a field may. */
static bool begins_wrongly(const char *name, size_t length)
{
    return length && (*name == '-' || *name == '_' || (*name == '.' && length == 1) ||
                      (length == 2 && memcmp(name, "..", 2) == 0));
}

static void put_in_front(struct wr_buffer *out, size_t start, const char *text)
{
    size_t length = strlen(text);
    if (!wr_buffer_reserve(out, length))
        return;
    memmove(out->data + start + length, out->data + start, out->length - start);
    memcpy(out->data + start, text, length);
    out->length += length;
}

void wr_index_name_put(struct wr_buffer *out, const char *text, const weir_series *series,
                       const weir_batch *batch)
{
    size_t start = out->length;
    struct part part;
    while (next_part(&text, &part))
        put_part(out, &part, series, batch);
    if (!out->failed && begins_wrongly(out->data + start, out->length - start))
        put_in_front(out, start, "weir");
    if (!out->failed && out->length - start > WR_INDEX_NAME_LONGEST)
        out->length = start + WR_INDEX_NAME_LONGEST;
}
