/* weir status: shows running programs. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/command.h"
#include "common/figures.h"
#include "common/http_client.h"
#include "common/json.h"
#include "common/live_table.h"
#include "status_collector.h"
#include "status_find.h"
#include "status_json.h"
#include "status_show.h"
#include "status_watch.h"
#include "text/buffer.h"
#include "text/common.h"

enum { OPTION_FOLDER = 256, OPTION_EVERY, OPTION_TOKEN_FILE, OPTION_WATCH };

struct request {
    struct status_search search; /* ctx: the request */
    struct wr_buffer out;
    struct json_object *array; /* of processes; NULL unless printing JSON */
    struct status_watch watch;
    bool json, is_watch;
    int64_t every_ns; /* 0: once */
    const char *url;  /* of a collector that is asked instead; NULL: none */
    const char *token_file;
};

/* ---- One snapshot ---------------------------------------------------------------------------- */

static void visit(void *ctx, const struct status_process *process)
{
    struct request *request = ctx;
    if (request->json) {
        status_json_add(request->array, process);
    } else if (request->is_watch) {
        status_watch_add(&request->watch, process);
    } else if (request->search.pid >= 0) {
        status_show(&request->out, process);
    } else {
        if (request->out.length == 0)
            status_show_head(&request->out);
        status_show_line(&request->out, process);
    }
}

/* Returns EXIT_FAILURE if standard output cannot be written. */
static int show(struct request *request, bool again)
{
    const struct figures_screen screen = figures_screen_of(STDOUT_FILENO);
    struct wr_buffer head = {0};
    if (request->json) {
        request->array = json_start_array();
        status_find(&request->search);
        return json_print(request->array, JSON_LINES, EXIT_SUCCESS);
    }
    status_find(&request->search);
    if (request->is_watch) {
        live_table_start(&request->out, &screen, again);
        status_watch_put(&request->out, &request->watch, &screen);
        return live_table_finish(&request->out, &screen);
    }
    /* on a terminal the screen is cleared each time: the lines do not erase what was there */
    if (request->every_ns && (screen.is_terminal || request->search.found))
        live_table_start(&head, &screen, again && !screen.is_terminal);
    return command_write(&head) ? command_finish(&request->out, EXIT_SUCCESS) : EXIT_FAILURE;
}

static int find_result(const struct request *request)
{
    if (request->search.unreadable)
        return EXIT_FAILURE;
    if (request->search.found)
        return EXIT_SUCCESS;
    if (request->search.pid < 0)
        return command_fail("no process found; programs are shown if their configuration has settings.status");
    return command_fail("process %" PRId64
                        " cannot be inspected: it is not running, has added no value that goes "
                        "to a handler, belongs to another user, or its configuration has no settings.status",
                        request->search.pid);
}

static int report_end(const struct request *request)
{
    command_fail("process %" PRId64 " has ended, or can no longer be inspected", request->search.pid);
    return EXIT_SUCCESS;
}

static int show_repeatedly(struct request *request)
{
    for (bool again = false;; again = true) {
        if (show(request, again) != EXIT_SUCCESS)
            return EXIT_FAILURE;
        if (!request->search.found && request->search.pid >= 0)
            return again ? report_end(request) : find_result(request);
        live_table_pause(request->every_ns);
    }
}

static int show_once(struct request *request)
{
    int result = show(request, false);
    return result == EXIT_SUCCESS ? find_result(request) : result;
}

/* ---- The command ----------------------------------------------------------------------------- */

static bool read_pid(const char *text, int64_t *pid)
{
    char *end;
    errno = 0;
    *pid = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *pid > 0;
}

/* What is shown: a process, a collector, or all processes. */
static int read_subject(const struct command *command, const char *text, struct request *request)
{
    if (text && http_client_is_url(text))
        request->url = text;
    else if (text && !read_pid(text, &request->search.pid))
        return command_refuse(command, "\"%s\" is not a process id, and no URL of a collector", text);
    if (request->url && request->search.folder)
        return command_refuse(command, "--folder is of the programs of this machine, not of a collector");
    if (request->token_file && !request->url)
        return command_refuse(command, "--token-file needs the URL of a collector");
    return COMMAND_CONTINUE;
}

static int read_options(const struct command *command, int argc, char **argv, struct request *request)
{
    static const struct option options[] = {{"folder", required_argument, NULL, OPTION_FOLDER},
                                            {"json", no_argument, NULL, 'j'},
                                            {"every", required_argument, NULL, OPTION_EVERY},
                                            {"token-file", required_argument, NULL, OPTION_TOKEN_FILE},
                                            {"watch", no_argument, NULL, OPTION_WATCH},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'h': return command_print_help(command, stdout);
        case 'j': request->json = true; break;
        case OPTION_FOLDER: request->search.folder = optarg; break;
        case OPTION_WATCH: request->is_watch = true; break;
        case OPTION_TOKEN_FILE: request->token_file = optarg; break;
        case OPTION_EVERY:
            if (command_read_every(command, optarg, 100, &request->every_ns) != COMMAND_CONTINUE)
                return EXIT_USAGE;
            break;
        default: return command_show_usage(command);
        }
    }
    if (argc - optind > 1)
        return command_refuse(command, "at most one PID or URL is allowed");
    if (request->is_watch && request->json)
        return command_refuse(command, "only one of --watch and --json is allowed");
    if (request->is_watch && !request->every_ns)
        request->every_ns = LIVE_TABLE_EVERY_S * WR_NS_PER_S;
    return read_subject(command, argv[optind], request);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.search = {.pid = -1, .visit = visit}};
    request.search.ctx = &request;
    int result = read_options(command, argc, argv, &request);
    if (result != COMMAND_CONTINUE)
        return result;
    if (request.url)
        return status_collector_show(
            &(struct status_collector){request.url, request.token_file, request.json, request.every_ns});
    return request.every_ns ? show_repeatedly(&request) : show_once(&request);
}

const struct command command_status = {
    .name = "status",
    .arguments = "[PID | URL] [--watch] [--every TIME] [--json] [--folder FOLDER] [--token-file FILE]",
    .summary = "Lists running programs, or shows the values and handlers of one of them, or of a collector.",
    .help =
        "\n      --watch          a table with a row for each handler, those that fail first, every 2s\n"
        "      --every TIME     repeat at this interval (like 1s), until the process ends\n"
        "      --json           as JSON: an array with an object for each process\n"
        "      --folder FOLDER  the folder of the programs' settings.status; default: those of \"auto\"\n"
        "      --token-file FILE  the token for the collector at URL; default: the one that a collector of "
        "this user\n"
        "                       has made, for a URL like http://127.0.0.1:8080\n"
        "  -h, --help           this text\n\n"
        "A program is shown if its configuration has settings.status, and once it has added a value that goes\n"
        "to a handler. Exit status 1: no process was found, or not all could be read.\n",
    .run = run,
};
