#include "figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "command.h"
#include "text/buffer.h"

enum { COLUMNS = 100, COLUMNS_LEAST = 40, COLUMNS_MOST = 1000 };

/* ---- Numbers --------------------------------------------------------------------------------- */

void figures_put_duration(struct wr_buffer *out, int64_t ns)
{
    const int64_t second_ns = 1000000000;
    int64_t s = ns < 0 ? 0 : ns / second_ns;
    double exact = ns < 0 ? 0 : (double)ns / (double)second_ns;
    if (s < 1)
        wr_buffer_put_format(out, "%.1f ms", exact * 1000);
    else if (s < 10)
        wr_buffer_put_format(out, "%.2f s", exact);
    else if (s < 60)
        wr_buffer_put_format(out, "%.1f s", exact);
    else if (s < 3600)
        wr_buffer_put_format(out, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    else if (s < 86400)
        wr_buffer_put_format(out, "%" PRId64 " h %" PRId64 " min", s / 3600, s / 60 % 60);
    else
        wr_buffer_put_format(out, "%" PRId64 " d %" PRId64 " h", s / 86400, s / 3600 % 24);
}

void figures_put_bytes(struct wr_buffer *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        unit++;
    }
    wr_buffer_put_format(out, "%.*f %s", unit && bytes < 9.95 ? 1 : 0, bytes, units[unit]);
}

void figures_put_count(struct wr_buffer *out, double count)
{
    char digits[340];
    int length = snprintf(digits, sizeof digits, "%.0f", count);
    for (int i = 0; i < length; i++) {
        bool is_inside = i > (digits[0] == '-') && (length - i) % 3 == 0;
        if (is_inside)
            wr_buffer_put_char(out, ',');
        wr_buffer_put_char(out, digits[i]);
    }
}

void figures_put_value(struct wr_buffer *out, double value)
{
    double size = fabs(value);
    bool is_whole = value == floor(value);
    if (size < 1e7 && (is_whole || size >= 999.5))
        figures_put_count(out, value);
    else
        wr_buffer_put_format(out, "%.3g", value);
}

void figures_put_scaled(struct wr_buffer *out, double number)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P"};
    size_t unit = 0;
    while (number >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        number /= 1000;
        unit++;
    }
    bool has_fraction = number < 99.95 && number != floor(number);
    wr_buffer_put_format(out, "%.*f%s", has_fraction ? 1 : 0, number, units[unit]);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

size_t figures_width(const char *text, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)text[i] & 0xC0) != 0x80; /* all but the later bytes of a character */
    return columns;
}

void figures_put_cell(struct wr_buffer *out, const char *text, int width)
{
    int used = (int)figures_width(text, strlen(text)), room = abs(width);
    if (width < 0 && used < room)
        wr_buffer_put_format(out, "%*s", room - used, "");
    wr_buffer_put_text(out, text);
    if (width > 0 && used < room)
        wr_buffer_put_format(out, "%*s", room - used, "");
}

void figures_put_cut(struct wr_buffer *out, const char *text, size_t length, size_t columns)
{
    bool is_cut = figures_width(text, length) > columns && columns > 3;
    size_t room = is_cut ? columns - 3 : columns, end = 0;
    for (size_t used = 0; end < length; end++)
        if (((unsigned char)text[end] & 0xC0) != 0x80 && used++ == room)
            break;
    wr_buffer_put(out, text, end);
    wr_buffer_put_text(out, is_cut ? "..." : "");
    size_t used = figures_width(text, end) + (is_cut ? 3 : 0);
    if (used < columns)
        wr_buffer_put_format(out, "%*s", (int)(columns - used), "");
}

void figures_put_escaped(struct wr_buffer *out, const char *text, size_t columns)
{
    struct wr_buffer shown = {0};
    command_put_text(&shown, text);
    figures_put_cut(out, shown.data ? shown.data : "", shown.length, columns);
    wr_buffer_fini(&shown);
}

void figures_put_right(struct wr_buffer *out, struct wr_buffer *cell, int columns)
{
    const char *text = wr_buffer_text(cell);
    figures_put_cell(out, text ? text : "", -columns);
    wr_buffer_fini(cell);
}

void figures_trim(struct wr_buffer *out)
{
    while (out->length && out->data[out->length - 1] == ' ')
        out->length--;
}

void figures_put_bars(struct wr_buffer *out, const double *values, size_t count,
                      const struct figures_screen *screen)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const plain[] = {".", ":", "-", "=", "+", "*", "%", "#"};
    const char *const *bars = screen->has_blocks ? blocks : plain;
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    for (size_t i = 0; i < count; i++) {
        double share = most > least ? (values[i] / 2 - least / 2) / (most / 2 - least / 2) : 0.5;
        wr_buffer_put_text(out, isnan(values[i]) ? " " : bars[share >= 1 ? 7 : (int)(share * 8)]);
    }
}

/* ---- Terminals ------------------------------------------------------------------------------- */

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static int find_columns(const struct winsize *size)
{
    const char *text = getenv("COLUMNS");
    long columns = size->ws_col ? size->ws_col : text ? strtol(text, NULL, 10) : COLUMNS;
    return columns < 1               ? COLUMNS
           : columns < COLUMNS_LEAST ? COLUMNS_LEAST
           : columns > COLUMNS_MOST  ? COLUMNS_MOST
                                     : (int)columns;
}

/* The command does not use locales otherwise. */
static bool is_utf8(void)
{
    const char *name = or_null(getenv("LC_ALL"));
    if (!name)
        name = or_null(getenv("LC_CTYPE"));
    if (!name)
        name = or_null(getenv("LANG"));
    const char *set = name ? strchr(name, '.') : NULL;
    return set && (strncasecmp(set, ".utf-8", 6) == 0 || strncasecmp(set, ".utf8", 5) == 0);
}

struct figures_screen figures_screen_of(int fd)
{
    const char *terminal = getenv("TERM");
    struct winsize size = {0};
    bool is_terminal = isatty(fd);
    (void)ioctl(fd, TIOCGWINSZ, &size); /* stays 0 for what is no terminal */
    return (struct figures_screen){
        .is_terminal = is_terminal,
        .has_colours = is_terminal && !or_null(getenv("NO_COLOR")) && terminal && strcmp(terminal, "dumb") != 0,
        .has_blocks = is_utf8(),
        .columns = find_columns(&size),
        .rows = size.ws_row,
    };
}
