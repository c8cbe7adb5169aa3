/* summary_input: reads the values of files that weir and others write. */
#ifndef WEIR_TOOLS_SUMMARY_INPUT_H
#define WEIR_TOOLS_SUMMARY_INPUT_H

#include <stdbool.h>
#include <stdint.h>

struct report_documents;
struct statistics;
struct wr_parser_type;

struct summary_faults {
    uint64_t lines;   /* that are not understood */
    uint64_t values;  /* that were left out of lines */
    bool has_message; /* the first one was printed */
};

/* Reads a file, "-": standard input, into the statistics; the nodes of a report are appended to the documents,
 * too. type: of its lines; NULL: a report by its beginning, csv or json by the name's ending, else text or json
 * line by line. statistics: NULL: it must be a report. Returns false after printing why it cannot be read. */
bool summary_input_read(const char *path, const struct wr_parser_type *type, struct statistics *statistics,
                        struct report_documents *documents, struct summary_faults *faults);

#endif
