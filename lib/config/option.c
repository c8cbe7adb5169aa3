#include "config/option.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"
#include "text/number.h"
#include "text/suggest.h"
#include "text/units.h"
#include "text/url.h"
#include "text/utf8.h"

enum { WORDS_ROOM = 600 };

/* ---- Types ----------------------------------------------------------------------------------- */

struct type {
    const char *name;
    size_t bytes, align;
    const char *hint; /* what a value looks like, for messages */
};

#define TYPE(name, c_type, hint)                                                                               \
    {                                                                                                          \
        name, sizeof(c_type), _Alignof(c_type), hint                                                           \
    }

static const struct type types[] = {
    [WEIR_OPTION_BOOL] = TYPE("bool", bool, "true or false"),
    [WEIR_OPTION_INT] = TYPE("int", int64_t, "an integer"),
    [WEIR_OPTION_DOUBLE] = TYPE("double", double, "a number"),
    [WEIR_OPTION_STRING] = TYPE("string", const char *, "a string"),
    [WEIR_OPTION_PATH] = TYPE("path", const char *, "a path, as a string"),
    [WEIR_OPTION_DURATION] = TYPE("duration", int64_t, WR_UNITS_DURATION_HINT),
    [WEIR_OPTION_SIZE] = TYPE("size", int64_t, WR_UNITS_SIZE_HINT),
    [WEIR_OPTION_ENUM] = TYPE("enum", int64_t, "one of the words allowed"),
    [WEIR_OPTION_LIST] = TYPE("list", weir_list, "an array of strings"),
    [WEIR_OPTION_MAP] = TYPE("map", weir_map, "an object with strings for values"),
};

static const struct type *type_of(const weir_option *row)
{
    return row->type && row->type < WR_COUNT_OF(types) ? &types[row->type] : NULL;
}

const char *wr_option_type_name(uint32_t type)
{
    return type && type < WR_COUNT_OF(types) ? types[type].name : "unknown";
}

