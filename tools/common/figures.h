/* figures: numbers as people read them, and how wide and colourful a terminal is. */
#ifndef WEIR_TOOLS_FIGURES_H
#define WEIR_TOOLS_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_buffer;

/* Appends "12.3 ms", "4.21 s", "12.3 s", "3 min 4 s", "2 h 3 min", "5 d 2 h". */
void figures_put_duration(struct wr_buffer *out, int64_t ns);

/* Appends a number of bytes in the unit that leaves one to three digits before the point: "512 B", "1.2 MiB".
 */
void figures_put_bytes(struct wr_buffer *out, double bytes);

/* Appends a whole number in groups of three digits: "1,204,331". */
void figures_put_count(struct wr_buffer *out, double count);

/* Appends a value with three significant digits, or all before the point: "0.412", "12,043", "3.1e+12". */
void figures_put_value(struct wr_buffer *out, double value);

/* How many columns a text takes; it has no control characters. */
size_t figures_width(const char *text, size_t length);

/* Appends a text and blanks up to `width` columns; negative: blanks first. */
void figures_put_cell(struct wr_buffer *out, const char *text, int width);

/* Appends a text without control characters, cut to that many columns ("calculate_l..."), with blanks behind
 * it. */
void figures_put_cut(struct wr_buffer *out, const char *text, size_t length, size_t columns);

/* The same of a text from outside the command, which is escaped. */
void figures_put_escaped(struct wr_buffer *out, const char *text, size_t columns);

/* Appends a cell with blanks before it, and frees it. */
void figures_put_right(struct wr_buffer *out, struct wr_buffer *cell, int columns);

/* Removes the blanks at the end. */
void figures_trim(struct wr_buffer *out);

/* Appends a number with at most three digits before its unit of 1000: "0", "12.3", "4.5k", "120M". */
void figures_put_scaled(struct wr_buffer *out, double number);

/* Where something is printed. */
struct figures_screen {
    bool is_terminal;
    bool has_colours; /* a terminal that is not dumb, and NO_COLOR is not set */
    bool has_blocks;  /* the locale is UTF-8 */
    int columns;      /* of the terminal; COLUMNS; else 100 */
    int rows;         /* of the terminal; 0: not known */
};

struct figures_screen figures_screen_of(int fd);

/* Appends a line of bars, one column each, as high as its value between the smallest and the largest one; NAN:
 * a blank. */
void figures_put_bars(struct wr_buffer *out, const double *values, size_t count,
                      const struct figures_screen *screen);

#endif
