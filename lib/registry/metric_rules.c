#include "registry/metric_rules.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "registry/name.h"

/* ---- Patterns -------------------------------------------------------------------------------- */

bool wr_metric_rules_is_pattern(const struct wr_metric_rule *rule)
{
    return strchr(rule->pattern, '*');
}

static size_t specificity(const char *pattern)
{
    size_t characters = 0;
    for (; *pattern; pattern++)
        characters += *pattern != '*';
    return characters;
}

/* By group, then the most specific first, then as in the configuration. */
static int compare_patterns(const void *a, const void *b)
{
    const struct wr_metric_rule *const *first = a, *const *second = b;
    int groups = strcmp((*first)->group, (*second)->group);
    size_t first_rank = specificity((*first)->pattern), second_rank = specificity((*second)->pattern);
    if (groups)
        return groups;
    if (first_rank != second_rank)
        return first_rank > second_rank ? -1 : 1;
    return *first < *second ? -1 : *first > *second;
}

/* ---- The index ------------------------------------------------------------------------------- */

/* Neither a group nor a name has control characters. */
enum { SEPARATOR = '\n', KEY_ROOM = 2 * WR_NAME_LONGEST + 2 };

/* Writes "GROUP\nNAME". Returns its length; 0: one of the two is longer than is valid. */
static size_t write_key(char *key, const char *group, size_t group_length, const char *name)
{
    size_t length = strnlen(name, WR_NAME_LONGEST + 1);
    if (group_length > WR_NAME_LONGEST || length > WR_NAME_LONGEST)
        return 0;
    memcpy(key, group, group_length);
    key[group_length] = SEPARATOR;
    memcpy(key + group_length + 1, name, length);
    return group_length + 1 + length;
}

static bool index_name(struct wr_metric_rules *rules, size_t number)
{
    const struct wr_metric_rule *rule = &rules->items[number];
    char key[KEY_ROOM];
    size_t length = write_key(key, rule->group, strlen(rule->group), rule->pattern);
    const char *kept = wr_region_text(&rules->keep, key, length);
    return kept && wr_name_index_add(&rules->names, kept, number);
}

bool wr_metric_rules_index(struct wr_metric_rules *rules)
{
    rules->patterns = wr_region_alloc(&rules->keep, (rules->count + 1) * sizeof(struct wr_metric_rule *));
    if (!rules->patterns)
        return false;
    for (size_t i = 0; i < rules->count; i++) {
        if (wr_metric_rules_is_pattern(&rules->items[i]))
            rules->patterns[rules->pattern_count++] = &rules->items[i];
        else if (!index_name(rules, i))
            return false;
    }
    qsort(rules->patterns, rules->pattern_count, sizeof(struct wr_metric_rule *), compare_patterns);
    for (size_t i = 0; i < rules->pattern_count; i++)
        if (!wr_name_index_add(&rules->pattern_groups, rules->patterns[i]->group, i))
            return false;
    return true;
}

void wr_metric_rules_fini(struct wr_metric_rules *rules)
{
    wr_name_index_fini(&rules->names);
    wr_name_index_fini(&rules->pattern_groups);
    wr_region_fini(&rules->keep);
    rules->patterns = NULL;
    rules->pattern_count = 0;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static struct wr_metric_rule *find_pattern(const struct wr_metric_rules *rules, const char *group,
                                           size_t length, const char *name)
{
    size_t first = wr_name_index_find(&rules->pattern_groups, group, length);
    for (size_t i = first; first != SIZE_MAX && i < rules->pattern_count; i++) {
        struct wr_metric_rule *rule = rules->patterns[i];
        if (strcmp(rule->group, rules->patterns[first]->group) != 0)
            break;
        if (wr_name_matches(rule->pattern, name))
            return rule;
    }
    return NULL;
}

/* The entries of one group. length: of its name. */
static struct wr_metric_rule *find_in(const struct wr_metric_rules *rules, const char *group, size_t length,
                                      const char *name)
{
    char key[KEY_ROOM];
    size_t key_length = write_key(key, group, length, name);
    size_t number = key_length ? wr_name_index_find(&rules->names, key, key_length) : SIZE_MAX;
    return number == SIZE_MAX ? find_pattern(rules, group, length, name) : &rules->items[number];
}

struct wr_metric_rule *wr_metric_rules_find(const struct wr_metric_rules *rules, const char *group,
                                            const char *name)
{
    size_t length = strlen(group);
    if (!rules->count)
        return NULL;
    while (length) {
        struct wr_metric_rule *rule = find_in(rules, group, length, name);
        if (rule)
            return rule;
        while (length && group[length - 1] != '.')
            length--;
        length -= length > 0; /* the dot */
    }
    return wr_name_is_own_group(group) ? NULL : find_in(rules, "*", 1, name);
}

const struct wr_metric_rule *wr_metric_rules_unmatched(const struct wr_metric_rules *rules, size_t from)
{
    for (size_t i = from; i < rules->count; i++)
        if (!atomic_load_explicit(&rules->items[i].matched, memory_order_relaxed))
            return &rules->items[i];
    return NULL;
}
