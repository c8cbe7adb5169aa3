#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "common.h"
#include "error.h"
#include "number.h"
#include "suggest.h"
#include "units.h"
#include "utf8.h"

enum { SHOWN_ROOM = 200, WORDS_ROOM = 600, MOST_ROWS = 1000 };

/* ---- Types ----------------------------------------------------------------------------------- */

struct type {
    const char *name;
    size_t bytes, align;
    const char *hint; /* what a value of it looks like */
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

const char *wr_options_type_name(uint32_t type)
{
    return type && type < WR_COUNT_OF(types) ? types[type].name : "unknown";
}

/* ---- Rows ------------------------------------------------------------------------------------ */

const weir_option *wr_options_row(const struct wr_options_table *table, size_t i)
{
    if (!table->rows)
        return NULL;
    const weir_option *row = (const weir_option *)((const char *)table->rows + i * table->row_bytes);
    return row->name ? row : NULL;
}

const weir_option *wr_options_find(const struct wr_options_table *table, const char *name)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(table, i)); i++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static size_t number_of(const struct wr_options_table *table, const weir_option *row)
{
    return (size_t)((const char *)row - (const char *)table->rows) / table->row_bytes;
}

static void *field_of(const struct wr_options_fill *fill, const weir_option *row)
{
    return (char *)fill->target + row->offset;
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

/* "1..65535", "1s..", "..1GiB": the part in front of or behind the dots, as a text; false: there is none. */
static bool get_bound(const char *allowed, bool upper, char *bound, size_t room)
{
    const char *dots = strstr(allowed, "..");
    if (!dots)
        return false;
    const char *start = upper ? dots + 2 : allowed;
    size_t length = upper ? strlen(start) : (size_t)(dots - allowed);
    if (length == 0 || length >= room)
        return false;
    memcpy(bound, start, length);
    bound[length] = '\0';
    return true;
}

/* A number of any type as a double: exact enough to compare it with a bound that people write. */
static bool parse_number(uint32_t type, const char *text, double *value)
{
    int64_t integer;
    switch (type) {
    case WEIR_OPTION_INT:
        if (!wr_number_parse_int(text, &integer))
            return false;
        break;
    case WEIR_OPTION_DURATION:
        if (!wr_units_parse_duration(text, &integer))
            return false;
        break;
    case WEIR_OPTION_SIZE:
        if (!wr_units_parse_size(text, &integer))
            return false;
        break;
    default: return wr_number_parse_double(text, value);
    }
    *value = (double)integer;
    return true;
}

static bool is_within(const weir_option *row, double value)
{
    char bound[WR_UNITS_ROOM];
    double limit;
    if (!row->allowed)
        return true;
    if (get_bound(row->allowed, false, bound, sizeof bound) && parse_number(row->type, bound, &limit) &&
        value < limit)
        return false;
    return !(get_bound(row->allowed, true, bound, sizeof bound) && parse_number(row->type, bound, &limit) &&
             value > limit);
}

/* ---- One value as text ----------------------------------------------------------------------- */

/* Why a text is not a value of the row: words that go behind the value itself. */
static bool refuse(struct wr_error *error, const char *format, const char *allowed)
{
    wr_error_set(error, WEIR_ERR_CONFIG, format, allowed);
    return false;
}

/* A number without its unit is by far the commonest mistake here, and is told apart. */
static bool refuse_number(struct wr_error *error, const weir_option *row, const char *text)
{
    double number;
    bool needs_unit = row->type == WEIR_OPTION_DURATION || row->type == WEIR_OPTION_SIZE;
    if (needs_unit && wr_number_parse_double(text, &number))
        return refuse(error, "has no unit; it must be %s", type_of(row)->hint);
    return refuse(error, "is not %s", type_of(row)->hint);
}

static bool set_number(const weir_option *row, const char *text, void *field, struct wr_error *error)
{
    double value;
    if (!parse_number(row->type, text, &value))
        return refuse_number(error, row, text);
    if (!is_within(row, value))
        return refuse(error, "is out of range; allowed: %s", row->allowed);
    switch (row->type) {
    case WEIR_OPTION_INT: wr_number_parse_int(text, field); break;
    case WEIR_OPTION_DURATION: wr_units_parse_duration(text, field); break;
    case WEIR_OPTION_SIZE: wr_units_parse_size(text, field); break;
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

/* "auto|always|never", as people read it: auto, always, never. */
static const char *put_words(const weir_option *row, char *out, size_t room)
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

static bool set_enum(const weir_option *row, const char *text, int64_t *field, struct wr_error *error)
{
    const char *word = row->allowed ? row->allowed : "";
    size_t length = strlen(text);
    for (int64_t i = 0; *word; i++) {
        size_t end = strcspn(word, "|");
        if (end == length && memcmp(word, text, end) == 0) {
            *field = i;
            return true;
        }
        word += end + (word[end] == '|');
    }
    char words[WORDS_ROOM];
    return refuse(error, "is not allowed; allowed: %s", put_words(row, words, sizeof words));
}

static bool set_string(const struct wr_options_fill *fill, const char *text, const char **field,
                       struct wr_error *error)
{
    *field = wr_keep_text(fill->keep, text, strlen(text));
    if (!*field)
        wr_error_set(error, WEIR_ERR_MEMORY, "no memory");
    return *field;
}

/* Relative paths are meant from the working folder of the moment of configuring. */
static bool set_path(const struct wr_options_fill *fill, const char *text, const char **field,
                     struct wr_error *error)
{
    if (*text == '\0')
        return refuse(error, "is not %s", "a path");
    if (*text == '/')
        return set_string(fill, text, field, error);
    const char *folder = fill->environment->folder;
    if (!folder)
        return refuse(error, "is relative, but the working folder is %s", "gone");
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, text);
    const char *absolute = wr_buffer_text(&path);
    bool done = absolute && set_string(fill, absolute, field, error);
    if (!absolute)
        wr_error_set(error, WEIR_ERR_MEMORY, "no memory");
    wr_buffer_fini(&path);
    return done;
}

/* As a default writes it: "a,b". */
static bool set_list(const struct wr_options_fill *fill, const char *text, weir_list *field,
                     struct wr_error *error)
{
    size_t count = *text != '\0';
    for (const char *c = text; *c; c++)
        count += *c == ',';
    const char **items = wr_keep_get(fill->keep, (count + 1) * sizeof *items);
    for (size_t i = 0; items && i < count; i++) {
        size_t length = strcspn(text, ",");
        items[i] = wr_keep_text(fill->keep, text, length);
        text += length + (text[length] == ',');
        if (!items[i])
            items = NULL;
    }
    if (!items) {
        wr_error_set(error, WEIR_ERR_MEMORY, "no memory");
        return false;
    }
    *field = (weir_list){count, items};
    return true;
}

bool wr_options_set_text(const struct wr_options_fill *fill, const weir_option *row, const char *text,
                         struct wr_error *error)
{
    void *field = field_of(fill, row);
    switch (row->type) {
    case WEIR_OPTION_BOOL: return set_bool(text, field, error);
    case WEIR_OPTION_STRING: return set_string(fill, text, field, error);
    case WEIR_OPTION_PATH: return set_path(fill, text, field, error);
    case WEIR_OPTION_ENUM: return set_enum(row, text, field, error);
    case WEIR_OPTION_LIST: return set_list(fill, text, field, error);
    case WEIR_OPTION_MAP: return refuse(error, "is not %s", "possible here: a map has no form as a text");
    default: return set_number(row, text, field, error);
    }
}

bool wr_options_set_defaults(const struct wr_options_fill *fill, struct wr_error *error)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(&fill->table, i)); i++) {
        if (row->standard && !wr_options_set_text(fill, row, row->standard, error)) {
            wr_error_prefix(error, "option \"%s\": the default \"%s\" ", row->name, row->standard);
            if (error->code == WEIR_ERR_CONFIG) /* nobody configured it */
                error->code = WEIR_ERR_PLUGIN;
            return false;
        }
    }
    return true;
}

