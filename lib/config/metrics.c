#include "config/metrics.h"

#include <math.h>
#include <string.h>

#include "config/bucket_series.h"
#include "registry/name.h"
#include "text/error.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200 };

/* The options of an entry. */
struct entry {
    int64_t instrument;
    const char *unit, *help;
    int64_t max_series, merge;
};

static const weir_option rows[] = {
    WEIR_OPTION_ROW("instrument", ENUM, 0, "value", "value|counter|gauge|histogram", "what the values mean",
                    struct entry, instrument),
    WEIR_OPTION_ROW("unit", STRING, 0, NULL, NULL, "the unit, like ms or bytes", struct entry, unit),
    WEIR_OPTION_ROW("help", STRING, 0, NULL, NULL, "a description for people", struct entry, help),
    WEIR_OPTION_ROW("max_series", INT, 0, "0", "0..30000000",
                    "the most label sets of the name; 0: settings.max_series_per_name", struct entry,
                    max_series),
    WEIR_OPTION_ROW(
        "merge", ENUM, 0, "last", "last|sum|max",
        "what a gauge is in a relay: the level that came last, or the sum or the largest of those of "
        "its senders",
        struct entry, merge),
    {0},
};

struct wr_options_table wr_metrics_table(void)
{
    return WR_OPTIONS_TABLE(rows, struct entry);
}

/* ---- Buckets --------------------------------------------------------------------------------- */

/* Reads an array of bounds. Returns their number; 0: failed. */
static size_t read_bounds(struct wr_config *config, const struct wr_node *node,
                          double bounds[WR_FAMILY_BUCKETS_MAX], struct wr_error *error)
{
    static const weir_option row = {"buckets", WEIR_OPTION_DOUBLE, 0, NULL, NULL, "", 0};
    char shown[SHOWN_ROOM];
    size_t count = wr_node_count(node), i = 0;
    if (!count || count > WR_FAMILY_BUCKETS_MAX) {
        wr_node_error(node, error, "%zu bounds; 1 to %d are allowed", count, WR_FAMILY_BUCKETS_MAX);
        return 0;
    }
    for (const struct wr_node *item = node->first; item; item = item->next, i++) {
        const struct wr_options_fill fill = wr_config_fill(config, (struct wr_options_table){0}, &bounds[i]);
        if (!wr_options_set_node(&fill, &row, item, error))
            return 0;
        if (isfinite(bounds[i]) && (i == 0 || bounds[i] > bounds[i - 1]))
            continue;
        wr_node_error(item, error, "%s does not follow; upper bounds must be finite and rising",
                      wr_node_show(item, shown, sizeof shown));
        return 0;
    }
    return count;
}

/* The same of a text that describes them. */
static size_t read_described(struct wr_config *config, const struct wr_node *node,
                             double bounds[WR_FAMILY_BUCKETS_MAX], struct wr_error *error)
{
    const char *text, *problem;
    if (!wr_config_read_string(config, node, &text, error))
        return 0;
    size_t count = wr_bucket_series_read(text, bounds, &problem);
    if (!count)
        wr_node_error(node, error, "\"%.*s\": %s", SHOWN_ROOM, text, problem);
    return count;
}

static bool read_buckets(struct wr_config *config, const struct wr_node *node, struct wr_metric_rule *rule,
                         struct wr_error *error)
{
    double bounds[WR_FAMILY_BUCKETS_MAX];
    char shown[SHOWN_ROOM];
    size_t count = 0;
    if (node->type == WR_NODE_STRING)
        count = read_described(config, node, bounds, error);
    else if (node->type == WR_NODE_ARRAY)
        count = read_bounds(config, node, bounds, error);
    else
        wr_node_error(node, error, "must be an array or a text, got %s",
                      wr_node_show(node, shown, sizeof shown));
    if (!count)
        return false;
    double *kept = wr_region_alloc(&config->keep, count * sizeof *kept);
    if (!kept)
        return wr_error_no_memory(error, NULL);
    memcpy(kept, bounds, count * sizeof *kept);
    rule->has_buckets = true;
    rule->meaning.buckets = kept;
    rule->meaning.bucket_count = count;
    return true;
}

/* ---- Merging --------------------------------------------------------------------------------- */

static bool check_merge(const struct wr_node *node, const struct wr_metric_rule *rule, struct wr_error *error)
{
    const struct wr_node *merge = wr_node_member(node, "merge");
    if (!merge || !rule->has_instrument || rule->meaning.instrument == WEIR_GAUGE)
        return true;
    return wr_node_key_error(merge, error, "only a gauge has a level to merge, and \"instrument\" is \"%s\"",
                             wr_family_instrument_name(rule->meaning.instrument));
}

