/* weir emit: adds values from a shell script. */

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "command.h"
#include "engine.h"
#include "number.h"
#include "runtime.h"
#include "selfmetrics.h"
#include "units.h"

enum { MOST_LABELS = 64, MOST_VALUES = 1000 };

struct request {
    const char *config, *group;
    weir_label labels[MOST_LABELS];
    size_t label_count;
    weir_value values[MOST_VALUES];
    size_t value_count;
    int64_t timeout_ns;
    bool verbose;
};

/* Cuts KEY=VALUE in two; NULL: there is no '=', or nothing before it. */
static char *cut(char *text, char separator)
{
    char *at = strrchr(text, separator);
    if (!at || at == text)
        return NULL;
    *at = '\0';
    return at + 1;
}

static int add_label(const struct command *command, struct request *request, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return command_refuse(command, "\"%s\" is not a label; it looks like key=value", text);
    if (request->label_count == MOST_LABELS)
        return command_refuse(command, "at most %d labels", MOST_LABELS);
    *equals = '\0';
    request->labels[request->label_count++] = (weir_label){text, equals + 1};
    return 0;
}

static int add_value(const struct command *command, struct request *request, char *text)
{
    char *number = cut(text, '=');
    weir_value *value = &request->values[request->value_count];
    if (!number)
        return command_refuse(command, "\"%s\" is not a value; it looks like name=12.5", text);
    if (request->value_count == MOST_VALUES)
        return command_refuse(command, "at most %d values", MOST_VALUES);
    value->name = text;
    if (!wr_number_parse_double(number, &value->value))
        return command_refuse(command, "%s: \"%s\" is not a number", text, number);
    request->value_count++;
    return 0;
}

/* ---- What became of it ----------------------------------------------------------------------- */

static void print_drops(const weir_handler_stats *stats)
{
    for (int i = 0; i < WEIR_DROPS; i++)
        if (stats->dropped[i])
            printf(", %" PRIu64 " dropped (%s)", stats->dropped[i], wr_selfmetrics_drop_name(i));
}

/* What the handler itself has counted. */
static void print_counters(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    for (size_t i = 0; i < WR_LANE_COUNTERS && lane->counters[i].name; i++)
        printf(", %s %" PRIu64, lane->counters[i].name, lane->counters[i].value);
    wr_lane_leave(lane);
}

/* Prints one handler's account; false: something of it was not delivered. */
static bool report_lane(struct wr_lane *lane, bool verbose)
{
    weir_handler_stats stats;
    wr_lane_read_stats(lane, &stats, 0);
    if (verbose) {
        printf("%s: %" PRIu64 " delivered", lane->name, stats.delivered);
        print_drops(&stats);
        if (stats.recovered)
            printf(" (%" PRIu64 " of earlier processes were on disk)", stats.recovered);
        print_counters(lane);
        if (stats.queued)
            printf(", %" PRIu64 " not delivered yet", stats.queued);
        if (stats.spooled)
            printf(", %" PRIu64 " on disk", stats.spooled);
        puts(stats.failing ? ", failing" : "");
    }
    return stats.delivered == stats.offered + stats.recovered;
}

static int report(const struct request *request)
{
    bool delivered = true;
    struct wr_lane *lane = wr_engine_lanes(wr_runtime_engine(wr_runtime_get()));
    if (!lane && request->verbose)
        puts("no handler listens to this group");
    for (; lane; lane = lane->next)
        delivered &= report_lane(lane, request->verbose);
    return delivered ? EXIT_GOOD : EXIT_NEGATIVE;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int emit(const struct request *request)
{
    if (request->config)
        unsetenv(
            "WEIR_CONFIG"); /* which would win over what a program says; but here it is a person who does */
    if (request->config && weir_configure_file(request->config))
        return command_fail("%s", weir_last_error());
    weir_stream *stream = weir_get_stream_labeled(request->group, request->labels, request->label_count);
    if (weir_emit(stream, request->values, request->value_count))
        return command_fail("%s", weir_last_error());
    weir_flush(request->timeout_ns / 1000000);
    int result = report(request);
    weir_shutdown(result == EXIT_GOOD ? -1 : 0); /* what was not delivered has had its time */
    return result;
}

static int parse(const struct command *command, struct request *request, int argc, char **argv, bool *done)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"group", required_argument, NULL, 'g'},
        {"label", required_argument, NULL, 'l'},
        {"timeout", required_argument, NULL, 't'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int error = 0;
    for (int option; !error && (option = getopt_long(argc, argv, "c:g:l:t:vh", options, NULL)) != -1;) {
        switch (option) {
        case 'c': request->config = optarg; break;
        case 'g': request->group = optarg; break;
        case 'l': error = add_label(command, request, optarg); break;
        case 't':
            if (!wr_units_parse_duration(optarg, &request->timeout_ns))
                error = command_refuse(command, "--timeout: \"%s\" is not " WR_UNITS_DURATION_HINT, optarg);
            break;
        case 'v': request->verbose = true; break;
        case 'h':
            command_print_help(command, stdout);
            *done = true;
            return 0;
        default: return command_show_usage(command);
        }
    }
    for (int i = optind; !error && i < argc; i++)
        error = add_value(command, request, argv[i]);
    return error;
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct request request = {.timeout_ns = INT64_C(5000000000)};
    const char *from_environment = secure_getenv("WEIR_CONFIG");
    bool done = false;
    int error = parse(command, &request, argc, argv, &done);
    if (error || done)
        return error;
    if (!request.group)
        return command_refuse(command, "-g GROUP is missing");
    if (!request.value_count)
        return command_refuse(command, "there is no value; one looks like name=12.5");
    if (!request.config && !(from_environment && *from_environment))
        return command_refuse(command,
                              "-c FILE is missing, and WEIR_CONFIG is not set: the values would go nowhere");
    return emit(&request);
}

const struct command command_emit = {
    .name = "emit",
    .arguments = "[-c FILE] -g GROUP [-l KEY=VALUE]... [-t TIME] [-v] NAME=VALUE...",
    .summary = "Adds values, as one event, and waits until they are delivered.",
    .help = "\n  -c, --config FILE      the configuration; without it, WEIR_CONFIG's\n"
            "  -g, --group GROUP      the group\n"
            "  -l, --label KEY=VALUE  a label; may be given several times\n"
            "  -t, --timeout TIME     how long to wait for delivery (5s)\n"
            "  -v, --verbose          tells what each handler did\n"
            "  -h, --help             this text\n\n"
            "Exit status 1: something was not delivered.\n",
    .run = run,
};
