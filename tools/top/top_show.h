/* top_show: what moves, as a table for people. */
#ifndef WEIR_TOOLS_TOP_SHOW_H
#define WEIR_TOOLS_TOP_SHOW_H

#include <stdint.h>

struct figures_screen;
struct top_page;
struct top_rows;
struct wr_buffer;

/* Appends the table. On a terminal it has at most as many lines as that. */
void top_show(struct wr_buffer *out, const struct top_page *page, const struct top_rows *rows,
              const struct figures_screen *screen);

/* Appends a line that says why there is no table, and since when. */
void top_show_lost(struct wr_buffer *out, const struct top_page *page, int64_t lost_ns,
                   const struct figures_screen *screen);

#endif