static bool is_option_name(const char *name)
{
    size_t length = strlen(name);
    return length && *name != '.' && name[length - 1] != '.' && !strstr(name, "..") &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == length;
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

/* "1..65535", "1s..", "..1GiB": the part before or after the dots. */
bool wr_option_get_bound(const weir_option *row, bool upper, char *bound, size_t room)
{
    const char *dots = row->allowed ? strstr(row->allowed, "..") : NULL;
    if (!dots)
        return false;
    const char *start = upper ? dots + 2 : row->allowed;
    size_t length = upper ? strlen(start) : (size_t)(dots - row->allowed);
    if (length == 0 || length >= room)
        return false;
    memcpy(bound, start, length);
    bound[length] = '\0';
    return true;
}

/* A number of any type as a double: exact enough for comparing it with a bound. */
static bool read_number(uint32_t type, const char *text, double *value)
{
    int64_t integer;
    switch (type) {
    case WEIR_OPTION_INT:
        if (!wr_number_read_int(text, &integer))
            return false;
        break;
    case WEIR_OPTION_DURATION:
        if (!wr_units_read_duration(text, &integer))
            return false;
        break;
    case WEIR_OPTION_SIZE:
        if (!wr_units_read_size(text, &integer))
            return false;
        break;
    default: return wr_number_read_double(text, value);
    }
    *value = (double)integer;
    return true;
}

static bool is_within(const weir_option *row, double value)
{
    char bound[WR_UNITS_ROOM];
    double limit;
    if (wr_option_get_bound(row, false, bound, sizeof bound) && read_number(row->type, bound, &limit) &&
        value < limit)
        return false;
    return !(wr_option_get_bound(row, true, bound, sizeof bound) && read_number(row->type, bound, &limit) &&
             value > limit);
}

/* ---- Invalid rows ---------------------------------------------------------------------------- */

/* Either bound may be missing, but not both. */
static bool is_range(const weir_option *row)
{
    char low[WR_UNITS_ROOM], high[WR_UNITS_ROOM];
    double lowest, highest;
    const char *dots = strstr(row->allowed, "..");
    bool has_low = wr_option_get_bound(row, false, low, sizeof low);
    bool has_high = wr_option_get_bound(row, true, high, sizeof high);
    if (!dots || has_low != (dots > row->allowed) || has_high != (dots[2] != '\0') || (!has_low && !has_high))
        return false;
    if ((has_low && !read_number(row->type, low, &lowest)) ||
        (has_high && !read_number(row->type, high, &highest)))
        return false;
    return !has_low || !has_high || lowest <= highest;
}

/* "auto|always|never": no word is empty or repeated. */
static bool is_word_list(const char *allowed)
{
    for (const char *word = allowed;; word += strcspn(word, "|") + 1) {
        size_t length = strcspn(word, "|");
        if (!length)
            return false;
        for (const char *other = allowed; other < word; other += strcspn(other, "|") + 1)
            if (strcspn(other, "|") == length && memcmp(other, word, length) == 0)
                return false;
        if (!word[length])
            return true;
    }
}

static const char *find_fault_of_allowed(const weir_option *row)
{
    bool is_number = row->type == WEIR_OPTION_INT || row->type == WEIR_OPTION_DOUBLE ||
                     row->type == WEIR_OPTION_DURATION || row->type == WEIR_OPTION_SIZE;
    if (row->type == WEIR_OPTION_ENUM && !row->allowed)
        return "an enum needs a list of allowed words";
    if (row->type == WEIR_OPTION_ENUM && !is_word_list(row->allowed))
        return "allowed: must be words separated by bars, like a|b|c, each different and none empty";
    if (is_number && row->allowed && !is_range(row))
        return "allowed: must be a range like 1..10, 1.. or ..10, of values of its type, the lower one first";
    return NULL;
}

const char *wr_option_find_fault(const weir_option *row, size_t struct_bytes)
{
    const struct type *type = type_of(row);
    if (!is_option_name(row->name))
        return "its name is not of the form [a-z0-9_.]";
    if (!type)
        return "its type is unknown";
    if (!row->help)
        return "it has no help";
    if (row->offset % type->align != 0)
        return "its offset is not aligned for its type";
    if (row->offset > struct_bytes || struct_bytes - row->offset < type->bytes)
        return "its field lies outside the options struct";
    return find_fault_of_allowed(row);
}

size_t wr_option_bytes(const weir_option *row)
{
    return type_of(row)->bytes;
}

/* ---- One value as text ----------------------------------------------------------------------- */

/* Why a text is not a value of the row. The caller puts the value before the message. */
static bool refuse(struct wr_error *error, const char *format, const char *allowed)
{
    return wr_error_refuse(error, WEIR_ERR_CONFIG, format, allowed);
}

/* A number without its unit is by far the most common mistake, and has a message of its own. */
static bool refuse_number(struct wr_error *error, const weir_option *row, const char *text)
{
    double number;
    bool needs_unit = row->type == WEIR_OPTION_DURATION || row->type == WEIR_OPTION_SIZE;
    if (needs_unit && wr_number_read_double(text, &number))
        return refuse(error, "has no unit; it must be %s", type_of(row)->hint);
    char nearest[WR_UNITS_NEAREST_ROOM];
    return wr_error_refuse(error, WEIR_ERR_CONFIG, "is not %s%s", type_of(row)->hint,
                           needs_unit ? wr_units_suggest(text, row->type == WEIR_OPTION_SIZE, nearest) : "");
}

static bool set_number(const weir_option *row, const char *text, void *field, struct wr_error *error)
{
    double value;
    if (!read_number(row->type, text, &value))
        return refuse_number(error, row, text);
    if (!is_within(row, value))
        return refuse(error, "is out of range; allowed: %s", row->allowed);
    switch (row->type) {
    case WEIR_OPTION_INT: wr_number_read_int(text, field); break;
    case WEIR_OPTION_DURATION: wr_units_read_duration(text, field); break;
    case WEIR_OPTION_SIZE: wr_units_read_size(text, field); break;
    default: *(double *)field = value;
    }
    return true;
}

static bool set_bool(const char *text, bool *field, struct wr_error *error)
{
    bool truth = strcmp(text, "true") == 0;
    if (!truth && strcmp(text, "false") != 0)
        return refuse(error, "is not %s", "true or false");
    *field = truth;
    return true;
}

/* "auto|always|never" as a list for people: auto, always, never. */
static const char *put_word_list(const weir_option *row, char *out, size_t room)
{
    size_t used = 0;
    for (const char *c = row->allowed ? row->allowed : ""; *c && used + 3 <= room; c++) {
        out[used++] = *c == '|' ? ',' : *c;
        if (*c == '|')
            out[used++] = ' ';
    }
    out[used] = '\0';
    return out;
}

const char *wr_option_word(const weir_option *row, int64_t index, size_t *length)
{
    const char *word = row->allowed ? row->allowed : "";
    for (; *word && index > 0; index--) {
        word += strcspn(word, "|");
        word += *word == '|';
    }
    *length = strcspn(word, "|");
    return *word ? word : NULL;
}

static void refuse_word(const weir_option *row, const char *text, struct wr_error *error)
{
    const char *word;
    size_t length;
    char words[WORDS_ROOM], candidate[WR_SUGGEST_LONGEST + 1], nearest[WR_SUGGEST_ROOM];
    struct wr_suggest suggest;
    wr_suggest_init(&suggest, text);
    for (int64_t i = 0; (word = wr_option_word(row, i, &length)); i++) {
        if (length > WR_SUGGEST_LONGEST)
            continue;
        memcpy(candidate, word, length);
        candidate[length] = '\0';
        wr_suggest_try(&suggest, candidate);
    }
    wr_suggest_text(&suggest, nearest, sizeof nearest);
    wr_error_set(error, WEIR_ERR_CONFIG, "is not allowed%s allowed: %s", *nearest ? nearest : ";",
                 put_word_list(row, words, sizeof words));
}

static bool set_enum(const weir_option *row, const char *text, int64_t *field, struct wr_error *error)
{
    const char *word;
    size_t length = strlen(text), end;
    for (int64_t i = 0; (word = wr_option_word(row, i, &end)); i++) {
        if (end == length && memcmp(word, text, end) == 0) {
            *field = i;
            return true;
        }
    }
    refuse_word(row, text, error);
    return false;
}

static bool set_string(const struct wr_option_site *site, const char *text, const char **field,
                       struct wr_error *error)
{
    *field = wr_region_text(site->keep, text, strlen(text));
    if (!*field)
        wr_error_no_memory(error, NULL);
    return *field;
}

/* A relative path is relative to the working directory at the time of configuring. */
static bool set_path(const struct wr_option_site *site, const char *text, const char **field,
                     struct wr_error *error)
{
    if (*text == '\0')
        return refuse(error, "is not %s", "a path");
    if (*text == '/')
        return set_string(site, text, field, error);
    const char *folder = site->environment->folder;
    if (!folder)
        return refuse(error, "is relative, but the working folder is %s", "gone");
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, text);
    const char *absolute = wr_buffer_text(&path);
    bool done = absolute && set_string(site, absolute, field, error);
    if (!absolute)
        wr_error_no_memory(error, NULL);
    wr_buffer_fini(&path);
    return done;
}

