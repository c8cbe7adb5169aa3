/* report_document: files of the handler type report, and those of perf.py: an object with a member for each
 * node, which is an array of reports, an object with figures, or an object with figures, reports and metrics.
 */
#ifndef WEIR_TOOLS_REPORT_DOCUMENT_H
#define WEIR_TOOLS_REPORT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "../../plugins/report/node_figures.h"

struct json_object;
struct statistics;

struct report_document_node {
    const char *path; /* of the file, as it is shown */
    char *name;
    double *reports; /* NODE_KEYS each; NAN: null */
    size_t count;
    double figures[NODE_FIGURES]; /* of the file, or else computed; NAN: not known */
    struct json_object *metrics;  /* an array; NULL: none */
};

struct report_documents {
    struct report_document_node *nodes; /* in the order of the files */
    size_t count;
};

/* Whether bytes at the beginning of a file are those of such a document. */
bool report_document_is(const char *bytes, size_t length);

/* Appends the nodes of a document. path: kept. Returns false after printing what is wrong. */
bool report_document_read(struct report_documents *documents, const char *path, const char *bytes,
                          size_t length);

/* Frees all nodes but the first `count`. */
void report_documents_cut(struct report_documents *documents, size_t count);

/* Adds the reports and metrics of nodes from number `first` on to the statistics, with the label node. Prints a
 * message if of some metrics only a part of the values was kept. */
void report_document_add(const struct report_documents *documents, size_t first, struct statistics *statistics);

#endif
