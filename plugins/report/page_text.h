/* page_text: text and numbers of a page. Independent of the locale. */
#ifndef WEIR_PLUGINS_PAGE_TEXT_H
#define WEIR_PLUGINS_PAGE_TEXT_H

#include <stdint.h>

struct wr_buffer;

/* Appends text from outside, escaped for HTML, also within quotes. Control characters become U+FFFD. */
void page_put_text(struct wr_buffer *out, const char *text);

/* Appends a number with so many decimals, for coordinates and the like. */
void page_put_fixed(struct wr_buffer *out, double value, int decimals);

/* Appends a number with about four digits; NAN: a dash. */
void page_put_number(struct wr_buffer *out, double value);

/* The same with its unit, where that is bytes ("By"): 12.5 MiB. unit: may be NULL. */
void page_put_amount(struct wr_buffer *out, double value, const char *unit);

void page_put_count(struct wr_buffer *out, uint64_t count);

/* Appends "2026-11-23 17:29:37 UTC". */
void page_put_time(struct wr_buffer *out, double time_s);

/* Appends "12.3 s", "4 min 3 s", "2 h 5 min", "3 d 4 h". */
void page_put_duration(struct wr_buffer *out, double seconds);

#endif