/* ---- One value of a configuration ------------------------------------------------------------ */

/* A value, or, where it is not to be seen, only what it is. */
static const char *show_value(const weir_option *row, const struct wr_node *node, char *out, size_t room)
{
    return row->flags & WEIR_OPTION_SECRET ? wr_node_type_name(node->type) : wr_node_show(node, out, room);
}

/* Puts a refused value in front of the words for it. */
static bool refuse_value(const struct wr_node *node, const weir_option *row, const char *shown,
                         const struct wr_error *problem, struct wr_error *error)
{
    if (problem->code == WEIR_ERR_MEMORY)
        *error = *problem;
    else
        wr_node_error(node, error, "%s %s", row->flags & WEIR_OPTION_SECRET ? "the value" : shown, problem->text);
    return false;
}

static bool refuse_type(const struct wr_node *node, const weir_option *row, struct wr_error *error)
{
    char shown[SHOWN_ROOM], words[WORDS_ROOM];
    const char *value = show_value(row, node, shown, sizeof shown);
    bool needs_unit = row->type == WEIR_OPTION_DURATION || row->type == WEIR_OPTION_SIZE;
    if (needs_unit && node->type == WR_NODE_NUMBER)
        wr_node_error(node, error, "%s has no unit; it must be %s", value, type_of(row)->hint);
    else if (row->type == WEIR_OPTION_ENUM)
        wr_node_error(node, error, "%s is not allowed; allowed: %s", value,
                      put_words(row, words, sizeof words));
    else
        wr_node_error(node, error, "%s is not %s", value, type_of(row)->hint);
    return false;
}

