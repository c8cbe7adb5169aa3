#include "format/ucum.h"

#include <stdbool.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"

/* https://ucum.org/ucum */
static const char *const renamed[][2] = {
    {"seconds", "s"},
    {"second", "s"},
    {"sec", "s"},
    {"milliseconds", "ms"},
    {"microseconds", "us"},
    {"\xc2\xb5s", "us"},
    {"nanoseconds", "ns"},
    {"minutes", "min"},
    {"hours", "h"},
    {"days", "d"},
    {"bytes", "By"},
    {"byte", "By"},
    {"B", "By"},
    {"kB", "kBy"},
    {"MB", "MBy"},
    {"GB", "GBy"},
    {"TB", "TBy"},
    {"KB", "kBy"},
    {"KiB", "KiBy"},
    {"MiB", "MiBy"},
    {"GiB", "GiBy"},
    {"TiB", "TiBy"},
    {"bits", "bit"},
    {"percent", "%"},
    {"\xc2\xb0"
     "C",
     "Cel"},
    {"celsius", "Cel"},
    {"ratio", "1"},
    {"", "1"},
};

/* Units that are as they are. */
static const char *const known[] = {
    "s",    "ms",   "us",   "ns",  "ps",   "min",  "h",    "d",   "By", "kBy", "MBy", "GBy", "TBy", "KiBy",
    "MiBy", "GiBy", "TiBy", "bit", "kbit", "Mbit", "Gbit", "%",   "1",  "Cel", "K",   "W",   "kW",  "J",
    "kJ",   "kWh",  "Hz",   "kHz", "MHz",  "GHz",  "V",    "mV",  "A",  "mA",  "m",   "km",  "cm",  "mm",
    "g",    "kg",   "mg",   "l",   "Pa",   "hPa",  "kPa",  "Ohm", "N",  "lm",  "lx",  "deg", "rad", "dB",
};

static bool is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* What is in braces must be printable ASCII without braces. */
static void put_annotation(struct wr_buffer *out, const char *text, size_t length)
{
    wr_buffer_put_char(out, '{');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool allowed = c > 0x20 && c < 0x7f && c != '{' && c != '}';
        if ((c & 0xc0) != 0x80)
            wr_buffer_put_char(out, allowed ? text[i] : '_');
    }
    wr_buffer_put_char(out, '}');
}

static bool is_annotation(const char *text, size_t length)
{
    if (length < 3 || *text != '{' || text[length - 1] != '}')
        return false;
    for (size_t i = 1; i < length - 1; i++)
        if (text[i] <= 0x20 || text[i] == 0x7f || text[i] == '{' || text[i] == '}')
            return false;
    return true;
}

static void put_part(struct wr_buffer *out, const char *text, size_t length)
{
    for (size_t i = 0; i < WR_COUNT_OF(renamed); i++)
        if (is(text, length, renamed[i][0])) {
            wr_buffer_put_text(out, renamed[i][1]);
            return;
        }
    for (size_t i = 0; i < WR_COUNT_OF(known); i++)
        if (is(text, length, known[i])) {
            wr_buffer_put_text(out, known[i]);
            return;
        }
    if (is_annotation(text, length))
        wr_buffer_put(out, text, length);
    else
        put_annotation(out, text, length);
}

void wr_ucum_put(struct wr_buffer *out, const char *unit)
{
    for (;;) {
        size_t length = strcspn(unit, "/");
        put_part(out, unit, length);
        if (!unit[length])
            return;
        wr_buffer_put_char(out, '/');
        unit += length + 1;
    }
}
