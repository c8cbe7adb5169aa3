/* Expansion: any text without a NUL is expanded or refused. A text without a dollar sign stays as it is, and
 * doubling all dollar signs yields the original text. */

#include "config/expand.h"
#include "text/buffer.h"
#include "text/error.h"
#include "fuzz.h"

static const char *entries[] = {"NAME=value", "EMPTY=", "DOLLARS=a$$b${NAME}", "BAD=\xff", NULL};
static const struct wr_environment environment = {.entries = entries, .folder = "/"};

static bool expand(const char *text, struct wr_buffer *out)
{
    struct wr_error error = {0};
    bool expanded = wr_expand(&environment, text, out, NULL, &error);
    FUZZ_CHECK(expanded == (error.code == 0) && expanded == !*error.text);
    return expanded;
}

static void expect(const char *text, const char *expected)
{
    struct wr_buffer out = {0};
    FUZZ_CHECK(expand(text, &out));
    FUZZ_CHECK(strcmp(wr_buffer_text(&out), expected) == 0);
    wr_buffer_fini(&out);
}

static void double_dollars(const char *text)
{
    char *doubled = malloc(2 * strlen(text) + 1), *to = doubled;
    FUZZ_CHECK(doubled);
    for (const char *from = text; *from; from++) {
        if (*from == '$')
            *to++ = '$';
        *to++ = *from;
    }
    *to = '\0';
    expect(doubled, text);
    free(doubled);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;
    struct wr_buffer out = {0};
    fuzz_take_line(data, data + size, &text);
    if (!strstr(text, "${file:")) /* the contents of files are not part of this test */
        expand(text, &out);
    wr_buffer_fini(&out);
    if (!strchr(text, '$'))
        expect(text, text);
    double_dollars(text);
    free(text);
    return 0;
}
