#include "command.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "handler/plugin.h"

void command_print_help(const struct command *command, FILE *to)
{
    fprintf(to, "usage: weir %s%s%s\n\n%s\n%s", command->name, *command->arguments ? " " : "",
            command->arguments, command->summary, command->help);
}

int command_show_usage(const struct command *command)
{
    fprintf(stderr, "usage: weir %s%s%s\n", command->name, *command->arguments ? " " : "", command->arguments);
    return EXIT_USAGE;
}

int command_refuse(const struct command *command, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "weir %s: ", command->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return command_show_usage(command);
}

int command_fail(const char *format, ...)
{
    va_list arguments;
    fputs("weir: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_NEGATIVE;
}

int command_read_listing(const struct command *command, int argc, char **argv, int most,
                         struct command_listing *listing)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    *listing = (struct command_listing){0};
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h') {
            command_print_help(command, stdout);
            return EXIT_GOOD;
        }
        if (option != 'j')
            return command_show_usage(command);
        listing->json = true;
    }
    if (argc - optind > most)
        return command_refuse(command, most ? "one name at most" : "no arguments are expected");
    listing->name = argv[optind];
    return COMMAND_GOES_ON;
}

int command_read_name(const struct command *command, int argc, char **argv, int most, const char **name)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    int option = getopt_long(argc, argv, "h", options, NULL);
    if (option == 'h') {
        command_print_help(command, stdout);
        return EXIT_GOOD;
    }
    if (option != -1)
        return command_show_usage(command);
    if (argc - optind > most)
        return command_refuse(command, most ? "one name at most" : "no arguments are expected");
    *name = argv[optind];
    return COMMAND_GOES_ON;
}

bool command_write(struct wr_buffer *buffer)
{
    size_t length = buffer->length; /* a buffer that nothing was ever put into has no bytes to point to */
    bool written = !buffer->failed && (!length || fwrite(buffer->data, 1, length, stdout) == length) &&
                   fflush(stdout) == 0;
    wr_buffer_fini(buffer);
    return written;
}

struct wr_plugins *command_plugins(void)
{
    static struct wr_plugins plugins;
    plugins.folders = secure_getenv("WEIR_PLUGIN_PATH");
    return &plugins;
}
