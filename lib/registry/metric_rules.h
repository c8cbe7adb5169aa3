/* metric_rules: the section "metrics" of a configuration: which names have which meaning. Immutable once
 * indexed, except for the marks of rules that matched. */
#ifndef WR_METRIC_RULES_H
#define WR_METRIC_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "registry/family.h"
#include "text/name_index.h"
#include "text/region.h"

/* One entry. What it does not set is left as the program declared it. */
struct wr_metric_rule {
    const char *group;   /* "*": of all groups, except "weir" */
    const char *pattern; /* a name in which '*' matches any characters */
    bool has_instrument, has_buckets;
    struct wr_meaning meaning; /* unit, help: NULL: not set */
    const char *file;          /* that defines it; NULL: not known */
    uint32_t max_series;       /* label sets of the name; 0: as the setting */
    _Atomic bool matched;      /* a name matched it since it is in use */
};

struct wr_metric_rules {
    struct wr_metric_rule *items;
    size_t count;
    uint32_t max_series_per_name; /* the setting */

    /* made by wr_metric_rules_index */
    struct wr_name_index names;       /* of the entries without '*': "GROUP\nNAME" -> number in items */
    struct wr_metric_rule **patterns; /* the others: those of a group together, the most specific first */
    size_t pattern_count;
    struct wr_name_index pattern_groups; /* group -> number of its first in patterns */
    struct wr_region keep;
};

/* Indexes the items, which stay where they are. Returns false if out of memory; the caller frees the index in
 * either case. */
bool wr_metric_rules_index(struct wr_metric_rules *rules);

/* Frees the index. The items belong to the caller. */
void wr_metric_rules_fini(struct wr_metric_rules *rules);

/* Returns the rule of a name: in the group's own entries, else its nearest ancestor's, else those of "*";
 * within a group the most specific pattern: the name itself, else the one with the most characters besides '*',
 * else the first. NULL: none. The cost grows with the number of groups above, and of patterns in them. */
struct wr_metric_rule *wr_metric_rules_find(const struct wr_metric_rules *rules, const char *group,
                                            const char *name);

/* Whether it has a '*'. */
bool wr_metric_rules_is_pattern(const struct wr_metric_rule *rule);

/* The first rule at or behind items[from] that no name has matched since the rules are in use; NULL: none. */
const struct wr_metric_rule *wr_metric_rules_unmatched(const struct wr_metric_rules *rules, size_t from);

#endif
