/* weir: the command. Runs the subcommand that its first argument names. */

#include <string.h>

#include <weir/version.h>

#include "common/command.h"
#include "text/common.h"
#include "text/suggest.h"
#include "text/utf8.h"

static const struct command command_help;

/* In the order of the help text. */
static const struct {
    const char *title;
    const struct command *commands[11]; /* ends with NULL */
} sections[] = {
    {"Everyday commands",
     {&command_run, &command_check, &command_emit, &command_handlers, &command_sources, &command_formats,
      &command_settings, &command_schema, &command_summary, &command_help}},
    {"Operating",
     {&command_serve, &command_relay, &command_status, &command_top, &command_spool, &command_journal}},
    {"Writing plugins", {&command_new_handler, &command_vet, &command_bench_handler}},
};

/* Command number i of all sections; NULL after the last. */
static const struct command *command_at(size_t i)
{
    for (size_t s = 0; s < WR_COUNT_OF(sections); s++)
        for (const struct command *const *command = sections[s].commands; *command; command++)
            if (i-- == 0)
                return *command;
    return NULL;
}

static const struct command *find(const char *name)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++)
        if (strcmp(command->name, name) == 0)
            break;
    return command;
}

static void print_help(FILE *to)
{
    fputs("usage: weir COMMAND [ARGUMENT ...]\n", to);
    for (size_t s = 0; s < WR_COUNT_OF(sections); s++) {
        fprintf(to, "\n%s:\n", sections[s].title);
        for (const struct command *const *command = sections[s].commands; *command; command++)
            fprintf(to, "  %-14s %s\n", (*command)->name, (*command)->summary);
    }
    fputs("\nOptions:\n      --version  the version of weir\n  -h, --help     this text\n\n"
          "`weir COMMAND --help` shows the options of a command.\n"
          "Exit status: 0 success, 1 failure, 2 usage error.\n",
          to);
}

static int refuse_name(const char *name)
{
    const struct command *command;
    struct wr_suggest suggest;
    char nearest[100];
    wr_suggest_init(&suggest, name);
    for (size_t i = 0; (command = command_at(i)); i++)
        wr_suggest_try(&suggest, command->name);
    command_fail("unknown command \"%s\"%s", name, wr_suggest_text(&suggest, nearest, sizeof nearest));
    print_help(stderr);
    return EXIT_USAGE;
}

/* ---- help ------------------------------------------------------------------------------------ */

static int run_help(const struct command *command, int argc, char **argv)
{
    const char *name;
    int result = command_read_name(command, argc, argv, 1, &name);
    if (result != COMMAND_CONTINUE)
        return result;
    const struct command *found = name ? find(name) : NULL;
    if (name && !found)
        return refuse_name(name);
    if (found)
        command_print_help(found, stdout);
    else
        print_help(stdout);
    return EXIT_SUCCESS;
}

static const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "Lists the commands, or shows the usage of one of them.",
    .help = "\n  -h, --help  this text\n",
    .run = run_help,
};

/* ---- main ------------------------------------------------------------------------------------ */

/* getopt quotes options as they are. Returns the number of the first one that must not reach a terminal; 0:
 * there is none. */
static int find_raw_option(const struct command *command, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (command->runs_program && (argv[i][0] != '-' || strcmp(argv[i], "--") == 0))
            break;
        size_t length = strlen(argv[i]);
        for (size_t at = 0; argv[i][0] == '-' && at < length;) {
            uint32_t c;
            unsigned bytes = wr_utf8_decode(argv[i] + at, length - at, &c);
            if (!bytes || (wr_utf8_is_disguise(c) && c != '\n' && c != '\t'))
                return i;
            at += bytes;
        }
    }
    return 0;
}

/* getopt's messages begin with argv[0]. */
static int run(const struct command *command, int argc, char **argv)
{
    static char full_name[40];
    snprintf(full_name, sizeof full_name, "weir %s", command->name);
    argv[0] = full_name;
    int raw = find_raw_option(command, argc, argv);
    if (raw) {
        command_refuse(command, "\"%s\": an option must be UTF-8 without control characters", argv[raw]);
        return command->runs_program ? EXIT_NOT_RUN : EXIT_USAGE;
    }
    return command->run(command, argc, argv);
}

/* What was not printed is a failure, if the command has not reported it itself. */
static int finish(int result)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || result != EXIT_SUCCESS)
        return result;
    return command_fail("standard output cannot be written");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(stdout);
        return finish(EXIT_SUCCESS);
    }
    if (strcmp(name, "--version") == 0) {
        printf("weir %s\n", WEIR_VERSION);
        return finish(EXIT_SUCCESS);
    }
    if (!*name) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const struct command *command = find(name);
    return command ? finish(run(command, argc - 1, argv + 1)) : refuse_name(name);
}