static bool expand(const struct wr_options_fill *fill, const struct wr_node *node, struct wr_buffer *out,
                   struct wr_error *error)
{
    struct wr_error problem = {0};
    if (wr_expand(fill->environment, node->text, out, &problem) && wr_buffer_text(out))
        return true;
    wr_node_error(node, error, "%s", problem.code ? problem.text : "no memory");
    return false;
}

/* A string for an option that is no string counts only when something was expanded in it: "${PORT}" may be a
 * number, "80" is not. */
static bool takes_string(const weir_option *row, const struct wr_node *node)
{
    bool is_plain =
        row->type == WEIR_OPTION_BOOL || row->type == WEIR_OPTION_INT || row->type == WEIR_OPTION_DOUBLE;
    return row->type != WEIR_OPTION_LIST && row->type != WEIR_OPTION_MAP &&
           (!is_plain || strchr(node->text, '$'));
}

static bool set_from_string(const struct wr_options_fill *fill, const weir_option *row,
                            const struct wr_node *node, struct wr_error *error)
{
    if (!takes_string(row, node))
        return refuse_type(node, row, error);
    struct wr_buffer text = {0};
    struct wr_error problem = {0};
    bool done = expand(fill, node, &text, error);
    if (done && !wr_options_set_text(fill, row, wr_buffer_text(&text), &problem)) {
        char shown[SHOWN_ROOM];
        wr_utf8_quote(shown, sizeof shown, text.data, text.length);
        done = refuse_value(node, row, shown, &problem, error);
    }
    wr_buffer_fini(&text);
    return done;
}

static size_t count_members(const struct wr_node *node)
{
    size_t count = 0;
    for (const struct wr_node *member = node->first; member; member = member->next)
        count++;
    return count;
}

/* A string in a list or map, expanded and kept; NULL: the error is set. */
static const char *keep_item(const struct wr_options_fill *fill, const weir_option *row,
                             const struct wr_node *item, struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    if (item->type != WR_NODE_STRING) {
        wr_node_error(item, error, "%s is not a string", show_value(row, item, shown, sizeof shown));
        return NULL;
    }
    struct wr_buffer text = {0};
    const char *kept = NULL;
    if (expand(fill, item, &text, error)) {
        kept = wr_keep_text(fill->keep, text.data, text.length);
        if (!kept)
            wr_error_set(error, WEIR_ERR_MEMORY, "no memory");
    }
    wr_buffer_fini(&text);
    return kept;
}

static bool set_from_array(const struct wr_options_fill *fill, const weir_option *row,
                           const struct wr_node *node, struct wr_error *error)
{
    size_t count = 0;
    const char **items = wr_keep_get(fill->keep, (count_members(node) + 1) * sizeof *items);
    if (!items) {
        wr_error_set(error, WEIR_ERR_MEMORY, "no memory");
        return false;
    }
    for (const struct wr_node *item = node->first; item; item = item->next) {
        items[count] = keep_item(fill, row, item, error);
        if (!items[count++])
            return false;
    }
    *(weir_list *)field_of(fill, row) = (weir_list){count, items};
    return true;
}

static bool set_from_object(const struct wr_options_fill *fill, const weir_option *row,
                            const struct wr_node *node, struct wr_error *error)
{
    size_t count = 0;
    weir_label *items = wr_keep_get(fill->keep, (count_members(node) + 1) * sizeof *items);
    if (!items) {
        wr_error_set(error, WEIR_ERR_MEMORY, "no memory");
        return false;
    }
    for (const struct wr_node *item = node->first; item; item = item->next) {
        items[count].key = wr_keep_text(fill->keep, item->key, strlen(item->key));
        items[count].value = keep_item(fill, row, item, error);
        if (!items[count].value || !items[count].key)
            return false;
        count++;
    }
    *(weir_map *)field_of(fill, row) = (weir_map){count, items};
    return true;
}

