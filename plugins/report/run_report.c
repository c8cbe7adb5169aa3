#include "run_report.h"

#include <stdlib.h>
#include <string.h>

#include "registry/labels_walk.h"
#include "text/array.h"

void run_report_init(struct run_report *report, const struct report_settings *settings)
{
    *report = (struct run_report){.settings = settings};
}

static void free_node(const struct report_settings *settings, struct report_node *node)
{
    for (size_t i = 0; i < node->row_count; i++) {
        settings->keeper->release(settings->host, node->rows[i]->series);
        metric_row_fini(node->rows[i]);
        free(node->rows[i]);
    }
    machine_fini(&node->machine);
    free(node->rows);
    free(node->name);
    free(node);
}

void run_report_fini(struct run_report *report)
{
    for (size_t i = 0; i < report->node_count; i++)
        free_node(report->settings, report->nodes[i]);
    free(report->nodes);
    free(report->entries);
    *report = (struct run_report){.settings = report->settings};
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static const char *name_node(const struct run_report *report, const weir_batch *batch,
                             const weir_series *series)
{
    const char *key = report->settings->node_label;
    const char *name = key ? wr_labels_find(series->labels, series->label_count, key) : NULL;
    size_t count;
    const weir_label *common = weir_batch_labels(batch, series, &count);
    if (key && !name)
        name = wr_labels_find(common, count, key);
    return name ? name : report->settings->node;
}

static struct report_node *make_node(const struct run_report *report, const char *name)
{
    struct report_node *node = calloc(1, sizeof *node);
    if (!node || !(node->name = strdup(name))) {
        free(node);
        return NULL;
    }
    machine_init(&node->machine, report->settings->reports_most);
    return node;
}

static enum report_result add_node(struct run_report *report, const char *name, struct report_node **found)
{
    if (report->node_count == report->settings->nodes_most)
        return REPORT_NODES_MOST;
    if (!WR_ARRAY_HAS_ROOM(&report->nodes, &report->node_room, (uint32_t)report->node_count + 1))
        return REPORT_NO_MEMORY;
    *found = make_node(report, name);
    if (!*found)
        return REPORT_NO_MEMORY;
    report->nodes[report->node_count++] = *found;
    return REPORT_PUT;
}

static enum report_result find_node(struct run_report *report, const char *name, struct report_node **found)
{
    for (size_t i = 0; i < report->node_count; i++)
        if (strcmp(report->nodes[i]->name, name) == 0) {
            *found = report->nodes[i];
            return REPORT_PUT;
        }
    return add_node(report, name, found);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static struct metric_row *add_row(const struct report_settings *settings, struct report_node *node,
                                  const weir_series *series)
{
    bool has_room = WR_ARRAY_HAS_ROOM(&node->rows, &node->row_room, node->row_count + 1);
    struct metric_row *row = has_room ? malloc(sizeof *row) : NULL;
    if (!row)
        return NULL;
    settings->keeper->keep(settings->host, series);
    metric_row_init(row, series, settings->reports_most);
    node->rows[node->row_count++] = row;
    return row;
}

static bool is_of_machine(const struct report_settings *settings, const weir_series *series)
{
    const weir_map *labels = settings->machine_labels;
    if (strcmp(series->group, settings->machine) != 0)
        return false;
    for (size_t i = 0; labels && i < labels->count; i++) {
        const char *value = wr_labels_find(series->labels, series->label_count, labels->items[i].key);
        if (!value || strcmp(value, labels->items[i].value) != 0)
            return false;
    }
    return true;
}

static enum report_result learn(struct run_report *report, const weir_batch *batch, const weir_series *series)
{
    const struct report_settings *settings = report->settings;
    struct report_node *node;
    if (report->row_count == settings->series_most)
        return REPORT_SERIES_MOST;
    enum report_result result = find_node(report, name_node(report, batch, series), &node);
    if (result != REPORT_PUT)
        return result;
    struct metric_row *row = add_row(settings, node, series);
    if (!row)
        return REPORT_NO_MEMORY;
    report->row_count++;
    bool is_machine = is_of_machine(settings, series);
    report->entries[series->id] =
        (struct report_entry){node, row, series->serial, is_machine ? machine_part_of(series) : MACHINE_NONE};
    return REPORT_PUT;
}

enum report_result run_report_put(struct run_report *report, const weir_batch *batch, const weir_sample *sample)
{
    const weir_series *series = weir_batch_series(batch, sample);
    double value = sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
    if (!WR_ARRAY_HAS_ROOM(&report->entries, &report->entry_room, series->id + 1))
        return REPORT_NO_MEMORY;
    const struct report_entry *entry = &report->entries[series->id];
    bool is_known = entry->row && entry->serial == series->serial;
    enum report_result result = is_known ? REPORT_PUT : learn(report, batch, series);
    if (result != REPORT_PUT)
        return result;
    if (!metric_row_put(entry->row, sample->time_ns, value))
        return REPORT_NO_MEMORY;
    return entry->part == MACHINE_NONE ||
                   machine_put(&entry->node->machine, entry->part, sample->time_ns, value)
               ? REPORT_PUT
               : REPORT_NO_MEMORY;
}

/* ---- The end --------------------------------------------------------------------------------- */

bool run_report_end(struct run_report *report)
{
    bool is_whole = true;
    for (size_t i = 0; i < report->node_count; i++)
        is_whole &= machine_end(&report->nodes[i]->machine);
    return is_whole;
}

static int compare_labels(const weir_series *a, const weir_series *b)
{
    int order = 0;
    for (size_t i = 0; !order && i < a->label_count && i < b->label_count; i++) {
        order = strcmp(a->labels[i].key, b->labels[i].key);
        order = order ? order : strcmp(a->labels[i].value, b->labels[i].value);
    }
    return order ? order : (a->label_count > b->label_count) - (a->label_count < b->label_count);
}

static int compare_rows(const void *first, const void *second)
{
    const weir_series *a = (*(struct metric_row *const *)first)->series;
    const weir_series *b = (*(struct metric_row *const *)second)->series;
    int order = strcmp(a->group, b->group);
    order = order ? order : strcmp(a->name, b->name);
    order = order ? order : compare_labels(a, b);
    return order ? order : a->cumulative - b->cumulative;
}

void run_report_sort(struct run_report *report)
{
    for (size_t i = 0; i < report->node_count; i++)
        if (report->nodes[i]->row_count)
            qsort(report->nodes[i]->rows, report->nodes[i]->row_count, sizeof(struct metric_row *),
                  compare_rows);
}
