/* weir relay: a service that reads values from the sources of a configuration and delivers them. */

#include <getopt.h>
#include <stdlib.h>

#include "common/command.h"
#include "common/configure.h"
#include "common/service.h"
#include "config/config_read.h"
#include "relay/statsd_config.h"

#define DEFAULT_CONFIG "/etc/weir/relay.json"

enum { OPTION_EVERY = 256, OPTION_STRICT, OPTION_STATSD, OPTION_INSECURE };

struct request {
    const char *config; /* NULL: not given */
    bool is_statsd;
    struct statsd_config statsd; /* of is_statsd */
};

/* ---- Arguments ------------------------------------------------------------------------------- */

static int read_arguments(const struct command *command, struct service *service, struct request *request,
                          int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"every", required_argument, NULL, OPTION_EVERY},
                                            {"statsd", no_argument, NULL, OPTION_STATSD},
                                            {"strict", no_argument, NULL, OPTION_STRICT},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"insecure", no_argument, NULL, OPTION_INSECURE},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "c:vh", options, NULL)) != -1;) {
        switch (option) {
        case 'c': request->config = optarg; break;
        case 'v': service->is_verbose = true; break;
        case OPTION_STATSD: request->is_statsd = true; break;
        case OPTION_INSECURE: request->statsd.is_insecure = true; break;
        case OPTION_STRICT: service->is_strict = true; break;
        case OPTION_EVERY:
            service->is_verbose = true;
            if (command_read_every(command, optarg, 100, &service->every_ns) != COMMAND_CONTINUE)
                return EXIT_USAGE;
            break;
        case 'h': return command_print_help(command, stdout);
        default: return command_show_usage(command);
        }
    }
    if (request->is_statsd && optind < argc)
        request->statsd.address = argv[optind++];
    if (optind < argc)
        return command_refuse(command, "no %sarguments are allowed: \"%s\"",
                              request->is_statsd ? "further " : "", argv[optind]);
    if (request->is_statsd && request->config)
        return command_refuse(command, "only one of -c and --statsd is allowed");
    if (request->statsd.is_insecure && !request->is_statsd)
        return command_refuse(command, "--insecure is allowed only with --statsd");
    return COMMAND_CONTINUE;
}

/* ---- Configuration --------------------------------------------------------------------------- */

/* Returns COMMAND_CONTINUE or the exit code. */
static int configure_statsd(const struct command *command, const struct request *request)
{
    char *text = NULL;
    int result = statsd_config_make(&request->statsd, command, &text);
    if (result == COMMAND_CONTINUE && !configure_text(text))
        result = EXIT_FAILURE;
    free(text);
    return result;
}

static int configure(const struct command *command, const struct request *request, const char *file)
{
    if (request->is_statsd)
        return configure_statsd(command, request);
    return configure_from(file) ? COMMAND_CONTINUE : EXIT_FAILURE;
}

/* ---- Running --------------------------------------------------------------------------------- */

static int run(const struct command *command, int argc, char **argv)
{
    static struct service service;
    struct request request = {.statsd.address = STATSD_ADDRESS};
    int result = read_arguments(command, &service, &request, argc, argv);
    if (result != COMMAND_CONTINUE)
        return result;
    const char *file = request.config;
    if (!file && !wr_config_has_variable("WEIR_CONFIG"))
        file = DEFAULT_CONFIG;
    const char *name = request.is_statsd ? "--statsd" : file ? file : "WEIR_CONFIG";
    if (!service_open(&service))
        return EXIT_FAILURE;
    result = configure(command, &request, file);
    if (result != COMMAND_CONTINUE)
        return result;
    return service_start(name) ? service_run(&service) : EXIT_FAILURE;
}

const struct command command_relay = {
    .name = "relay",
    .arguments = "[-c FILE | --statsd [ADDRESS] [--insecure]] [-v] [--strict] [--every TIME]",
    .summary = "Reads values from the sources of a configuration and delivers them, as a service.",
    .help = "\n  -c, --config FILE  the configuration; default: WEIR_CONFIG, else " DEFAULT_CONFIG "\n"
            "      --statsd       no configuration: prints what comes by StatsD at ADDRESS, by default\n"
            "                     " STATSD_ADDRESS " by UDP and TCP; a port alone is one of loopback\n"
            "      --insecure     ADDRESS may be one that other machines reach, like 0.0.0.0:" STATSD_PORT "\n"
            "  -v, --verbose      prints what was read and delivered: after a reload and at the end\n"
            "      --strict       what a source refuses or loses is a failure\n"
            "      --every TIME   also at this interval, from 100ms to 1d\n"
            "  -h, --help         this text\n\n"
            "Runs until SIGTERM or SIGINT, or until all sources have ended; then it delivers what is queued,\n"
            "within settings.shutdown_timeout. A second signal, a second or more later, ends it at once.\n"
            "SIGHUP reloads the configuration; one that is invalid is logged, and the present one stays.\n"
            "State is reported to NOTIFY_SOCKET, for systemd. Exit status 1: the configuration is invalid,\n"
            "values were dropped or not delivered, or a source has failed; with --strict also, if a source\n"
            "has refused or lost anything.\n",
    .run = run,
};
