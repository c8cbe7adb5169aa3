#include "page_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "format/utc_time.h"
#include "text/buffer.h"
#include "text/number.h"

void page_put_text(struct wr_buffer *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        switch (c) {
        case '&': wr_buffer_put_text(out, "&amp;"); break;
        case '<': wr_buffer_put_text(out, "&lt;"); break;
        case '>': wr_buffer_put_text(out, "&gt;"); break;
        case '"': wr_buffer_put_text(out, "&quot;"); break;
        case '\'': wr_buffer_put_text(out, "&#39;"); break;
        default:
            if (c < ' ' || c == 0x7f)
                wr_buffer_put_text(out, "\xef\xbf\xbd");
            else
                wr_buffer_put_char(out, (char)c);
        }
    }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static void put_exact(struct wr_buffer *out, double value)
{
    char text[WR_NUMBER_ROOM];
    wr_buffer_put(out, text, wr_number_put_double(text, value));
}

void page_put_fixed(struct wr_buffer *out, double value, int decimals)
{
    static const double scales[] = {1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7};
    if (!(fabs(value) < 1e9)) {
        put_exact(out, value);
        return;
    }
    int64_t scale = (int64_t)scales[decimals], scaled = llround(value * scales[decimals]);
    uint64_t size = (uint64_t)(scaled < 0 ? -scaled : scaled);
    wr_buffer_put_format(out, "%s%" PRIu64, scaled < 0 ? "-" : "", size / (uint64_t)scale);
    if (decimals)
        wr_buffer_put_format(out, ".%0*" PRIu64, decimals, size % (uint64_t)scale);
}

/* Without zeros at the end of the decimals that were put since `start`. */
static void trim(struct wr_buffer *out, size_t start)
{
    if (out->failed || !memchr(out->data + start, '.', out->length - start))
        return;
    while (out->data[out->length - 1] == '0')
        out->length--;
    if (out->data[out->length - 1] == '.')
        out->length--;
}

static void put_scientific(struct wr_buffer *out, double value)
{
    int exponent = (int)floor(log10(fabs(value)));
    double mantissa = exponent < -300 ? value * 1e300 / pow(10, exponent + 300) : value / pow(10, exponent);
    size_t start = out->length;
    page_put_fixed(out, mantissa, 3);
    trim(out, start);
    wr_buffer_put_format(out, "e%d", exponent);
}

void page_put_number(struct wr_buffer *out, double value)
{
    double size = fabs(value);
    size_t start = out->length;
    if (isnan(value))
        wr_buffer_put_text(out, "\u2013");
    else if (size > 0 && (size < 1e-3 || size >= 1e9))
        put_scientific(out, value);
    else {
        page_put_fixed(out, value, size >= 1000 ? 1 : size >= 100 ? 2 : size >= 1 ? 3 : size >= 0.1 ? 4 : 6);
        trim(out, start);
    }
}

void page_put_amount(struct wr_buffer *out, double value, const char *unit)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0, start = out->length;
    bool is_bytes = unit && (strcmp(unit, "By") == 0 || strcmp(unit, "bytes") == 0);
    if (!is_bytes || isnan(value)) {
        page_put_number(out, value);
        return;
    }
    while (fabs(value) >= 999.5 && i + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        i++;
    }
    page_put_fixed(out, value, i ? 1 : 0);
    trim(out, start);
    wr_buffer_put_format(out, " %s", units[i]);
}

void page_put_count(struct wr_buffer *out, uint64_t count)
{
    char digits[WR_NUMBER_ROOM];
    size_t length = wr_number_put_uint(digits, count);
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            wr_buffer_put_char(out, ',');
        wr_buffer_put_char(out, digits[i]);
    }
}

/* ---- Times ----------------------------------------------------------------------------------- */

void page_put_time(struct wr_buffer *out, double time_s)
{
    if (!(fabs(time_s) < 9e9)) {
        wr_buffer_put_text(out, "\u2013");
        return;
    }
    const struct wr_utc_time time = wr_utc_time_split((int64_t)(time_s * 1e9));
    wr_buffer_put_format(out, "%04d-%02d-%02d %02u:%02u:%02u UTC", time.year, time.month, time.day, time.hour,
                         time.minute, time.second);
}

void page_put_duration(struct wr_buffer *out, double seconds)
{
    int64_t s = fabs(seconds) < 1e15 ? llround(seconds) : 0;
    if (s < 60) {
        size_t start = out->length;
        page_put_fixed(out, seconds, 1);
        trim(out, start);
        wr_buffer_put_text(out, " s");
    } else if (s < 3600)
        wr_buffer_put_format(out, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    else if (s < 86400)
        wr_buffer_put_format(out, "%" PRId64 " h %" PRId64 " min", s / 3600, s / 60 % 60);
    else
        wr_buffer_put_format(out, "%" PRId64 " d %" PRId64 " h", s / 86400, s / 3600 % 24);
}
