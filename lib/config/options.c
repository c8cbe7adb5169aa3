#include "config/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"
#include "config/option.h"
#include "config/problems.h"
#include "config/sections.h"
#include "config/unknown_keys.h"
#include "text/suggest.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200, MOST_ROWS = 1000 };

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

const weir_option *wr_options_find_key(const struct wr_options_table *table, const char *key)
{
    const weir_option *row;
    size_t length = strlen(key);
    for (size_t i = 0; (row = wr_options_row(table, i)); i++)
        if (strcspn(row->name, ".") == length && strncmp(row->name, key, length) == 0)
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

/* ---- Defaults -------------------------------------------------------------------------------- */

bool wr_options_set_text(const struct wr_options_fill *fill, const weir_option *row, const char *text,
                         struct wr_error *error)
{
    const struct wr_option_site site = {fill->environment, fill->keep};
    return wr_option_set(row, fill->target, text, &site, error);
}

bool wr_options_set_defaults(const struct wr_options_fill *fill, struct wr_error *error)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(&fill->table, i)); i++) {
        if (row->default_value && !wr_options_set_text(fill, row, row->default_value, error)) {
            wr_error_prefix(error, "option \"%s\": the default \"%s\" ", row->name, row->default_value);
            if (error->code == WEIR_ERR_CONFIG) /* not an error of the configuration */
                error->code = WEIR_ERR_PLUGIN;
            return false;
        }
    }
    return true;
}

/* ---- One value of a configuration ------------------------------------------------------------ */

/* A value, or only its type if it is secret. */
static const char *show_value(const weir_option *row, const struct wr_node *node, char *out, size_t room)
{
    return row->flags & WEIR_OPTION_SECRET ? wr_node_type_name(node->type) : wr_node_show(node, out, room);
}

/* Puts a refused value before the message. */
static bool refuse_value(const struct wr_node *node, const weir_option *row, const char *shown,
                         const struct wr_error *problem, struct wr_error *error)
{
    if (problem->code == WEIR_ERR_MEMORY)
        *error = *problem;
    else
        wr_node_error(node, error, "%s %s", row->flags & WEIR_OPTION_SECRET ? "the value" : shown,
                      problem->text);
    return false;
}

static bool refuse_type(const struct wr_node *node, const weir_option *row, struct wr_error *error)
{
    char shown[SHOWN_ROOM], words[WR_ERROR_ROOM];
    wr_option_describe_mismatch(row, node->type == WR_NODE_NUMBER, words, sizeof words);
    return wr_node_error(node, error, "%s %s", show_value(row, node, shown, sizeof shown), words);
}

static bool expand(const struct wr_options_fill *fill, const struct wr_node *node, struct wr_buffer *out,
                   struct wr_error *error)
{
    struct wr_error problem;
    if (!wr_expand(fill->environment, node->text, out, fill->expanded, &problem))
        return wr_node_problem(node, &problem, error);
    return wr_buffer_text(out) || wr_error_no_memory(error, NULL);
}

/* A string for an option that is not a string is accepted only if something is expanded in it: "${PORT}" may be
 * a number, "80" is not. */
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

/* What an item takes besides its string. Options for all handlers are copied for each of them. */
static bool count_item(const struct wr_options_fill *fill, const struct wr_node *item, struct wr_error *error)
{
    struct wr_error problem = {0};
    if (wr_expand_count(fill->expanded, sizeof(char *) + (item->key ? strlen(item->key) : 0), &problem))
        return true;
    return wr_node_error(item, error, "%s", problem.text);
}

/* A string in a list or map, expanded and copied. Returns NULL with the error set. */
static const char *keep_item(const struct wr_options_fill *fill, const weir_option *row,
                             const struct wr_node *item, struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    if (item->type == WR_NODE_NUMBER && row->allowed) {
        if (!count_item(fill, item, error))
            return NULL;
        const char *number = wr_region_text(fill->keep, item->text, strlen(item->text));
        if (!number)
            wr_error_no_memory(error, NULL);
        return number;
    }
    if (item->type != WR_NODE_STRING) {
        wr_node_error(item, error, "%s is not a string", show_value(row, item, shown, sizeof shown));
        return NULL;
    }
    struct wr_buffer text = {0};
    const char *kept = NULL;
    if (count_item(fill, item, error) && expand(fill, item, &text, error)) {
        kept = wr_region_text(fill->keep, text.data, text.length);
        if (!kept)
            wr_error_no_memory(error, NULL);
    }
    wr_buffer_fini(&text);
    return kept;
}

