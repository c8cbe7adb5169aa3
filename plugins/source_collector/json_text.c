#include "json_text.h"

#include <json-c/json.h>
#include <math.h>

#include "../store/chunk.h"
#include "text/buffer.h"
#include "text/escape.h"
#include "text/number.h"

void json_text_put_name(struct wr_buffer *out, const char *name)
{
    wr_buffer_put(out, ",\"", 2);
    wr_buffer_put_text(out, name);
    wr_buffer_put(out, "\":", 2);
}

void json_text_put_double(struct wr_buffer *out, double value)
{
    char text[WR_NUMBER_ROOM];
    size_t length = wr_number_put_double(text, value);
    if (!isfinite(value))
        wr_buffer_put_char(out, '"');
    wr_buffer_put(out, text, length);
    if (!isfinite(value))
        wr_buffer_put_char(out, '"');
}

void json_text_put_int(struct wr_buffer *out, int64_t value)
{
    char text[WR_NUMBER_ROOM];
    wr_buffer_put(out, text, wr_number_put_int(text, value));
}

void json_text_put_point(struct wr_buffer *out, const struct chunk_point *point)
{
    if (point->is_int)
        json_text_put_int(out, point->value.i64);
    else
        json_text_put_double(out, point->value.f64);
}

int64_t json_text_us(int64_t time_ns)
{
    return time_ns / 1000 - (time_ns % 1000 < 0);
}

void json_text_put_time(struct wr_buffer *out, int64_t time_ns)
{
    enum { DECIMALS = 6, US = 1000000 };
    char text[WR_NUMBER_ROOM];
    int64_t us = json_text_us(time_ns);
    uint64_t size = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;
    if (us < 0)
        wr_buffer_put_char(out, '-');
    size_t length = wr_number_put_uint(text, size / US);
    if (size % US) {
        text[length++] = '.';
        wr_number_put_padded(text + length, (uint32_t)(size % US), DECIMALS);
        for (length += DECIMALS; text[length - 1] == '0'; length--)
            ;
    }
    wr_buffer_put(out, text, length);
}

void json_text_put_string(struct wr_buffer *out, const char *text)
{
    if (text)
        wr_escape_json(out, text);
    else
        wr_buffer_put_text(out, "null");
}

const char *json_text_of(struct json_object *object, const char *key)
{
    const char *text = json_object_get_string(json_object_object_get(object, key));
    return text ? text : "";
}
