/* weir: the command: looks at configurations and handler types, and adds values from shell scripts. */

#include <string.h>

#include <weir/version.h>

#include "common/command.h"
#include "text/common.h"
#include "text/suggest.h"

static const struct command command_help;

static const struct command *const commands[] = {
    &command_check,  &command_emit,          &command_handlers, &command_formats, &command_settings,
    &command_schema, &command_spool,         &command_journal,  &command_status,  &command_new_handler,
    &command_vet,    &command_bench_handler, &command_help,
};

static void print_help(FILE *to)
{
    fputs("usage: weir COMMAND [ARGUMENT ...]\n\n", to);
    for (size_t i = 0; i < WR_COUNT_OF(commands); i++)
        fprintf(to, "  %-14s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n      --version  which version this is\n  -h, --help     this text\n", to);
    fputs("\n`weir COMMAND --help` tells more. Exit status: 0 good, 1 not so good, 2 used wrongly.\n", to);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < WR_COUNT_OF(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int refuse(const char *name)
{
    struct wr_suggest suggest;
    char nearest[100];
    wr_suggest_init(&suggest, name);
    for (size_t i = 0; i < WR_COUNT_OF(commands); i++)
        wr_suggest_try(&suggest, commands[i]->name);
    fprintf(stderr, "weir: there is no command \"%s\"%s\n", name,
            wr_suggest_words(&suggest, nearest, sizeof nearest));
    print_help(stderr);
    return EXIT_USAGE;
}

/* ---- help ------------------------------------------------------------------------------------ */

static int run_help(const struct command *command, int argc, char **argv)
{
    const char *name;
    int result = command_read_name(command, argc, argv, 1, &name);
    if (result != COMMAND_GOES_ON)
        return result;
    const struct command *about = name ? find(name) : NULL;
    if (name && !about)
        return refuse(name);
    if (about)
        command_print_help(about, stdout);
    else
        print_help(stdout);
    return EXIT_GOOD;
}

static const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "Shows which commands there are, or how one of them is used.",
    .help = "\n  -h, --help  this text\n",
    .run = run_help,
};

/* ---- All of them ----------------------------------------------------------------------------- */

/* What getopt says of a wrong option begins with argv[0]. */
static int run(const struct command *command, int argc, char **argv)
{
    static char full_name[40];
    snprintf(full_name, sizeof full_name, "weir %s", command->name);
    argv[0] = full_name;
    return command->run(command, argc, argv);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(stdout);
        return EXIT_GOOD;
    }
    if (strcmp(name, "--version") == 0) {
        printf("weir %s\n", WEIR_VERSION);
        return EXIT_GOOD;
    }
    if (!*name) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const struct command *command = find(name);
    return command ? run(command, argc - 1, argv + 1) : refuse(name);
}