/* As in a default: "a,b". */
static bool set_list(const struct wr_option_site *site, const char *text, weir_list *field,
                     struct wr_error *error)
{
    size_t count = *text != '\0';
    for (const char *c = text; *c; c++)
        count += *c == ',';
    const char **items = wr_region_alloc(site->keep, (count + 1) * sizeof *items);
    for (size_t i = 0; items && i < count; i++) {
        size_t length = strcspn(text, ",");
        items[i] = wr_region_text(site->keep, text, length);
        text += length + (text[length] == ',');
        if (!items[i])
            items = NULL;
    }
    if (!items) {
        return wr_error_no_memory(error, NULL);
    }
    *field = (weir_list){count, items};
    return true;
}

bool wr_option_set(const weir_option *row, void *target, const char *text, const struct wr_option_site *site,
                   struct wr_error *error)
{
    void *field = (char *)target + row->offset;
    switch (row->type) {
    case WEIR_OPTION_BOOL: return set_bool(text, field, error);
    case WEIR_OPTION_STRING: return set_string(site, text, field, error);
    case WEIR_OPTION_PATH: return set_path(site, text, field, error);
    case WEIR_OPTION_ENUM: return set_enum(row, text, field, error);
    case WEIR_OPTION_LIST: return set_list(site, text, field, error);
    case WEIR_OPTION_MAP: return refuse(error, "is not %s", "possible here: a map has no form as a text");
    default: return set_number(row, text, field, error);
    }
}

