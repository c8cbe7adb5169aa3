/* weir relay: a service that reads values from the sources of a configuration and delivers them. */

#include <getopt.h>
#include <stdlib.h>

#include "common/command.h"
#include "common/configure.h"
#include "common/service.h"
#include "config/parse.h"

#define DEFAULT_CONFIG "/etc/weir/relay.json"

enum { OPTION_EVERY = 256, OPTION_STRICT };

/* Sets *config to the option's file; leaves it if there is none. */
static int parse(const struct command *command, struct service *service, const char **config, int argc,
                 char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"every", required_argument, NULL, OPTION_EVERY},
                                            {"strict", no_argument, NULL, OPTION_STRICT},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "c:vh", options, NULL)) != -1;) {
        switch (option) {
        case 'c': *config = optarg; break;
        case 'v': service->is_verbose = true; break;
        case OPTION_STRICT: service->is_strict = true; break;
        case OPTION_EVERY:
            if (!service_set_every(service, optarg))
                return command_refuse(command, "--every: \"%s\" is not a duration from 100ms to 1d", optarg);
            break;
        case 'h': command_print_help(command, stdout); return EXIT_SUCCESS;
        default: return command_show_usage(command);
        }
    }
    if (optind < argc)
        return command_refuse(command, "no arguments are allowed: \"%s\"", argv[optind]);
    return COMMAND_CONTINUE;
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct service service;
    const char *config = NULL;
    int result = parse(command, &service, &config, argc, argv);
    if (result != COMMAND_CONTINUE)
        return result;
    const char *file = config ? config : wr_parse_has_variable() ? NULL : DEFAULT_CONFIG;
    if (!service_open(&service) || !configure_from(file) || !service_start(file ? file : "WEIR_CONFIG"))
        return EXIT_FAILURE;
    return service_run(&service);
}

const struct command command_relay = {
    .name = "relay",
    .arguments = "[-c FILE] [-v] [--strict] [--every TIME]",
    .summary = "Reads values from the sources of a configuration and delivers them, as a service.",
    .help = "\n  -c, --config FILE  the configuration; default: WEIR_CONFIG, else " DEFAULT_CONFIG "\n"
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
