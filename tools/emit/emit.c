/* weir emit: adds values from a shell script. */

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "common/command.h"
#include "delivery.h"
#include "input.h"
#include "input_line.h"
#include "registry/name.h"
#include "runtime/configure.h"
#include "runtime/event.h"
#include "text/units.h"

#define NO_VALUE "no value is given (like name=12.5)"

struct request {
    const char *config, *group;
    weir_label labels[INPUT_LINE_MAX_LABELS];
    size_t label_count;
    struct input_line values;          /* from the arguments */
    bool reads_input, input_requested; /* requested: by "-" */
    int64_t timeout_ns;
    bool verbose;
};

/* ---- Arguments ------------------------------------------------------------------------------- */

/* Returns 0 or EXIT_USAGE, as the next functions do. */
static int add_label(const struct command *command, struct request *request, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return command_refuse(command, "--label: \"%s\" is not a label (like key=value)", text);
    if (request->label_count == INPUT_LINE_MAX_LABELS)
        return command_refuse(command, "--label: at most %d labels are allowed", INPUT_LINE_MAX_LABELS);
    *equals = '\0';
    request->labels[request->label_count++] = (weir_label){text, equals + 1};
    return 0;
}

static int add_values(const struct command *command, struct request *request, char **words, int count)
{
    struct input_line_fault fault;
    request->input_requested = count == 1 && strcmp(words[0], "-") == 0;
    request->reads_input = request->input_requested || (!count && !isatty(STDIN_FILENO));
    for (int i = 0; i < count && !request->input_requested; i++)
        if (!input_line_add_word(&request->values, words[i], &fault))
            return command_refuse(command, "%s", fault.text);
    return 0;
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
    return error ? error : add_values(command, request, argv + optind, argc - optind);
}

static int check(const struct command *command, const struct request *request)
{
    const char *from_environment = secure_getenv("WEIR_CONFIG");
    struct wr_error error;
    if (!request->group && !request->input_requested)
        return command_refuse(command, "-g GROUP is missing");
    if (request->group && !wr_name_check_group(request->group, &error))
        return command_refuse(command, "%s", error.text);
    if (!request->values.count && !request->reads_input)
        return command_refuse(command, NO_VALUE);
    if (!request->config && !(from_environment && *from_environment))
        return command_refuse(command, "no configuration: -c FILE is missing, and WEIR_CONFIG is not set");
    return 0;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static int add_arguments(const struct request *request)
{
    const struct wr_event event = {.values = request->values.values, .count = request->values.count};
    weir_stream *stream = weir_get_stream_labeled(request->group, request->labels, request->label_count);
    if (wr_event_add(stream, &event))
        return command_fail("%s", weir_last_error());
    delivery_wait(request->timeout_ns / 1000000, false);
    return EXIT_SUCCESS;
}

static void print_counts(const struct request *request, const struct input_counts *counts)
{
    if (request->verbose)
        printf("stdin: %" PRIu64 " lines, %" PRIu64 " values, %" PRIu64 " invalid lines\n", counts->lines,
               counts->values, counts->invalid);
    if (counts->invalid)
        command_fail("stdin: %" PRIu64 " of %" PRIu64 " lines are invalid and were skipped", counts->invalid,
                     counts->lines);
}

static int add_input(const struct command *command, const struct request *request)
{
    const struct input_defaults defaults = {request->group, request->labels, request->label_count};
    struct input_counts counts;
    input_add_all(&defaults, &counts);
    if (!counts.lines && !counts.failed && !request->input_requested)
        return command_refuse(command, NO_VALUE);
    delivery_wait(request->timeout_ns / 1000000, true);
    print_counts(request, &counts);
    return counts.invalid || counts.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* If WEIR_CONFIG is invalid, the library has logged the error. */
static bool is_environment_applied(void)
{
    struct wr_runtime *runtime = wr_runtime_get();
    return runtime && wr_configure_ready(runtime) && runtime->from_environment;
}

/* WEIR_CONFIG takes precedence over a program's own configuration, but not over the argument of -c. */
static int configure(const struct request *request)
{
    if (!request->config)
        return is_environment_applied() ? EXIT_SUCCESS
                                        : command_fail("WEIR_CONFIG is invalid: no value was added");
    unsetenv("WEIR_CONFIG");
    return weir_configure_file(request->config) ? command_fail("%s", weir_last_error()) : EXIT_SUCCESS;
}

static int emit(const struct command *command, const struct request *request)
{
    if (configure(request) != EXIT_SUCCESS)
        return EXIT_FAILURE;
    int result = request->reads_input ? add_input(command, request) : add_arguments(request);
    bool delivered = delivery_report(request->verbose);
    weir_shutdown(delivered ? -1 : 0); /* the timeout for the rest has expired */
    return delivered ? result : EXIT_FAILURE;
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct request request = {.timeout_ns = INT64_C(5000000000)};
    bool done = false;
    int error = parse(command, &request, argc, argv, &done);
    if (!error && !done)
        error = check(command, &request);
    return error || done ? error : emit(command, &request);
}

const struct command command_emit = {
    .name = "emit",
    .arguments = "[-c FILE] [-g GROUP] [-l KEY=VALUE]... [-t TIME] [-v] NAME=VALUE...|-",
    .summary = "Adds values, as one event or from standard input, and waits until they are delivered.",
    .help = "\n  -c, --config FILE      the configuration; default: WEIR_CONFIG\n"
            "  -g, --group GROUP      the group; optional only with -, if each line names its group\n"
            "  -l, --label KEY=VALUE  a label; may be repeated\n"
            "  -t, --timeout TIME     how long to wait for delivery (5s)\n"
            "  -v, --verbose          prints what was read, and what each handler did\n"
            "  -h, --help             this text\n\n"
            "With -, or without values if standard input is not a terminal, each line of it is an event:\n\n"
            "  latency=12.5 errors=1             values by name\n"
            "  {\"latency\": 12.5, \"errors\": 1}    the same as JSON\n"
            "  {\"timestamp\":1795219607.5,\"group\":\"my_app\",\"name\":\"latency\",\"value\":49.403}\n"
            "                                    as the format json writes it\n"
            "  # ...                             a comment\n\n"
            "Exit status 1: something was not delivered, or a line was invalid.\n",
    .run = run,
};
