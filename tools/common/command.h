/* command: what the subcommands of `weir` share: their description, arguments, messages and exit codes. */
#ifndef WEIR_TOOLS_COMMAND_H
#define WEIR_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

struct wr_buffer;
struct wr_config;
struct wr_error;
struct wr_plugins;
struct wr_problems;

/* Exit codes: EXIT_SUCCESS (0), EXIT_FAILURE (1), and these. */
enum {
    EXIT_USAGE = 2,
    EXIT_NOT_RUN = 125 /* of a command that runs a program, whose exit codes are that program's, as of env(1) */
};

struct command {
    const char *name;
    const char *arguments;                                            /* follow the name in the usage line */
    const char *summary;                                              /* one line */
    const char *help;                                                 /* options and details, or "" */
    int (*run)(const struct command *command, int argc, char **argv); /* returns the exit code */
    bool runs_program; /* its first argument that is no option is a program, and the rest is that one's */
};

extern const struct command command_bench_handler, command_check, command_emit, command_formats,
    command_handlers, command_journal, command_new_handler, command_relay, command_run, command_schema,
    command_serve, command_settings, command_sources, command_spool, command_status, command_summary,
    command_top, command_vet;

/* ---- Arguments ------------------------------------------------------------------------------- */

struct command_listing {
    const char *name; /* NULL: everything */
    bool json;
};

/* Returned instead of an exit code if the arguments are valid and ask for more than the help. */
enum { COMMAND_CONTINUE = -1 };

/* Parses --json, --help and at most `max_names` names. Returns COMMAND_CONTINUE or the exit code. */
int command_read_listing(const struct command *command, int argc, char **argv, int max_names,
                         struct command_listing *listing);

/* Parses --help and at most `max_names` names. *name is NULL if there is none. */
int command_read_name(const struct command *command, int argc, char **argv, int max_names, const char **name);

/* Parses the argument of --every: from least_ms to a day. Returns COMMAND_CONTINUE or the exit code. */
int command_read_every(const struct command *command, const char *text, int least_ms, int64_t *every_ns);

/* Reads the configuration `file`, or that of WEIR_CONFIG if file is NULL. problems: as for wr_config_read_all;
 * NULL: the first error ends it. Returns NULL with *error set, unless that is in the problems. */
struct wr_config *command_read_config(const char *file, struct wr_problems *problems, struct wr_error *error);

/* The handler types of WEIR_PLUGIN_PATH and of the plugin folder, as a program finds them. Never freed. */
struct wr_plugins *command_plugins(void);

/* Reads the counters of the source with an index. Returns false if there are not that many. */
bool command_read_source(size_t index, weir_source_stats *stats);

/* ---- Output ---------------------------------------------------------------------------------- */

/* Prints how the subcommand is used. Returns EXIT_SUCCESS. */
int command_print_help(const struct command *command, FILE *to);

/* Prints a message and the usage line to stderr. Returns EXIT_USAGE. */
int command_refuse(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the usage line to stderr, after getopt's own message. Returns EXIT_USAGE. */
int command_show_usage(const struct command *command);

/* Prints a message to stderr. Returns EXIT_FAILURE. As with command_refuse, control characters and others that
 * change how a terminal displays text are escaped. */
int command_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

_Noreturn void command_out_of_memory(void);

/* Returns the memory. Ends the program if it is NULL, since there is none. */
static inline void *command_must(void *memory)
{
    if (!memory)
        command_out_of_memory();
    return memory;
}

/* The same for wr_buffer_text and wr_buffer_take. */
const char *command_text(struct wr_buffer *buffer);
char *command_take(struct wr_buffer *buffer);

/* Prints and frees the text. Ends the program if memory ran out while it was made. */
void command_print_buffer(struct wr_buffer *text, FILE *to);

/* Returns FOLDER/NAME; the caller frees. Ends the program if there is no memory. */
char *command_join(const char *folder, const char *name);

/* Whether a text of that length has this ending, and something before it. */
bool command_has_ending(const char *text, size_t length, const char *ending);

/* Appends text from outside the command, such as a name or a path, escaped for a terminal: control and
 * formatting characters, and bytes that are not UTF-8. */
void command_put_text(struct wr_buffer *out, const char *text);

/* Appends the same, padded with blanks to `width` columns. */
void command_put_padded(struct wr_buffer *out, const char *text, size_t width);

/* Writes the buffer to stdout and empties it. Returns false after printing why it failed. */
bool command_write(struct wr_buffer *buffer);

/* The same. Returns `result`, or EXIT_FAILURE if writing failed. */
int command_finish(struct wr_buffer *buffer, int result);

#endif
