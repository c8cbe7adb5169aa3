#include "json_out.h"

#include "text/escape.h"

static void begin(struct json_out *out, const char *key)
{
    if (out->depth) {
        wr_buffer_put_text(&out->text, out->empty ? "\n" : ",\n");
        wr_buffer_put_format(&out->text, "%*s", (int)(2 * out->depth), "");
    }
    out->empty = false;
    if (key) {
        wr_escape_json(&out->text, key);
        wr_buffer_put_text(&out->text, ": ");
    }
}

void json_out_open(struct json_out *out, const char *key, char bracket)
{
    begin(out, key);
    wr_buffer_put_char(&out->text, bracket);
    out->depth++;
    out->empty = true;
}

void json_out_close(struct json_out *out, char bracket)
{
    out->depth--;
    if (!out->empty)
        wr_buffer_put_format(&out->text, "\n%*s", (int)(2 * out->depth), "");
    wr_buffer_put_char(&out->text, bracket);
    out->empty = false;
    if (!out->depth)
        wr_buffer_put_char(&out->text, '\n');
}

void json_out_text(struct json_out *out, const char *key, const char *text)
{
    begin(out, key);
    wr_escape_json(&out->text, text);
}

void json_out_piece(struct json_out *out, const char *key, const char *text, size_t length)
{
    struct wr_buffer piece = {0};
    wr_buffer_put(&piece, text, length);
    const char *whole = wr_buffer_text(&piece);
    if (whole)
        json_out_text(out, key, whole);
    else
        out->text.failed = true;
    wr_buffer_fini(&piece);
}

void json_out_word(struct json_out *out, const char *key, const char *word)
{
    begin(out, key);
    wr_buffer_put_text(&out->text, word);
}
