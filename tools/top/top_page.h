/* top_page: gets a page in Prometheus' text format or OpenMetrics, and reads its series. */
#ifndef WEIR_TOOLS_TOP_PAGE_H
#define WEIR_TOOLS_TOP_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "parse/parser.h"

struct top_table;

struct top_page {
    const char *url;
    const char *pattern;                     /* of names; NULL: all */
    int64_t time_ns;                         /* when the page was there; monotonic */
    uint64_t bad_lines;                      /* of it, that were not understood */
    char problem[WR_PARSE_FAULT_ROOM + 100]; /* why there is no page */
};

/* Gets the page and updates the table. Returns false with the problem set; then the table is as it was. */
bool top_page_read(struct top_page *page, struct top_table *table);

#endif
