/* weir relay: a service that reads values from the sources of a configuration and delivers them. */

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "common/configure.h"
#include "common/service.h"
#include "config/config_read.h"
#include "text/buffer.h"

#define DEFAULT_CONFIG "/etc/weir/relay.json"

#define STATSD_ADDRESS "127.0.0.1:8125"

enum { OPTION_EVERY = 256, OPTION_STRICT, OPTION_STATSD };

struct request {
    const char *config; /* NULL: not given */
    bool is_statsd;
    const char *address; /* of is_statsd */
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
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "c:vh", options, NULL)) != -1;) {
        switch (option) {
        case 'c': request->config = optarg; break;
        case 'v': service->is_verbose = true; break;
        case OPTION_STATSD: request->is_statsd = true; break;
        case OPTION_STRICT: service->is_strict = true; break;
        case OPTION_EVERY:
            if (!service_set_every(service, optarg))
                return command_refuse(command, "--every: \"%s\" is not a duration from 100ms to 1d", optarg);
            break;
        case 'h': return command_print_help(command, stdout);
        default: return command_show_usage(command);
        }
    }
    if (request->is_statsd && optind < argc)
        request->address = argv[optind++];
    if (optind < argc)
        return command_refuse(command, "no %sarguments are allowed: \"%s\"",
                              request->is_statsd ? "further " : "", argv[optind]);
    if (request->is_statsd && request->config)
        return command_refuse(command, "only one of -c and --statsd is allowed");
    return COMMAND_CONTINUE;
}

/* ---- StatsD without a configuration ---------------------------------------------------------- */

static void put_address(struct wr_buffer *out, const char *before, const char *scheme, const char *address)
{
    struct wr_buffer text = {0};
    wr_buffer_put_format(&text, "%s%s", scheme, address);
    const char *joined = wr_buffer_text(&text);
    wr_buffer_put_text(out, before);
    configure_put_text(out, joined ? joined : "");
    wr_buffer_fini(&text);
}

/* An address without a scheme is one of UDP and of TCP. Members of sets are printed as they come. */
static bool configure_statsd(const char *address)
{
    struct wr_buffer out = {0};
    bool has_scheme = strstr(address, "://") || strncmp(address, "unix-dgram:", strlen("unix-dgram:")) == 0;
    wr_buffer_put_text(&out,
                       "{\"handlers\": {\"screen\": {\"type\": \"console\", \"linger\": \"0s\"}},\n"
                       "\"groups\": {\"*\": \"screen\"},\n\"sources\": {\"statsd\": {\"type\": \"statsd\", "
                       "\"set_interval\": \"0s\", \"listen\": [");
    put_address(&out, "", has_scheme ? "" : "udp://", address);
    if (!has_scheme)
        put_address(&out, ", ", "tcp://", address);
    wr_buffer_put_text(&out, "]}}}\n");
    const char *text = command_text(&out);
    bool is_done = configure_text(text);
    wr_buffer_fini(&out);
    return is_done;
}

static bool configure(const struct request *request, const char *file)
{
    return request->is_statsd ? configure_statsd(request->address) : configure_from(file);
}

/* ---- Running --------------------------------------------------------------------------------- */

static int run(const struct command *command, int argc, char **argv)
{
    static struct service service;
    struct request request = {.address = STATSD_ADDRESS};
    int result = read_arguments(command, &service, &request, argc, argv);
    if (result != COMMAND_CONTINUE)
        return result;
    const char *file = request.config ? request.config : wr_config_has_variable() ? NULL : DEFAULT_CONFIG;
    const char *name = request.is_statsd ? "--statsd" : file ? file : "WEIR_CONFIG";
    if (!service_open(&service) || !configure(&request, file) || !service_start(name))
        return EXIT_FAILURE;
    return service_run(&service);
}

const struct command command_relay = {
    .name = "relay",
    .arguments = "[-c FILE | --statsd [ADDRESS]] [-v] [--strict] [--every TIME]",
    .summary = "Reads values from the sources of a configuration and delivers them, as a service.",
    .help = "\n  -c, --config FILE  the configuration; default: WEIR_CONFIG, else " DEFAULT_CONFIG "\n"
            "      --statsd       no configuration: prints what comes by StatsD at ADDRESS, by default\n"
            "                     " STATSD_ADDRESS " by UDP and TCP\n"
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
