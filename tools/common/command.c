#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "config/config.h"
#include "config/config_read.h"
#include "figures.h"
#include "handler/plugin.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"
#include "text/units.h"
#include "text/utf8.h"

/* ---- Output ---------------------------------------------------------------------------------- */

int command_print_help(const struct command *command, FILE *to)
{
    fprintf(to, "usage: weir %s%s%s\n\n%s\n%s", command->name, *command->arguments ? " " : "",
            command->arguments, command->summary, command->help);
    return EXIT_SUCCESS;
}

int command_show_usage(const struct command *command)
{
    fprintf(stderr, "usage: weir %s%s%s\n", command->name, *command->arguments ? " " : "", command->arguments);
    return EXIT_USAGE;
}

/* Errors of the library are escaped already: their backslashes stay single. */
static void print_message(const char *prefix, const char *format, va_list arguments)
{
    char text[2 * WR_ERROR_ROOM], shown[4 * WR_ERROR_ROOM];
    vsnprintf(text, sizeof text, format, arguments);
    wr_utf8_line(shown, sizeof shown, text);
    fprintf(stderr, "%s: %s\n", prefix, shown);
}

int command_refuse(const struct command *command, const char *format, ...)
{
    char prefix[64];
    va_list arguments;
    snprintf(prefix, sizeof prefix, "weir %s", command->name);
    va_start(arguments, format);
    print_message(prefix, format, arguments);
    va_end(arguments);
    return command_show_usage(command);
}

int command_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message("weir", format, arguments);
    va_end(arguments);
    return EXIT_FAILURE;
}

void command_out_of_memory(void)
{
    exit(command_fail("out of memory"));
}

const char *command_text(struct wr_buffer *buffer)
{
    if (!wr_buffer_text(buffer))
        command_out_of_memory();
    return buffer->data;
}

char *command_take(struct wr_buffer *buffer)
{
    return command_must(wr_buffer_take(buffer));
}

void command_print_buffer(struct wr_buffer *text, FILE *to)
{
    const char *all = wr_buffer_text(text);
    if (!all && text->failed)
        command_out_of_memory();
    if (all)
        fputs(all, to);
    fflush(to);
    wr_buffer_fini(text);
}

char *command_join(const char *folder, const char *name)
{
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/%s", folder, name);
    return command_take(&path);
}

bool command_has_ending(const char *text, size_t length, const char *ending)
{
    size_t wanted = strlen(ending);
    return length > wanted && memcmp(text + length - wanted, ending, wanted) == 0;
}

void command_put_text(struct wr_buffer *out, const char *text)
{
    wr_utf8_show(out, text, strlen(text), 0);
}

void command_put_padded(struct wr_buffer *out, const char *text, size_t width)
{
    size_t start = out->length;
    command_put_text(out, text);
    size_t columns = figures_width(out->data + start, out->length - start);
    if (columns < width)
        wr_buffer_put_format(out, "%*s", (int)(width - columns), "");
}

bool command_write(struct wr_buffer *buffer)
{
    size_t length = buffer->length; /* data is NULL in a buffer that was never used */
    if (buffer->failed)
        command_out_of_memory();
    bool written = (!length || fwrite(buffer->data, 1, length, stdout) == length) && fflush(stdout) == 0;
    if (!written)
        command_fail("standard output cannot be written: %s", strerror(errno));
    wr_buffer_fini(buffer);
    return written;
}

int command_finish(struct wr_buffer *buffer, int result)
{
    return command_write(buffer) ? result : EXIT_FAILURE;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static int check_names(const struct command *command, int argc, int max_names)
{
    if (argc - optind > max_names)
        return command_refuse(command, max_names ? "at most one name is allowed" : "no arguments are allowed");
    return COMMAND_CONTINUE;
}

int command_read_listing(const struct command *command, int argc, char **argv, int max_names,
                         struct command_listing *listing)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    *listing = (struct command_listing){0};
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h')
            return command_print_help(command, stdout);
        if (option != 'j')
            return command_show_usage(command);
        listing->json = true;
    }
    listing->name = argv[optind];
    return check_names(command, argc, max_names);
}

int command_read_name(const struct command *command, int argc, char **argv, int max_names, const char **name)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    int option = getopt_long(argc, argv, "h", options, NULL);
    if (option == 'h')
        return command_print_help(command, stdout);
    if (option != -1)
        return command_show_usage(command);
    *name = argv[optind];
    return check_names(command, argc, max_names);
}

int command_read_every(const struct command *command, const char *text, int least_ms, int64_t *every_ns)
{
    if (wr_units_read_duration(text, every_ns) && *every_ns >= least_ms * WR_NS_PER_MS &&
        *every_ns <= 86400 * WR_NS_PER_S)
        return COMMAND_CONTINUE;
    return command_refuse(command, "--every: \"%s\" is not a duration from %dms to 1d", text, least_ms);
}

struct wr_config *command_read_config(const char *file, struct wr_problems *problems, struct wr_error *error)
{
    if (file && *file)
        return wr_config_read_all(file, problems, error);
    if (!file && wr_config_has_variable("WEIR_CONFIG"))
        return wr_config_read_all(NULL, problems, error);
    wr_error_set(error, WEIR_ERR_CONFIG, "no configuration: no file is given, and WEIR_CONFIG is not set");
    return NULL;
}

struct wr_plugins *command_plugins(void)
{
    static struct wr_plugins plugins;
    plugins.folders = secure_getenv("WEIR_PLUGIN_PATH");
    return &plugins;
}

bool command_read_source(size_t index, weir_source_stats *stats)
{
    const char *name = weir_get_source_name(index);
    return name && weir_get_source_stats(name, stats, sizeof *stats) == 0;
}