/* ---- Entries --------------------------------------------------------------------------------- */

static bool check_text(const struct wr_node *object, const char *key, const char *text, size_t longest,
                       struct wr_error *error)
{
    struct wr_error problem;
    if (!text || wr_name_check_text(text, longest, key, &problem))
        return true;
    return wr_node_error(wr_node_member(object, key), error, "%s", problem.text);
}

static bool read_object(struct wr_config *config, const struct wr_node *node, struct wr_metric_rule *rule,
                        struct wr_error *error)
{
    static const char *const others[] = {"buckets", NULL};
    struct entry entry = {0};
    const struct wr_options_fill fill = wr_config_fill(config, wr_metrics_table(), &entry);
    const struct wr_node *buckets = wr_node_member(node, "buckets");
    if (!wr_options_set_defaults(&fill, error) || !wr_options_set_members(&fill, 1, others, node, error) ||
        !check_text(node, "unit", entry.unit, WR_NAME_UNIT_LONGEST, error) ||
        !check_text(node, "help", entry.help, WR_NAME_HELP_LONGEST, error))
        return false;
    rule->has_instrument = wr_node_member(node, "instrument");
    rule->meaning.instrument = (enum weir_instrument)entry.instrument;
    rule->meaning.unit = entry.unit;
    rule->meaning.help = entry.help;
    rule->meaning.merge = (enum wr_merge)entry.merge;
    rule->max_series = (uint32_t)entry.max_series;
    if (!check_merge(node, rule, error))
        return false;
    if (!buckets)
        return true;
    if (rule->has_instrument && rule->meaning.instrument != WEIR_HISTOGRAM)
        return wr_node_key_error(buckets, error, "only a histogram has buckets");
    return read_buckets(config, buckets, rule, error);
}

static bool read_instrument(struct wr_config *config, const struct wr_node *node, struct wr_metric_rule *rule,
                            struct wr_error *error)
{
    int64_t instrument = 0;
    weir_option row = rows[0];
    row.offset = 0;
    const struct wr_options_fill fill = wr_config_fill(config, (struct wr_options_table){0}, &instrument);
    if (!wr_options_set_node(&fill, &row, node, error))
        return false;
    rule->has_instrument = true;
    rule->meaning.instrument = (enum weir_instrument)instrument;
    return true;
}

static bool check_pattern(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    struct wr_error problem;
    if (!wr_name_check(node->key, "name", &problem))
        return wr_node_key_error(node, error, "%s", problem.text);
    if (!strchr(node->key, '*') || config->patterns_read++ < WR_CONFIG_PATTERNS_MAX)
        return true;
    return wr_node_key_error(node, error, "too many names with '*'; at most 1,000 are allowed");
}

static bool read_entry(struct wr_config *config, const struct wr_node *node, struct wr_metric_rule *rule,
                       struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    const char *group = node->parent->key;
    bool defined = wr_config_define(config, node, "metrics", group, error);
    if (!wr_problems_go_on(config->problems, defined, error) || !check_pattern(config, node, error))
        return false;
    rule->group = group;
    rule->pattern = node->key;
    rule->file = node->document->name;
    if (node->type == WR_NODE_STRING)
        return read_instrument(config, node, rule, error);
    if (node->type == WR_NODE_OBJECT)
        return read_object(config, node, rule, error);
    return wr_node_error(
        node, error,
        "must be an instrument (value, counter, gauge, histogram) or an object with \"instrument\", "
        "\"unit\", \"help\", \"buckets\", \"max_series\", \"merge\", got %s",
        wr_node_show(node, shown, sizeof shown));
}

/* ---- The section ----------------------------------------------------------------------------- */

static bool check_group(const struct wr_node *node, struct wr_error *error)
{
    struct wr_error problem;
    if (strcmp(node->key, "*") != 0 && !wr_name_check_group(node->key, &problem))
        return wr_node_key_error(node, error, "%s", problem.text);
    return wr_node_check_type(node, WR_NODE_OBJECT, error);
}

static bool read_group(struct wr_config *config, const struct wr_node *group, struct wr_error *error)
{
    if (!check_group(group, error))
        return false;
    for (const struct wr_node *entry = group->first; entry; entry = entry->next) {
        struct wr_metric_rule *rule = wr_config_add_metric(config);
        if (!rule)
            return wr_error_no_memory(error, NULL);
        if (!wr_problems_go_on(config->problems, read_entry(config, entry, rule, error), error))
            return false;
    }
    return true;
}

bool wr_metrics_read(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    if (!wr_node_check_type(node, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *group = node->first; group; group = group->next)
        if (!wr_problems_go_on(config->problems, read_group(config, group, error), error))
            return false;
    return true;
}
