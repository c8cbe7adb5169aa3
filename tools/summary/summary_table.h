/* summary_table: statistics as a table, as JSON and as CSV. */
#ifndef WEIR_TOOLS_SUMMARY_TABLE_H
#define WEIR_TOOLS_SUMMARY_TABLE_H

#include <stddef.h>

#include "common/figures.h"
#include "statistics.h"

struct wr_buffer;

enum { SUMMARY_NUMBER_COLUMNS = 10 };

/* Appends a number, right-aligned; NAN: blanks. */
void summary_put_number(struct wr_buffer *out, double value, void (*put)(struct wr_buffer *out, double value));

/* How many columns names need, at most `most`. */
size_t summary_find_width(const struct statistics *statistics, size_t most);

/* Appends a row for each series, as wide as the screen. */
void summary_table_put(struct wr_buffer *out, const struct statistics *statistics,
                       const struct figures_screen *screen);

/* Prints an array with an object for each series. Returns `result`, or EXIT_FAILURE if that failed. */
int summary_print_json(const struct statistics *statistics, int result);

/* Appends a line for each series, behind a line with the columns' names. */
void summary_put_csv(struct wr_buffer *out, const struct statistics *statistics);

#endif
