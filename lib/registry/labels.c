#include "registry/labels.h"

#include <stdlib.h>
#include <string.h>

#include "os/pages.h"
#include "text/error.h"
#include "registry/name.h"

static int compare(const void *a, const void *b)
{
    return strcmp(((const weir_label *)a)->key, ((const weir_label *)b)->key);
}

bool wr_labels_check(const weir_map *map, struct wr_error *error)
{
    for (size_t i = 0; i < map->count; i++)
        if (!wr_name_check(map->items[i].key, "label key", error) ||
            !wr_name_check_text(map->items[i].value, WR_NAME_VALUE_LONGEST, "label value", error))
            return false;
    return true;
}

size_t wr_labels_bytes(const weir_label *labels, size_t count)
{
    size_t bytes = count * sizeof *labels;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(labels[i].key) + strlen(labels[i].value) + 2;
    return bytes;
}

void wr_labels_copy(weir_label *to, const weir_label *labels, size_t count)
{
    char *text = (char *)(to + count);
    for (size_t i = 0; i < count; i++) {
        to[i].key = text;
        text = stpcpy(text, labels[i].key) + 1;
        to[i].value = text;
        text = stpcpy(text, labels[i].value) + 1;
    }
}

struct wr_label_set *wr_labels_new(const weir_map *map, uint64_t number, struct wr_error *error)
{
    if (!wr_labels_check(map, error))
        return NULL;
    struct wr_label_set *set = wr_pages_get(sizeof *set + wr_labels_bytes(map->items, map->count));
    if (!set) {
        wr_error_no_memory(error, NULL);
        return NULL;
    }
    set->items = (weir_label *)(set + 1);
    set->count = map->count;
    wr_labels_copy(set->items, map->items, map->count);
    qsort(set->items, set->count, sizeof *set->items, compare);
    set->number = number;
    atomic_store_explicit(&set->references, 1, memory_order_relaxed);
    return set;
}

void wr_labels_hold(struct wr_label_set *set)
{
    if (set)
        atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
}

void wr_labels_drop(struct wr_label_set *set)
{
    if (!set || atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) != 1)
        return;
    wr_pages_put(set);
}

bool wr_labels_equal(const struct wr_label_set *a, const struct wr_label_set *b)
{
    if (!a || !b || a->count != b->count)
        return a == b;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i].key, b->items[i].key) != 0 || strcmp(a->items[i].value, b->items[i].value) != 0)
            return false;
    return true;
}
