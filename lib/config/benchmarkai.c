#include "config/benchmarkai.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"
#include "text/number.h"
#include "config/config_read.h"
#include "text/units.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200 };

#define PATH_VARIABLE "BENCHMARK_AI_FIFO_FILEPATH"

/* A time in seconds. What is beyond min or max is taken for it. */
struct seconds {
    const char *variable;
    const char *fallback;
    double min, max;
};

static const struct seconds max_wait = {"BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "10", 0, 86400};
static const struct seconds wait_step = {"BENCHMARK_AI_FIFO_WAIT_TIME_STEP", "0.5", 0.001, 3600};

static const char *read_variable(const char *name, const char *fallback)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : fallback;
}

/* Ignores the case of ASCII letters, in any locale. word: lower case. */
static bool is_same_word(const char *text, const char *word)
{
    for (; *text && *word; text++, word++) {
        char letter = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        if (letter != *word)
            return false;
    }
    return *text == *word;
}

static bool refuse(struct wr_error *error, const char *variable, const char *value, const char *rule)
{
    char shown[SHOWN_ROOM];
    return wr_error_refuse(error, WEIR_ERR_CONFIG, "%s: must be %s, got %s", variable, rule,
                           wr_utf8_quote(shown, sizeof shown, value, strlen(value)));
}

/* Copies the text without blanks around it, a plus sign, and underscores between digits, which Python's float()
 * allows. Returns false if it does not fit. */
static bool strip(char out[SHOWN_ROOM], const char *text)
{
    static const char blanks[] = " \t\n\v\f\r";
    text += strspn(text, blanks);
    text += *text == '+' && text[1] != '-';
    size_t length = strlen(text), used = 0;
    while (length && strchr(blanks, text[length - 1]))
        length--;
    for (size_t i = 0; i < length; i++) {
        bool is_separator = text[i] == '_' && i > 0 && wr_is_digit(text[i - 1]) && wr_is_digit(text[i + 1]);
        if (used + 1 == SHOWN_ROOM)
            return false;
        if (!is_separator)
            out[used++] = text[i];
    }
    out[used] = '\0';
    return true;
}

/* Reads what Python's float() reads, except for nan. */
static bool read_float(const char *given, double *value)
{
    char text[SHOWN_ROOM];
    if (!strip(text, given))
        return false;
    const char *size = text + (*text == '-');
    if (is_same_word(size, "inf") || is_same_word(size, "infinity")) {
        *value = size > text ? -INFINITY : INFINITY;
        return true;
    }
    return wr_number_read_double(text, value);
}

/* Formats the variable as a duration of the configuration: "500ms". */
static bool read_seconds(const struct seconds *what, char text[WR_UNITS_ROOM], struct wr_error *error)
{
    double value;
    const char *given = read_variable(what->variable, what->fallback);
    if (!read_float(given, &value))
        return refuse(error, what->variable, given, "a number of seconds, like 10 or 0.5");
    value = value < what->min ? what->min : value > what->max ? what->max : value;
    wr_units_put_duration(text, (int64_t)(value * 1e9 + 0.5));
    return true;
}

static bool put_fifo(struct wr_buffer *out, struct wr_error *error)
{
    char wait[WR_UNITS_ROOM], step[WR_UNITS_ROOM];
    const char *path = read_variable(PATH_VARIABLE, NULL);
    if (!read_seconds(&max_wait, wait, error) || !read_seconds(&wait_step, step, error))
        return false;
    if (path && !wr_utf8_is_valid(path, strlen(path), NULL))
        return refuse(error, PATH_VARIABLE, path, "valid UTF-8");
    wr_buffer_put_text(out, "{\"handlers\":{\"fifo\":{\"type\":\"fifo\"");
    if (path)
        wr_buffer_put_text(out, ",\"path\":\"${" PATH_VARIABLE "}\"");
    wr_buffer_put_format(out,
                         ",\"max_wait\":\"%s\",\"wait_step\":\"%s\",\"format\":\"bai\",\"delivery\":\"sync\"}},"
                         "\"groups\":{\"*\":\"fifo\"}}",
                         wait, step);
    return true;
}

static void put_stdout(struct wr_buffer *out)
{
    wr_buffer_put_text(
        out,
        "{\"handlers\":{\"console\":{\"type\":\"console\",\"to\":\"stdout\",\"format\":\"bai\",\"delivery\":"
        "\"sync\"}},\"groups\":{\"*\":\"console\"}}");
}

static bool put_mode(struct wr_buffer *out, const char *mode, struct wr_error *error)
{
    if (is_same_word(mode, "fifo"))
        return put_fifo(out, error);
    if (!is_same_word(mode, "stdout"))
        return refuse(error, "BENCHMARK_AI", mode, "stdout or fifo");
    put_stdout(out);
    return true;
}

bool wr_benchmarkai_is_set(void)
{
    return read_variable("BENCHMARK_AI", NULL);
}

struct wr_config *wr_benchmarkai_config(struct wr_error *error)
{
    const char *mode = read_variable("BENCHMARK_AI", NULL);
    struct wr_buffer text = {0};
    struct wr_config *config = NULL;
    if (!mode)
        return NULL;
    if (put_mode(&text, mode, error)) {
        const char *whole = wr_buffer_text(&text);
        if (whole)
            config = wr_config_read_text("BENCHMARK_AI", whole, text.length, NULL, error);
        else
            wr_error_no_memory(error, NULL);
    }
    wr_buffer_fini(&text);
    return config;
}
