/* json_text: parts of JSON, as the query API writes them. */
#ifndef WEIR_PLUGINS_COLLECTOR_JSON_TEXT_H
#define WEIR_PLUGINS_COLLECTOR_JSON_TEXT_H

#include <stdint.h>

struct chunk_point;
struct json_object;
struct wr_buffer;

/* Appends ,"name": */
void json_text_put_name(struct wr_buffer *out, const char *name);

/* NaN and infinities are strings. */
void json_text_put_double(struct wr_buffer *out, double value);
void json_text_put_int(struct wr_buffer *out, int64_t value);

/* The value of a point: an integer keeps all its digits. */
void json_text_put_point(struct wr_buffer *out, const struct chunk_point *point);

/* Seconds, with as many of six decimals as are needed; less than a microsecond is cut off. */
void json_text_put_time(struct wr_buffer *out, int64_t time_ns);

/* A string; NULL: null. */
void json_text_put_string(struct wr_buffer *out, const char *text);

/* A text of an object; "": there is none. */
const char *json_text_of(struct json_object *object, const char *key);

/* Microseconds, rounded down. */
int64_t json_text_us(int64_t time_ns);

#endif