static bool set_from_plain(const struct wr_options_fill *fill, const weir_option *row,
                           const struct wr_node *node, const char *text, struct wr_error *error)
{
    struct wr_error problem = {0};
    if (wr_options_set_text(fill, row, text, &problem))
        return true;
    char shown[SHOWN_ROOM];
    return refuse_value(node, row, wr_node_show(node, shown, sizeof shown), &problem, error);
}

bool wr_options_set_node(const struct wr_options_fill *fill, const weir_option *row, const struct wr_node *node,
                         struct wr_error *error)
{
    switch (node->type) {
    case WR_NODE_STRING: return set_from_string(fill, row, node, error);
    case WR_NODE_BOOL:
        if (row->type == WEIR_OPTION_BOOL)
            return set_from_plain(fill, row, node, node->truth ? "true" : "false", error);
        break;
    case WR_NODE_NUMBER:
        if (row->type == WEIR_OPTION_INT || row->type == WEIR_OPTION_DOUBLE)
            return set_from_plain(fill, row, node, node->text, error);
        break;
    case WR_NODE_ARRAY:
        if (row->type == WEIR_OPTION_LIST)
            return set_from_array(fill, row, node, error);
        break;
    case WR_NODE_OBJECT:
        if (row->type == WEIR_OPTION_MAP)
            return set_from_object(fill, row, node, error);
        break;
    case WR_NODE_NULL: break;
    }
    return refuse_type(node, row, error);
}

/* ---- Objects --------------------------------------------------------------------------------- */

struct members {
    const struct wr_options_fill *fills;
    size_t count;
    const char *const *others;
    struct wr_error *error;
};

static bool is_other(const struct members *m, const char *name)
{
    for (size_t i = 0; m->others && m->others[i]; i++)
        if (strcmp(m->others[i], name) == 0)
            return true;
    return false;
}

static bool has_row_below(const struct members *m, const char *name)
{
    size_t length = strlen(name);
    const weir_option *row;
    for (size_t i = 0; i < m->count; i++)
        for (size_t j = 0; (row = wr_options_row(&m->fills[i].table, j)); j++)
            if (strncmp(row->name, name, length) == 0 && row->name[length] == '.')
                return true;
    return false;
}

static void list_allowed(const struct members *m, struct wr_suggest *suggest, struct wr_buffer *allowed)
{
    const weir_option *row;
    for (size_t i = 0; m->others && m->others[i]; i++) {
        wr_suggest_try(suggest, m->others[i]);
        wr_buffer_put_format(allowed, "%s%s", allowed->length ? ", " : "", m->others[i]);
    }
    for (size_t i = 0; i < m->count; i++) {
        for (size_t j = 0; (row = wr_options_row(&m->fills[i].table, j)); j++) {
            wr_suggest_try(suggest, row->name);
            wr_buffer_put_format(allowed, "%s%s", allowed->length ? ", " : "", row->name);
        }
    }
}

static bool refuse_member(const struct members *m, const struct wr_node *member, const char *name)
{
    struct wr_suggest suggest;
    struct wr_buffer allowed = {0};
    char nearest[SHOWN_ROOM];
    wr_suggest_init(&suggest, name);
    list_allowed(m, &suggest, &allowed);
    const char *list = wr_buffer_text(&allowed);
    wr_node_key_error(member, m->error, "unknown option%s allowed: %s",
                      suggest.best ? wr_suggest_words(&suggest, nearest, sizeof nearest) : ";",
                      list ? list : "");
    wr_buffer_fini(&allowed);
    return false;
}

/* "tls.verify": true beside "tls": {...} would be a key that stands twice, and nobody would see it. */
static bool refuse_dots(const struct members *m, const struct wr_node *member)
{
    char shown[SHOWN_ROOM];
    wr_node_key_error(member, m->error, "dots are not allowed in a key; write {%s: {...}}",
                      wr_utf8_quote(shown, sizeof shown, member->key, strcspn(member->key, ".")));
    return false;
}

static bool set_members(const struct members *m, const struct wr_node *object, const char *prefix);