static bool set_from_array(const struct wr_options_fill *fill, const weir_option *row,
                           const struct wr_node *node, struct wr_error *error)
{
    size_t count = 0;
    const char **items = wr_region_alloc(fill->keep, (wr_node_count(node) + 1) * sizeof *items);
    if (!items) {
        return wr_error_no_memory(error, NULL);
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
    weir_label *items = wr_region_alloc(fill->keep, (wr_node_count(node) + 1) * sizeof *items);
    if (!items) {
        return wr_error_no_memory(error, NULL);
    }
    for (const struct wr_node *item = node->first; item; item = item->next) {
        items[count].key = wr_region_text(fill->keep, item->key, strlen(item->key));
        if (!items[count].key)
            return wr_error_no_memory(error, NULL);
        items[count].value = keep_item(fill, row, item, error);
        if (!items[count++].value)
            return false;
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

/* A table may have the rows of one before it, as with what handlers."*" sets. */
static bool is_listed(const struct members *m, size_t before, const char *name)
{
    for (size_t i = 0; i < before; i++)
        if (wr_options_find(&m->fills[i].table, name))
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
            if (is_listed(m, i, row->name))
                continue;
            wr_suggest_try(suggest, row->name);
            wr_buffer_put_format(allowed, "%s%s", allowed->length ? ", " : "", row->name);
        }
    }
}

/* An unknown key: an error, or ignored. */
static bool refuse_member(const struct members *m, const struct wr_node *member, const char *name)
{
    const struct wr_options_fill *fill = &m->fills[0];
    struct wr_suggest suggest;
    struct wr_buffer allowed = {0};
    char nearest[SHOWN_ROOM], hint[SHOWN_ROOM + 2];
    if (fill->ignores_unknown && !fill->unknown)
        return true;
    wr_suggest_init(&suggest, name);
    list_allowed(m, &suggest, &allowed);
    const char *list = wr_buffer_text(&allowed);
    const char *home = wr_sections_home(name);
    if (home)
        snprintf(hint, sizeof hint, "; %s", home);
    else
        snprintf(hint, sizeof hint, "%s", wr_suggest_text(&suggest, nearest, sizeof nearest));
    bool ignored = false;
    if (fill->ignores_unknown)
        ignored = wr_unknown_keys_add(fill->unknown, member, "unknown option", hint, m->error);
    else
        wr_node_key_error(member, m->error, "unknown option%s%s allowed: %s", hint, *hint && !home ? "" : ";",
                          list ? list : "");
    wr_buffer_fini(&allowed);
    return ignored;
}

/* "tls.verify": true beside "tls": {...} would set one option twice, unnoticed. */
static bool refuse_dots(const struct members *m, const struct wr_node *member)
{
    char shown[SHOWN_ROOM];
    return wr_node_key_error(member, m->error, "dots are not allowed in a key; write {%s: {...}}",
                             wr_utf8_quote(shown, sizeof shown, member->key, strcspn(member->key, ".")));
}

static bool set_members(const struct members *m, const struct wr_node *object, const char *prefix);

static bool set_member(const struct members *m, const struct wr_node *member, const char *name)
{
    if (is_other(m, name))
        return true;
    for (size_t i = 0; i < m->count; i++) {
        const struct wr_options_fill *fill = &m->fills[i];
        const weir_option *row = wr_options_find(&fill->table, name);
        if (!row)
            continue;
        if (fill->seen)
            fill->seen[number_of(&fill->table, row)] = 1;
        return wr_options_set_node(fill, row, member, m->error);
    }
    if (!has_row_below(m, name))
        return refuse_member(m, member, name);
    if (member->type != WR_NODE_OBJECT) {
        char shown[SHOWN_ROOM];
        return wr_node_error(member, m->error, "%s is not an object",
                             wr_node_show(member, shown, sizeof shown));
    }
    return set_members(m, member, name);
}

static bool set_keyed(const struct members *m, const struct wr_node *member, const char *prefix)
{
    char name[SHOWN_ROOM];
    if (strchr(member->key, '.'))
        return refuse_dots(m, member);
    int length = snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", member->key);
    if (length < 0 || (size_t)length >= sizeof name)
        return refuse_member(m, member, "");
    return set_member(m, member, name);
}

static bool set_members(const struct members *m, const struct wr_node *object, const char *prefix)
{
    bool valid = true;
    for (const struct wr_node *member = object->first; member; member = member->next) {
        bool set = set_keyed(m, member, prefix);
        if (!wr_problems_go_on(m->fills[0].problems, set, m->error))
            return false;
        valid &= set;
    }
    return valid;
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
    bool valid = true;
    for (size_t i = 0; (row = wr_options_row(&fill->table, i)); i++) {
        if (!(row->flags & WEIR_OPTION_REQUIRED) || fill->seen[i])
            continue;
        if (object)
            wr_node_error(object, error, "the option \"%s\" is missing: %s", row->name, row->help);
        else
            wr_error_set(error, WEIR_ERR_CONFIG, "the option \"%s\" is missing: %s", row->name, row->help);
        /* without an object the caller sets the place */
        if (!wr_problems_go_on(object ? fill->problems : NULL, false, error))
            return false;
        valid = false;
    }
    return valid;
}

/* ---- Showing --------------------------------------------------------------------------------- */

void wr_options_put_all(struct wr_buffer *out, const struct wr_options_table *table, const void *target)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(table, i)); i++) {
        wr_buffer_put_format(out, "%s=", row->name);
        wr_option_show(row, target, true, out);
        wr_buffer_put_char(out, '\n');
    }
}

