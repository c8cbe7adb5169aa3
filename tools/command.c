#include "command.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "plugin.h"

void command_print_help(const struct command *command, FILE *to)
{
    fprintf(to, "usage: weir %s %s\n\n%s\n%s", command->name, command->arguments, command->summary,
            command->help);
}

int command_refuse(const struct command *command, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "weir %s: ", command->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nusage: weir %s %s\n", command->name, command->arguments);
    return EXIT_USAGE;
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

bool command_write(struct wr_buffer *buffer)
{
    bool written = !buffer->failed && fwrite(buffer->data, 1, buffer->length, stdout) == buffer->length &&
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