static bool set_member(const struct members *m, const struct wr_node *member, const char *name)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct wr_options_fill *fill = &m->fills[i];
        const weir_option *row = wr_options_find(&fill->table, name);
        if (!row)
            continue;
        if (fill->seen)
            fill->seen[number_of(&fill->table, row)] = 1;
        return wr_options_set_node(fill, row, member, m->error);
    }
    if (is_other(m, name))
        return true;
    if (!has_row_below(m, name))
        return refuse_member(m, member, name);
    if (member->type != WR_NODE_OBJECT) {
        char shown[SHOWN_ROOM];
        wr_node_error(member, m->error, "%s is not an object", wr_node_show(member, shown, sizeof shown));
        return false;
    }
    return set_members(m, member, name);
}

static bool set_members(const struct members *m, const struct wr_node *object, const char *prefix)
{
    for (const struct wr_node *member = object->first; member; member = member->next) {
        char name[SHOWN_ROOM];
        if (strchr(member->key, '.'))
            return refuse_dots(m, member);
        int length = snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", member->key);
        if (length < 0 || (size_t)length >= sizeof name)
            return refuse_member(m, member, "");
        if (!set_member(m, member, name))
            return false;
    }
    return true;
}

bool wr_options_set_members(const struct wr_options_fill *fills, size_t count, const char *const *others,
                            const struct wr_node *object, struct wr_error *error)
{
    struct members m = {fills, count, others, error};
    return set_members(&m, object, "");
}

bool wr_options_check_required(const struct wr_options_fill *fill, const struct wr_node *object,
                               struct wr_error *error)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(&fill->table, i)); i++) {
        if (!(row->flags & WEIR_OPTION_REQUIRED) || fill->seen[i])
            continue;
        if (object)
            wr_node_error(object, error, "the option \"%s\" is missing: %s", row->name, row->help);
        else
            wr_error_set(error, WEIR_ERR_CONFIG, "the option \"%s\" is missing: %s", row->name, row->help);
        return false;
    }
    return true;
}

/* ---- Checking a table ------------------------------------------------------------------------ */

static bool is_option_name(const char *name)
{
    size_t length = strlen(name);
    return length && *name != '.' && name[length - 1] != '.' && !strstr(name, "..") &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == length;
}

static bool check_row(const struct wr_options_table *table, const weir_option *row, struct wr_error *error)
{
    const struct type *type = type_of(row);
    const char *fault = NULL;
    if (!is_option_name(row->name))
        fault = "its name is not of the form [a-z0-9_.]";
    else if (!type)
        fault = "its type is unknown";
    else if (!row->help)
        fault = "it has no help";
    else if (row->offset % type->align != 0)
        fault = "its offset is not aligned for its type";
    else if (row->offset > table->struct_bytes || table->struct_bytes - row->offset < type->bytes)
        fault = "its field lies outside the options struct";
    else if (row->type == WEIR_OPTION_ENUM && !row->allowed)
        fault = "it is an enum without words allowed";
    if (fault)
        wr_error_set(error, WEIR_ERR_PLUGIN, "option \"%s\": %s", row->name, fault);
    return !fault;
}

static bool check_defaults(const struct wr_options_table *table, struct wr_error *error)
{
    struct wr_keep keep = {0};
    const char *entries[] = {NULL};
    const struct wr_environment environment = {.entries = entries, .folder = "/"};
    void *target = wr_keep_get(&keep, table->struct_bytes + 1);
    struct wr_options_fill fill = {*table, target, &environment, &keep, NULL};
    bool lawful = target && wr_options_set_defaults(&fill, error);
    if (!target)
        wr_error_set(error, WEIR_ERR_MEMORY, "no memory");
    wr_keep_fini(&keep);
    return lawful;
}

bool wr_options_check_table(const struct wr_options_table *table, struct wr_error *error)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(table, i)); i++) {
        if (i == MOST_ROWS) {
            wr_error_set(error, WEIR_ERR_PLUGIN, "the option table has no end: no row without a name");
            return false;
        }
        if (!check_row(table, row, error))
            return false;
        if (wr_options_find(table, row->name) != row) {
            wr_error_set(error, WEIR_ERR_PLUGIN, "option \"%s\": it stands twice in the table", row->name);
            return false;
        }
    }
    return check_defaults(table, error);
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
    const char *word = row->allowed;
    for (; index > 0; index--)
        word += strcspn(word, "|") + 1;
    wr_buffer_put(out, word, strcspn(word, "|"));
}

void wr_options_show(const weir_option *row, const void *target, bool unmasked, struct wr_buffer *out)
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
    default: show_text(*(const char *const *)field, out);
    }
}
