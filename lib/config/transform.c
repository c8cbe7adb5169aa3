#include "config/transform.h"

#include <stdlib.h>
#include <string.h>

#include "registry/labels.h"
#include "registry/name.h"
#include "text/buffer.h"
#include "text/error.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200, LIST_MAX = 1000 };

#define ROW(name, type, default_text, allowed, help, field)                                                    \
    WEIR_OPTION_ROW(name, type, 0, default_text, allowed, help, struct wr_transform, field)

static const weir_option rows[] = {
    ROW("only", LIST, NULL, NULL, "the names that pass; '*' matches any characters", only),
    ROW("except", LIST, NULL, NULL, "names that do not pass, of those that \"only\" lets pass", except),
    ROW("labels", MAP, NULL, NULL, "labels that are added, or replace those with the same keys", labels),
    ROW("keep_labels", LIST, NULL, NULL, "the keys of the only labels that are kept", keep_labels),
    ROW("drop_labels", LIST, NULL, NULL, "the keys of labels that are removed", drop_labels),
    ROW("sample", DOUBLE, "1", "0..1", "the part of the events that passes, above 0", sample),
    {0},
};

struct wr_options_table wr_transform_table(void)
{
    return WR_OPTIONS_TABLE(rows, struct wr_transform);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static const struct wr_node *item_of(const struct wr_node *list, size_t number)
{
    const struct wr_node *item = list->first;
    while (number--)
        item = item->next;
    return item;
}

static bool check_list(const struct wr_node *object, const char *key, const weir_list *list, const char *what,
                       struct wr_error *error)
{
    const struct wr_node *node = wr_node_member(object, key);
    struct wr_error problem;
    if (list->count > LIST_MAX)
        return wr_node_error(node, error, "%zu items; at most %d are allowed", list->count, LIST_MAX);
    for (size_t i = 0; i < list->count; i++) {
        if (wr_name_check(list->items[i], what, &problem))
            continue;
        return wr_node_error(item_of(node, i), error, "%s", problem.text);
    }
    return true;
}

static bool has_item(const weir_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

static bool check_only(const struct wr_node *object, const weir_list *only, struct wr_error *error)
{
    const struct wr_node *node = wr_node_member(object, "only");
    if (!node || only->count)
        return true;
    return wr_node_error(
        node, error,
        "must not be empty, as no value would pass; to send none, leave the handler out of the route");
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static bool keeps_label(const struct wr_transform *transform, const char *key)
{
    return transform->keeps ? has_item(&transform->keep_labels, key) : !has_item(&transform->drop_labels, key);
}

/* A label that is added and removed again is a mistake. */
static bool check_kept(const struct wr_node *object, const struct wr_transform *transform,
                       struct wr_error *error)
{
    const struct wr_node *labels = wr_node_member(object, "labels");
    for (size_t i = 0; i < transform->labels.count; i++) {
        const char *key = transform->labels.items[i].key;
        if (keeps_label(transform, key))
            continue;
        return wr_node_key_error(wr_node_member(labels, key), error,
                                 transform->keeps ? "removed again, as \"keep_labels\" does not name it"
                                                  : "removed again, as \"drop_labels\" names it");
    }
    return true;
}

static bool check_labels(const struct wr_node *object, const struct wr_transform *transform,
                         struct wr_error *error)
{
    struct wr_error problem = {0};
    const struct wr_node *drop = wr_node_member(object, "drop_labels");
    if (drop && transform->keeps)
        return wr_node_key_error(drop, error, "only one of \"keep_labels\" and \"drop_labels\" is allowed");
    if (!check_list(object, "keep_labels", &transform->keep_labels, "label key", error) ||
        !check_list(object, "drop_labels", &transform->drop_labels, "label key", error))
        return false;
    bool valid = wr_labels_check(&transform->labels, &problem);
    if (valid && transform->labels.count > WR_TRANSFORM_LABELS_MAX)
        wr_error_set(&problem, WEIR_ERR_NAME, "%zu labels; at most %d are allowed", transform->labels.count,
                     WR_TRANSFORM_LABELS_MAX);
    if (problem.code)
        return wr_node_error(wr_node_member(object, "labels"), error, "%s", problem.text);
    return check_kept(object, transform, error);
}

int wr_transform_relabel(const struct wr_transform *transform, const weir_label *labels, size_t count,
                         weir_label *relabeled)
{
    int used = 0;
    for (size_t i = 0; i < count; i++) {
        bool replaced = false;
        for (size_t j = 0; j < transform->labels.count; j++)
            replaced |= strcmp(transform->labels.items[j].key, labels[i].key) == 0;
        if (!replaced && keeps_label(transform, labels[i].key))
            relabeled[used++] = labels[i];
    }
    if ((size_t)used + transform->labels.count > WR_TRANSFORM_LABELS_MAX)
        return -1;
    for (size_t j = 0; j < transform->labels.count; j++)
        relabeled[used++] = transform->labels.items[j];
    return used;
}

/* ---- Renaming -------------------------------------------------------------------------------- */

static size_t count_stars(const char *text)
{
    size_t stars = 0;
    for (; *text; text++)
        stars += *text == '*';
    return stars;
}

static bool check_pair(const struct wr_node *node, const struct wr_transform_name *pair, struct wr_error *error)
{
    struct wr_error problem;
    char shown[SHOWN_ROOM];
    if (!wr_name_check(pair->from, "name", &problem))
        return wr_node_key_error(node, error, "%s", problem.text);
    if (!wr_name_check(pair->to, "name", &problem))
        return wr_node_error(node, error, "%s", problem.text);
    size_t from = count_stars(pair->from), to = count_stars(pair->to);
    if (from > 1)
        return wr_node_key_error(node, error, "at most one '*' is allowed here");
    if (to <= from)
        return true;
    return wr_node_error(node, error, "%s has more '*' than the name that it replaces; %s",
                         wr_node_show(node, shown, sizeof shown),
                         from ? "one is allowed" : "none is allowed here");
}

/* Names before patterns, then the one with the most characters. Equal ones match the same names only if they
 * are patterns: then the order of the bytes decides, so that it does not depend on the file's. */
static int compare_pairs(const void *a, const void *b)
{
    const struct wr_transform_name *first = a, *second = b;
    size_t stars_of_first = count_stars(first->from), stars_of_second = count_stars(second->from);
    size_t first_length = strlen(first->from), second_length = strlen(second->from);
    if (stars_of_first != stars_of_second)
        return stars_of_first < stars_of_second ? -1 : 1;
    if (first_length != second_length)
        return first_length > second_length ? -1 : 1;
    return strcmp(first->from, second->from);
}

static bool read_pair(struct wr_config *config, const struct wr_node *node, struct wr_transform_name *pair,
                      struct wr_error *error)
{
    pair->from = node->key;
    return wr_config_read_string(config, node, &pair->to, error) && check_pair(node, pair, error);
}

static bool read_rename(struct wr_config *config, const struct wr_node *object, struct wr_transform *transform,
                        struct wr_error *error)
{
    const struct wr_node *rename = wr_node_member(object, "rename");
    if (!rename)
        return true;
    if (!wr_node_check_type(rename, WR_NODE_OBJECT, error))
        return false;
    size_t count = wr_node_count(rename);
    if (count > LIST_MAX)
        return wr_node_error(rename, error, "%zu names; at most %d are allowed", count, LIST_MAX);
    transform->rename = wr_region_alloc(&config->keep, (count + 1) * sizeof *transform->rename);
    if (!transform->rename)
        return wr_error_no_memory(error, NULL);
    for (const struct wr_node *node = rename->first; node; node = node->next)
        if (!wr_problems_go_on(config->problems,
                               read_pair(config, node, &transform->rename[transform->rename_count++], error),
                               error))
            return false;
    qsort(transform->rename, count, sizeof *transform->rename, compare_pairs);
    return true;
}

static bool write_renamed(char *renamed, const char *to, const char *part, size_t length)
{
    const char *star = strchr(to, '*');
    size_t total = star ? strlen(to) - 1 + length : strlen(to);
    size_t before = star ? (size_t)(star - to) : total;
    if (!total || total > WR_NAME_LONGEST)
        return false;
    memcpy(renamed, to, before);
    if (star) {
        memcpy(renamed + before, part, length);
        memcpy(renamed + before + length, star + 1, total - before - length);
    }
    renamed[total] = '\0';
    return true;
}

bool wr_transform_rename(const struct wr_transform *transform, const char *name, char *renamed)
{
    for (size_t i = 0; i < transform->rename_count; i++) {
        const struct wr_transform_name *pair = &transform->rename[i];
        if (!wr_name_matches(pair->from, name))
            continue;
        const char *star = strchr(pair->from, '*'); /* the only one: see check_pair */
        size_t before = star ? (size_t)(star - pair->from) : 0;
        size_t length = star ? strlen(name) - (strlen(pair->from) - 1) : 0;
        return write_renamed(renamed, pair->to, name + before, length);
    }
    return write_renamed(renamed, "*", name, strlen(name));
}

bool wr_transform_passes(const struct wr_transform *transform, const char *name)
{
    bool passes = !transform->only.count;
    for (size_t i = 0; !passes && i < transform->only.count; i++)
        passes = wr_name_matches(transform->only.items[i], name);
    for (size_t i = 0; passes && i < transform->except.count; i++)
        passes = !wr_name_matches(transform->except.items[i], name);
    return passes;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool check_sample(const struct wr_node *object, double sample, struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    const struct wr_node *node = wr_node_member(object, "sample");
    if (sample > 0)
        return true;
    return wr_node_error(node, error,
                         "must be above 0 and at most 1, got %s; to send none, leave the handler out",
                         wr_node_show(node, shown, sizeof shown));
}

static bool changes_something(const struct wr_transform *transform)
{
    return transform->only.count || transform->except.count || transform->rename_count ||
           transform->labels.count || transform->keeps || transform->drop_labels.count || transform->sample < 1;
}

static bool read_members(struct wr_config *config, const struct wr_node *node, struct wr_transform *transform,
                         struct wr_error *error)
{
    static const char *const others[] = {"to", "rename", NULL};
    const struct wr_options_fill fill = wr_config_fill(config, wr_transform_table(), transform);
    transform->node = node;
    bool set = wr_options_set_defaults(&fill, error) && wr_options_set_members(&fill, 1, others, node, error);
    if (!wr_problems_go_on(config->problems, set, error) || !read_rename(config, node, transform, error) ||
        !set)
        return false;
    transform->keeps = wr_node_member(node, "keep_labels");
    return check_only(node, &transform->only, error) &&
           check_list(node, "only", &transform->only, "name", error) &&
           check_list(node, "except", &transform->except, "name", error) &&
           check_labels(node, transform, error) && check_sample(node, transform->sample, error);
}

bool wr_transform_read(struct wr_config *config, const struct wr_node *node, struct wr_transform **transform,
                       struct wr_error *error)
{
    struct wr_transform *read = wr_region_alloc(&config->keep, sizeof *read);
    *transform = NULL;
    if (!read)
        return wr_error_no_memory(error, NULL);
    if (!read_members(config, node, read, error))
        return false;
    if (!changes_something(read))
        return true;
    read->next = config->transforms;
    config->transforms = read;
    *transform = read;
    return true;
}

bool wr_transform_expand_again(struct wr_config *config, struct wr_error *error)
{
    struct wr_config *origin = wr_config_origin(config);
    const struct wr_options_table table = wr_transform_table();
    const weir_option *row = wr_options_find(&table, "labels");
    for (struct wr_transform *transform = origin->transforms; transform; transform = transform->next) {
        const struct wr_options_fill fill = wr_config_fill(origin, table, transform);
        const struct wr_node *labels = wr_node_member(transform->node, row->name);
        if (labels && !wr_options_set_node(&fill, row, labels, error))
            return false;
    }
    return true;
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void put_quoted(struct wr_buffer *out, const char *before, const char *text)
{
    char shown[SHOWN_ROOM];
    wr_buffer_put_format(out, "%s%s", before, wr_utf8_quote(shown, sizeof shown, text, strlen(text)));
}

static void put_list(struct wr_buffer *out, const char *key, const weir_list *list)
{
    wr_buffer_put_format(out, "%s%s", out->length ? ", " : "", key);
    for (size_t i = 0; i < list->count; i++)
        put_quoted(out, " ", list->items[i]);
    if (!list->count)
        wr_buffer_put_text(out, " none");
}

static void show_filters(const struct wr_transform *transform, struct wr_buffer *out)
{
    if (transform->only.count)
        put_list(out, "only", &transform->only);
    if (transform->except.count)
        put_list(out, "except", &transform->except);
    for (size_t i = 0; i < transform->rename_count; i++) {
        put_quoted(out, i ? " " : out->length ? ", rename " : "rename ", transform->rename[i].from);
        put_quoted(out, ": ", transform->rename[i].to);
    }
}

void wr_transform_show_changes(const struct wr_transform *transform, struct wr_buffer *out)
{
    for (size_t i = 0; i < transform->labels.count; i++) {
        put_quoted(out, i ? " " : out->length ? ", labels " : "labels ", transform->labels.items[i].key);
        put_quoted(out, ": ", transform->labels.items[i].value);
    }
    if (transform->keeps)
        put_list(out, "keep_labels", &transform->keep_labels);
    if (transform->drop_labels.count)
        put_list(out, "drop_labels", &transform->drop_labels);
    if (transform->sample < 1)
        wr_buffer_put_format(out, "%ssample %g", out->length ? ", " : "", transform->sample);
}

void wr_transform_show(const struct wr_transform *transform, struct wr_buffer *out)
{
    show_filters(transform, out);
    wr_transform_show_changes(transform, out);
}
