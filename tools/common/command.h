/* command: what the parts of `weir` share. Each part is one sub-command, in a file of its name. */
#ifndef WEIR_TOOLS_COMMAND_H
#define WEIR_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

struct wr_buffer;
struct wr_error;
struct wr_plugins;

/* How `weir` ends. */
enum { EXIT_GOOD = 0, EXIT_NEGATIVE = 1, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *arguments; /* behind the name, in the usage line */
    const char *summary;   /* one line */
    const char *help;      /* the rest, or "" */
    int (*run)(const struct command *command, int argc, char **argv);
};

extern const struct command command_bench_handler, command_check, command_emit, command_formats,
    command_handlers, command_journal, command_new_handler, command_schema, command_settings, command_spool,
    command_status, command_vet;

/* What a command that lists things was asked for. */
struct command_listing {
    const char *name; /* NULL: everything */
    bool json;
};

enum { COMMAND_GOES_ON = -1 };

/* Reads the arguments of such a command, which takes at most so many names. Answers COMMAND_GOES_ON, or how
 * `weir` ends. */
int command_read_listing(const struct command *command, int argc, char **argv, int most,
                         struct command_listing *listing);

/* The same for a command without options of its own; *name: NULL where none is given. */
int command_read_name(const struct command *command, int argc, char **argv, int most, const char **name);

/* Prints how a command is used. */
void command_print_help(const struct command *command, FILE *to);

/* Says that it was used wrongly; answers EXIT_USAGE. */
int command_refuse(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Only shows how it is used, on standard error: getopt has said already what is wrong. Answers EXIT_USAGE. */
int command_show_usage(const struct command *command);

/* Says what went wrong; answers EXIT_NEGATIVE. */
int command_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a buffer to standard output and empties it. false: there was no memory, or it could not be written. */
bool command_write(struct wr_buffer *buffer);

/* The handler types as a program would find them: by WEIR_PLUGIN_PATH, then in the plugin folder. They stay
 * loaded. */
struct wr_plugins *command_plugins(void);

#endif
