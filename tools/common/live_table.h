/* live_table: what commands share that print a table again and again: on a terminal in place of the one before,
 * otherwise below it, with an empty line between. */
#ifndef WEIR_TOOLS_LIVE_TABLE_H
#define WEIR_TOOLS_LIVE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct figures_screen;
struct wr_buffer;

/* ---- When ------------------------------------------------------------------------------------ */

enum { LIVE_TABLE_EVERY_S = 2 }; /* the default of --every */

void live_table_pause(int64_t every_ns);

/* ---- Tables ---------------------------------------------------------------------------------- */

/* Before the first line. again: it is not the first table. */
void live_table_start(struct wr_buffer *out, const struct figures_screen *screen, bool again);

/* Behind the last line: prints the table. Returns EXIT_FAILURE after printing why that failed. */
int live_table_finish(struct wr_buffer *out, const struct figures_screen *screen);

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Appends the local time: "15:04:05". */
void live_table_put_clock(struct wr_buffer *out);

/* Appends a text from outside the command, escaped, cut to that many columns, with blanks behind it. */
void live_table_put_cut(struct wr_buffer *out, const char *text, size_t columns);

/* Appends a cell with blanks before it, and frees it. */
void live_table_put_right(struct wr_buffer *out, struct wr_buffer *cell, int columns);

/* Ends the line without blanks, and erases what was behind it in the table before. */
void live_table_end_line(struct wr_buffer *out, const struct figures_screen *screen);

#endif