/* ---- Checking a table ------------------------------------------------------------------------ */

static bool check_row(const struct wr_options_table *table, const weir_option *row, struct wr_error *error)
{
    const char *fault = wr_option_find_fault(row, table->struct_bytes);
    if (fault)
        wr_error_set(error, WEIR_ERR_PLUGIN, "option \"%s\": %s", row->name, fault);
    return !fault;
}

/* Whether the name is that of a member of the other one. */
static bool is_below(const char *name, const char *other)
{
    size_t length = strlen(other);
    return strncmp(name, other, length) == 0 && name[length] == '.';
}

/* Of "a" and "a.b" no configuration could set both: "a" would be a value, and an object. */
static bool check_name(const struct wr_options_table *table, const weir_option *row, struct wr_error *error)
{
    const weir_option *other;
    for (size_t i = 0; (other = wr_options_row(table, i)) != row; i++) {
        if (!is_below(row->name, other->name) && !is_below(other->name, row->name))
            continue;
        return wr_error_refuse(error, WEIR_ERR_PLUGIN,
                               "option \"%s\": with the option \"%s\" one of them cannot be set", row->name,
                               other->name);
    }
    return true;
}

/* Two names may have the same field, but fields that overlap would corrupt each other. */
static bool check_fields(const struct wr_options_table *table, const weir_option *row, struct wr_error *error)
{
    const weir_option *other;
    for (size_t i = 0; (other = wr_options_row(table, i)) != row; i++) {
        bool same = row->offset == other->offset && row->type == other->type;
        if (same || row->offset >= other->offset + wr_option_bytes(other) ||
            other->offset >= row->offset + wr_option_bytes(row))
            continue;
        return wr_error_refuse(error, WEIR_ERR_PLUGIN,
                               "option \"%s\": its field lies across that of option \"%s\"", row->name,
                               other->name);
    }
    return true;
}

static bool check_defaults(const struct wr_options_table *table, struct wr_error *error)
{
    struct wr_region keep = {0};
    void *target = wr_region_alloc(&keep, table->struct_bytes + 1);
    struct wr_options_fill fill = {
        .table = *table, .target = target, .environment = &wr_environment_empty, .keep = &keep};
    bool lawful = target && wr_options_set_defaults(&fill, error);
    if (!target)
        wr_error_no_memory(error, NULL);
    wr_region_fini(&keep);
    return lawful;
}

bool wr_options_check_table(const struct wr_options_table *table, struct wr_error *error)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(table, i)); i++) {
        if (i == MOST_ROWS)
            return wr_error_refuse(error, WEIR_ERR_PLUGIN,
                                   "the option table has no end: no row without a name");
        if (!check_row(table, row, error))
            return false;
        if (wr_options_find(table, row->name) != row)
            return wr_error_refuse(error, WEIR_ERR_PLUGIN, "option \"%s\": its name is in the table twice",
                                   row->name);
        if (!check_name(table, row, error) || !check_fields(table, row, error))
            return false;
    }
    return check_defaults(table, error);
}
