/* weir serve: the collector: sources, a store, and an HTTP server over it. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../plugins/listening/access_files.h"
#include "common/command.h"
#include "common/configure.h"
#include "common/service.h"
#include "serve_config.h"

enum {
    OPTION_LISTEN = 256,
    OPTION_ANYWHERE,
    OPTION_TOKEN_FILE,
    OPTION_STORE,
    OPTION_STATE,
    OPTION_HTTP,
    OPTION_FORWARD,
    OPTION_FORWARD_GROUP,
    OPTION_STATSD,
    OPTION_FIFO,
    OPTION_URL,
    OPTION_EVERY
};

struct request {
    struct serve_config config;
    const char *file;
    bool has_option; /* one that a file replaces */
    bool wants_url;
    char *access;
};

/* ---- Arguments ------------------------------------------------------------------------------- */

static int check(const struct command *command, const struct request *request)
{
    const struct serve_config *config = &request->config;
    if (config->anywhere && config->listen)
        return command_refuse(command, "only one of --listen and --listen-anywhere is allowed");
    if (config->anywhere && !config->token_file)
        return command_refuse(command, "--listen-anywhere needs --token-file: others must not see all values");
    if (request->file && request->has_option)
        return command_refuse(command,
                              "with -c the file has the addresses and paths; allowed: --state, --every, -v");
    return COMMAND_CONTINUE;
}

/* Returns false if the option is none of these. */
static bool take_option(struct request *request, int option)
{
    struct serve_config *config = &request->config;
    request->has_option |= option != OPTION_STATE && option != OPTION_URL;
    switch (option) {
    case OPTION_LISTEN: config->listen = optarg; break;
    case OPTION_ANYWHERE: config->anywhere = optarg; break;
    case OPTION_TOKEN_FILE: config->token_file = optarg; break;
    case OPTION_STORE: config->store = optarg; break;
    case OPTION_STATE: config->state = optarg; break;
    case OPTION_HTTP: config->http = optarg; break;
    case OPTION_FORWARD: config->forward = optarg; break;
    case OPTION_FORWARD_GROUP: config->group = optarg; break;
    case OPTION_STATSD: config->has_statsd = true; break;
    case OPTION_FIFO: config->fifo = optarg; break;
    case OPTION_URL: request->wants_url = true; break;
    default: return false;
    }
    return true;
}

static int read_arguments(const struct command *command, struct request *request, struct service *service,
                          int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"listen", required_argument, NULL, OPTION_LISTEN},
                                            {"listen-anywhere", required_argument, NULL, OPTION_ANYWHERE},
                                            {"token-file", required_argument, NULL, OPTION_TOKEN_FILE},
                                            {"store", required_argument, NULL, OPTION_STORE},
                                            {"state", required_argument, NULL, OPTION_STATE},
                                            {"http", required_argument, NULL, OPTION_HTTP},
                                            {"forward", required_argument, NULL, OPTION_FORWARD},
                                            {"forward-group", required_argument, NULL, OPTION_FORWARD_GROUP},
                                            {"statsd", no_argument, NULL, OPTION_STATSD},
                                            {"fifo", required_argument, NULL, OPTION_FIFO},
                                            {"url", no_argument, NULL, OPTION_URL},
                                            {"every", required_argument, NULL, OPTION_EVERY},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "c:vh", options, NULL)) != -1;) {
        switch (option) {
        case 'c': request->file = optarg; break;
        case 'v': service->is_verbose = true; break;
        case OPTION_EVERY:
            service->is_verbose = true;
            if (command_read_every(command, optarg, 100, &service->every_ns) != COMMAND_CONTINUE)
                return EXIT_USAGE;
            break;
        case 'h': return command_print_help(command, stdout);
        default:
            if (!take_option(request, option))
                return command_show_usage(command);
        }
    }
    if (optind < argc)
        return command_refuse(command, "no arguments are allowed: \"%s\"", argv[optind]);
    return check(command, request);
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* Returns false after printing why. */
static bool print_url(const char *access)
{
    char url[ACCESS_URL_ROOM], ticket[ACCESS_TICKET_ROOM];
    int problem = access_files_read_url(access, url);
    if (problem) {
        command_fail("%s/url: %s; no collector runs that has this folder; another folder: --state FOLDER",
                     access, strerror(problem));
        return false;
    }
    problem = access_files_make_ticket(access, ACCESS_ONCE, ticket);
    if (problem)
        command_fail("%s: %s", access, strerror(problem));
    else
        printf("%s/session/%s\n", url, ticket);
    return !problem;
}

