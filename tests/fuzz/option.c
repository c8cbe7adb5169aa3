/* Values of options: any text is accepted or refused for each type. An accepted value is within the allowed
 * range, and parsing its shown text yields the same value. */

#include "config/option.h"
#include "text/buffer.h"
#include "text/error.h"
#include "fuzz.h"

struct options {
    bool truth;
    int64_t integer, port, duration, size, choice;
    double real;
    const char *text, *path;
};

#define ROW(field, type, allowed)                                                                              \
    {                                                                                                          \
#field, type, 0, NULL, allowed, "", offsetof(struct options, field)                                    \
    }

static const weir_option rows[] = {
    ROW(truth, WEIR_OPTION_BOOL, NULL),     ROW(integer, WEIR_OPTION_INT, NULL),
    ROW(port, WEIR_OPTION_INT, "1..65535"), ROW(duration, WEIR_OPTION_DURATION, "1ms..1d"),
    ROW(size, WEIR_OPTION_SIZE, NULL),      ROW(choice, WEIR_OPTION_ENUM, "auto|always|never"),
    ROW(real, WEIR_OPTION_DOUBLE, NULL),    ROW(text, WEIR_OPTION_STRING, NULL),
    ROW(path, WEIR_OPTION_PATH, NULL),
};

static const char *entries[] = {NULL};
static const struct wr_environment environment = {.entries = entries, .folder = "/folder"};

static bool set(const weir_option *row, struct options *options, const char *text, struct wr_region *keep)
{
    struct wr_error error = {0};
    const struct wr_option_site site = {&environment, keep};
    bool taken = wr_option_set(row, options, text, &site, &error);
    FUZZ_CHECK(taken || *error.text);
    return taken;
}

static void check_bounds(const struct options *options)
{
    FUZZ_CHECK(options->port >= 0 && options->port <= 65535);
    FUZZ_CHECK(options->duration >= 0 && options->duration <= INT64_C(86400000000000));
    FUZZ_CHECK(options->size >= 0 && options->choice >= 0 && options->choice < 3);
    FUZZ_CHECK(!options->path || options->path[0] == '/');
}

static bool is_shown_in_quotes(const weir_option *row)
{
    return row->type == WEIR_OPTION_STRING || row->type == WEIR_OPTION_PATH;
}

static void try_row(const weir_option *row, const char *text)
{
    struct wr_region keep = {0};
    struct options first = {0}, second = {0};
    struct wr_buffer shown = {0}, again = {0};
    if (set(row, &first, text, &keep)) {
        check_bounds(&first);
        wr_option_show(row, &first, true, &shown);
    }
    if (shown.length && !is_shown_in_quotes(row)) {
        FUZZ_CHECK(set(row, &second, wr_buffer_text(&shown), &keep));
        wr_option_show(row, &second, true, &again);
        FUZZ_CHECK(strcmp(wr_buffer_text(&shown), wr_buffer_text(&again)) == 0);
    }
    wr_buffer_fini(&shown);
    wr_buffer_fini(&again);
    wr_region_fini(&keep);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;
    if (size == 0)
        return 0;
    fuzz_take_line(data + 1, data + size, &text);
    try_row(&rows[data[0] % (sizeof rows / sizeof rows[0])], text);
    free(text);
    return 0;
}
