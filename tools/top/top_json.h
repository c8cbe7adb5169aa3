/* top_json: what moves, as a line of JSON. */
#ifndef WEIR_TOOLS_TOP_JSON_H
#define WEIR_TOOLS_TOP_JSON_H

struct top_page;
struct top_rows;

/* Prints an object with the rows. Returns EXIT_FAILURE after printing why that failed. */
int top_json_print(const struct top_page *page, const struct top_rows *rows);

/* Prints an object that says why there are none. */
int top_json_print_lost(const struct top_page *page);

#endif
