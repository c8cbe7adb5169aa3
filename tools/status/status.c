/* weir status: looks into running programs. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "text/buffer.h"
#include "common/command.h"
#include "text/common.h"
#include "status_find.h"
#include "status_json.h"
#include "status_show.h"

enum { OPTION_FOLDER = 256, LONGEST_WAIT_S = 86400 };

/* What was asked for. */
struct asked {
    struct status_search search;
    struct wr_buffer out;
    bool json, watch;
    double seconds; /* between two looks */
};

/* ---- One look -------------------------------------------------------------------------------- */

static void visit(void *ctx, const struct status_process *process)
{
    struct asked *asked = ctx;
    bool first = asked->out.length == 0;
    if (asked->json) {
        wr_buffer_put_text(&asked->out, first ? "[" : ",\n ");
        status_json_put(&asked->out, process);
    } else if (asked->search.pid >= 0) {
        status_show(&asked->out, process);
    } else {
        if (first)
            status_show_head(&asked->out);
        status_show_line(&asked->out, process);
    }
}

static bool look(struct asked *asked, bool again)
{
    bool on_screen = asked->watch && !asked->json && isatty(STDOUT_FILENO);
    status_find(&asked->search);
    if (asked->json)
        wr_buffer_put_text(&asked->out, asked->search.found ? "]\n" : "[]\n");
    if (on_screen) /* from the top, and what was below is gone */
        fputs("\033[H\033[J", stdout);
    else if (again && asked->search.found && !asked->json)
        putchar('\n');
    return command_write(&asked->out);
}

static int judge(const struct asked *asked)
{
    if (asked->search.found)
        return asked->search.unreadable ? EXIT_NEGATIVE : EXIT_GOOD;
    if (asked->search.unreadable)
        return EXIT_NEGATIVE;
    if (asked->search.pid < 0)
        return command_fail("there is no process to look into; settings.status allows it");
    return command_fail("process %" PRId64
                        " cannot be looked into: it does not run, has added no value that goes "
                        "to a handler, is another user's, or its configuration has no settings.status",
                        asked->search.pid);
}

static int say_end(const struct asked *asked)
{
    fprintf(stderr, "weir: process %" PRId64 " has ended, or cannot be looked into any more\n",
            asked->search.pid);
    return EXIT_GOOD;
}

static int look_again_and_again(struct asked *asked)
{
    struct timespec pause = {(time_t)asked->seconds, 0};
    pause.tv_nsec = (long)((asked->seconds - (double)pause.tv_sec) * 1e9);
    for (bool before = false;; before = true) {
        if (!look(asked, before))
            return command_fail("standard output cannot be written");
        if (!asked->search.found && asked->search.pid >= 0)
            return before ? say_end(asked) : judge(asked);
        nanosleep(&pause, NULL);
    }
}

static int look_once(struct asked *asked)
{
    return look(asked, false) ? judge(asked) : command_fail("standard output cannot be written");
}

/* ---- The command ----------------------------------------------------------------------------- */

static bool read_seconds(const char *text, double *seconds)
{
    char *end;
    *seconds = strtod(text, &end);
    return end != text && !*end && *seconds >= 0.1 && *seconds <= LONGEST_WAIT_S;
}

static bool read_pid(const char *text, int64_t *pid)
{
    char *end;
    errno = 0;
    *pid = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *pid > 0;
}

static int read_options(const struct command *command, int argc, char **argv, struct asked *asked)
{
    static const struct option options[] = {{"folder", required_argument, NULL, OPTION_FOLDER},
                                            {"json", no_argument, NULL, 'j'},
                                            {"watch", optional_argument, NULL, 'w'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "hw::", options, NULL)) != -1;) {
        switch (option) {
        case 'h': command_print_help(command, stdout); return EXIT_GOOD;
        case 'j': asked->json = true; break;
        case OPTION_FOLDER: asked->search.folder = optarg; break;
        case 'w':
            asked->watch = true;
            if (optarg && !read_seconds(optarg, &asked->seconds))
                return command_refuse(command, "\"%s\" is no number of seconds from 0.1 to %d", optarg,
                                      LONGEST_WAIT_S);
            break;
        default: return command_show_usage(command);
        }
    }
    if (argc - optind > 1)
        return command_refuse(command, "one PID at most");
    if (argv[optind] && !read_pid(argv[optind], &asked->search.pid))
        return command_refuse(command, "\"%s\" is not the number of a process", argv[optind]);
    return COMMAND_GOES_ON;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct asked asked = {.search = {.pid = -1, .visit = visit}, .seconds = 1};
    asked.search.ctx = &asked;
    int result = read_options(command, argc, argv, &asked);
    if (result != COMMAND_GOES_ON)
        return result;
    return asked.watch ? look_again_and_again(&asked) : look_once(&asked);
}

const struct command command_status = {
    .name = "status",
    .arguments = "[PID] [--watch[=SECONDS]] [--json] [--folder FOLDER]",
    .summary = "Shows how a running program's values and handlers are doing; without PID: which there are.",
    .help =
        "\n  -w, --watch[=SECONDS]  again and again (every second), until the process ends\n"
        "      --json             as JSON: an array with an object for each process\n"
        "      --folder FOLDER    the folder of the programs' settings.status; else those of \"auto\"\n"
        "  -h, --help             this text\n\n"
        "Programs can be looked into whose configuration has settings.status, from the first value that goes\n"
        "to a handler on. Exit status 1: there is none, or not all could be read.\n",
    .run = run,
};
