#include "config/definitions.h"

#include <stdlib.h>
#include <string.h>

#include "text/array.h"
#include "text/buffer.h"
#include "text/error.h"
#include "text/name_index.h"

/* The definitions so far. */
struct definitions {
    struct wr_region keep; /* the keys: SECTION, GROUP and NAME, separated by control characters */
    struct wr_name_index index;
    const struct wr_node **nodes;
    uint32_t count, room;
    struct wr_problems *problems;
    struct wr_error *error;
};

static bool refuse_second(const struct definitions *all, const struct wr_node *node,
                          const struct wr_node *first)
{
    char place[WR_NODE_PLACE_ROOM];
    return wr_node_key_error(node, all->error, "defined twice; also at %s",
                             wr_node_show_place(first, place, sizeof place));
}

static bool add_definition(struct definitions *all, const struct wr_node *node, const char *section,
                           const char *group)
{
    struct wr_buffer key = {0};
    wr_buffer_put_format(&key, "%s\n%s\n%s", section, group, node->key);
    size_t known = key.failed ? SIZE_MAX : wr_name_index_find(&all->index, key.data, key.length);
    const char *kept = key.failed ? NULL : wr_region_text(&all->keep, key.data, key.length);
    wr_buffer_fini(&key);
    if (known != SIZE_MAX)
        return refuse_second(all, node, all->nodes[known]);
    if (!WR_ARRAY_HAS_ROOM(&all->nodes, &all->room, all->count + 1) || !kept ||
        !wr_name_index_add(&all->index, kept, all->count))
        return wr_error_no_memory(all->error, NULL);
    all->nodes[all->count++] = node;
    return true;
}

static bool add_members(struct definitions *all, const struct wr_node *object, const char *section,
                        const char *group)
{
    const struct wr_node *member = object && object->type == WR_NODE_OBJECT ? object->first : NULL;
    for (; member; member = member->next)
        if (!wr_problems_go_on(all->problems, add_definition(all, member, section, group), all->error))
            return false;
    return true;
}

static bool add_document(struct definitions *all, const struct wr_node *root)
{
    const struct wr_node *metrics = wr_node_member(root, "metrics");
    const struct wr_node *group = metrics && metrics->type == WR_NODE_OBJECT ? metrics->first : NULL;
    for (; group; group = group->next)
        if (!add_members(all, group, "metrics", group->key))
            return false;
    return add_members(all, wr_node_member(root, "handlers"), "handlers", "") &&
           add_members(all, wr_node_member(root, "groups"), "groups", "") &&
           add_members(all, wr_node_member(root, "sources"), "sources", "");
}

bool wr_definitions_check(const struct wr_config *config, struct wr_error *error)
{
    struct definitions all = {.problems = config->problems, .error = error};
    bool done = true;
    /* one document alone has no key twice */
    for (size_t i = 0; done && config->document_count > 1 && i < config->document_count; i++)
        done = add_document(&all, config->documents[i]->root);
    wr_name_index_fini(&all.index);
    wr_region_fini(&all.keep);
    free(all.nodes);
    return done;
}