void wr_option_describe_mismatch(const weir_option *row, bool is_number, char *out, size_t room)
{
    char words[WORDS_ROOM];
    bool needs_unit = row->type == WEIR_OPTION_DURATION || row->type == WEIR_OPTION_SIZE;
    if (needs_unit && is_number)
        snprintf(out, room, "has no unit; it must be %s", type_of(row)->hint);
    else if (row->type == WEIR_OPTION_ENUM)
        snprintf(out, room, "is not allowed; allowed: %s", put_word_list(row, words, sizeof words));
    else
        snprintf(out, room, "is not %s", type_of(row)->hint);
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void show_text(const char *text, struct wr_buffer *out)
{
    if (!text) {
        wr_buffer_put_text(out, "-");
        return;
    }
    wr_buffer_put_char(out, '"');
    wr_utf8_show(out, text, strlen(text), '"');
    wr_buffer_put_char(out, '"');
}

static void show_url(const char *url, struct wr_buffer *out)
{
    struct wr_buffer masked = {0};
    wr_url_mask(&masked, url ? url : "");
    show_text(url ? wr_buffer_text(&masked) : NULL, out);
    wr_buffer_fini(&masked);
}

static void show_list(const weir_list *list, struct wr_buffer *out)
{
    wr_buffer_put_char(out, '[');
    for (size_t i = 0; i < list->count; i++) {
        wr_buffer_put_text(out, i ? ", " : "");
        show_text(list->items[i], out);
    }
    wr_buffer_put_char(out, ']');
}

static void show_map(const weir_map *map, struct wr_buffer *out)
{
    wr_buffer_put_char(out, '{');
    for (size_t i = 0; i < map->count; i++) {
        wr_buffer_put_text(out, i ? ", " : "");
        show_text(map->items[i].key, out);
        wr_buffer_put_text(out, ": ");
        show_text(map->items[i].value, out);
    }
    wr_buffer_put_char(out, '}');
}

static void show_enum(const weir_option *row, int64_t index, struct wr_buffer *out)
{
    size_t length;
    const char *word = wr_option_word(row, index, &length);
    if (word)
        wr_buffer_put(out, word, length);
}

void wr_option_show(const weir_option *row, const void *target, bool unmasked, struct wr_buffer *out)
{
    const void *field = (const char *)target + row->offset;
    char units[WR_UNITS_ROOM], number[WR_NUMBER_ROOM];
    if ((row->flags & WEIR_OPTION_SECRET) && !unmasked) {
        wr_buffer_put_text(out, "***");
        return;
    }
    switch (row->type) {
    case WEIR_OPTION_BOOL: wr_buffer_put_text(out, *(const bool *)field ? "true" : "false"); break;
    case WEIR_OPTION_INT: wr_buffer_put_format(out, "%" PRId64, *(const int64_t *)field); break;
    case WEIR_OPTION_DOUBLE:
        wr_buffer_put(out, number, wr_number_put_double(number, *(const double *)field));
        break;
    case WEIR_OPTION_DURATION:
        wr_buffer_put_text(out, wr_units_put_duration(units, *(const int64_t *)field));
        break;
    case WEIR_OPTION_SIZE: wr_buffer_put_text(out, wr_units_put_size(units, *(const int64_t *)field)); break;
    case WEIR_OPTION_ENUM: show_enum(row, *(const int64_t *)field, out); break;
    case WEIR_OPTION_LIST: show_list(field, out); break;
    case WEIR_OPTION_MAP: show_map(field, out); break;
    default:
        if ((row->flags & WEIR_OPTION_URL) && !unmasked)
            show_url(*(const char *const *)field, out);
        else
            show_text(*(const char *const *)field, out);
    }
}