static bool is_collector(const weir_source_stats *stats)
{
    return strcmp(stats->type, "collector") == 0;
}

/* Once the collector listens, there is a URL to open. */
static bool greet(void *ctx)
{
    const struct request *request = ctx;
    weir_source_stats stats;
    bool is_running = false;
    for (size_t i = 0; command_read_source(i, &stats); i++)
        is_running |= is_collector(&stats) && stats.state == WEIR_SOURCE_RUNNING;
    if (!is_running)
        return false;
    printf("Open this URL; it is valid once, for ten minutes (a new one: weir serve --url):\n\n    ");
    print_url(request->access);
    printf("\nRun a program whose values are shown there:\n\n"
           "    WEIR_CONFIG='{\"groups\":{\"*\":\"forward\"}}' ./your_program\n\n");
    fflush(stdout);
    return true;
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool configure(struct request *request)
{
    if (request->file)
        return configure_from(request->file);
    char *text = serve_config_make(&request->config);
    bool is_done = text && configure_text(text);
    free(text);
    return is_done;
}

static bool has_collector(const struct request *request)
{
    weir_source_stats stats;
    for (size_t i = 0; command_read_source(i, &stats); i++)
        if (is_collector(&stats))
            return true;
    command_fail("%s: the configuration has no source of type collector; without one, use `weir relay`",
                 request->file);
    return false;
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct request request;
    static struct service service = {.tend = greet, .ctx = &request};
    int result = read_arguments(command, &request, &service, argc, argv);
    if (result != COMMAND_CONTINUE)
        return result;
    request.access = serve_config_access(request.config.state);
    if (!request.access)
        return EXIT_FAILURE;
    if (request.wants_url)
        return print_url(request.access) ? EXIT_SUCCESS : EXIT_FAILURE;
    if (!service_open(&service) || !configure(&request) ||
        !service_start(request.file ? request.file : "weir serve") || !has_collector(&request))
        return EXIT_FAILURE;
    return service_run(&service);
}

const struct command command_serve = {
    .name = "serve",
    .arguments = "[-c FILE] [--listen ADDRESS] [--listen-anywhere ADDRESS --token-file FILE] [--store FILE] "
                 "[--state FOLDER] [--http ADDRESS] [--forward FILE] [--forward-group GROUP] [--statsd] "
                 "[--fifo FILE] [--url] [-v] "
                 "[--every TIME]",
    .summary = "Collects values in a file and shows them in a browser, as a service.",
    .help = "\n  -c, --config FILE      a configuration with a source collector; without it, one is made of "
            "these:\n"
            "      --listen ADDRESS   pages and API, on this machine; default: 127.0.0.1:8080\n"
            "      --listen-anywhere ADDRESS  the same for other machines, which need the token\n"
            "      --token-file FILE  a file with a token; only its owner may read it\n"
            "      --store FILE       the database; default: weir.db in the folder\n"
            "      --state FOLDER     the folder; default: $STATE_DIRECTORY, else $XDG_STATE_HOME/weir, else\n"
            "                         ~/.local/state/weir\n"
            "      --http ADDRESS     values by HTTP; \"off\": not; default: 127.0.0.1:9465\n"
            "      --forward FILE     values of the handler forward, by a Unix socket; \"off\": not; default:\n"
            "                         $XDG_RUNTIME_DIR/weir/forward.sock, else /run/weir/forward.sock\n"
            "      --forward-group GROUP  its members may send there, too; default: this user and root only\n"
            "      --statsd           values by StatsD, at 127.0.0.1:8125\n"
            "      --fifo FILE        lines from a named pipe\n"
            "      --url              prints a new URL of the running collector, and ends\n"
            "  -v, --verbose          prints what was read and delivered: after a reload and at the end\n"
            "      --every TIME       also at this interval, from 100ms to 1d\n"
            "  -h, --help             this text\n\n"
            "Prints a URL to open in a browser, which is valid once. Runs until SIGTERM or SIGINT; then it "
            "delivers\n"
            "what is queued. SIGHUP reloads the configuration. State is reported to NOTIFY_SOCKET, for "
            "systemd. Exit\n"
            "status 1: an address is in use, the configuration is invalid, or values were dropped or not "
            "delivered.\n",
    .run = run,
};
