/* weir emit: adds values from a shell script. */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "common/command.h"
#include "common/configure.h"
#include "common/delivery.h"
#include "config/benchmarkai.h"
#include "config/config_read.h"
#include "input.h"
#include "parse/parser.h"
#include "patterns_file.h"
#include "record.h"
#include "registry/name.h"
#include "runtime/event.h"
#include "runtime/runtime.h"
#include "text/units.h"

#include "../../plugins/patterns/patterns.h"

#define NO_VALUE "no value is given (like name=12.5)"

enum { OPTION_STRICT = 256, OPTION_PARSE, OPTION_PATTERNS, OPTION_COUNTER, OPTION_GAUGE, OPTION_HISTOGRAM };

struct request {
    const char *config, *group;
    weir_label labels[WR_PARSER_LABELS];
    size_t label_count;
    weir_typed_value values[WR_PARSER_VALUES]; /* from the arguments */
    size_t value_count;
    int instrument; /* enum weir_instrument, of values that come without one; WEIR_VALUE: not given */
    const struct wr_parser_type *parser; /* NULL: not given */
    bool uses_patterns;
    const char *patterns_path;
    struct wr_patterns *patterns;
    bool reads_input, input_requested; /* requested: by "-" */
    int64_t timeout_ns;
    bool verbose, strict;
};

/* ---- Arguments ------------------------------------------------------------------------------- */

/* Returns 0 or EXIT_USAGE, as the next functions do. */
static int add_label(const struct command *command, struct request *request, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return command_refuse(command, "--label: \"%s\" is not a label (like key=value)", text);
    if (request->label_count == WR_PARSER_LABELS)
        return command_refuse(command, "--label: at most %d labels are allowed", WR_PARSER_LABELS);
    *equals = '\0';
    request->labels[request->label_count++] = (weir_label){text, equals + 1};
    return 0;
}

/* The name stays in the word, which is cut at its '='. */
static int add_value(const struct command *command, struct request *request, char *word)
{
    char fault[WR_PARSE_FAULT_ROOM];
    if (request->value_count == WR_PARSER_VALUES)
        return command_refuse(command, "at most %d values are allowed", WR_PARSER_VALUES);
    if (!wr_parser_read_word(word, word, &request->values[request->value_count], fault))
        return command_refuse(command, "%s", fault);
    request->value_count++;
    return 0;
}

static int set_instrument(const struct command *command, struct request *request, int instrument)
{
    if (request->instrument && request->instrument != instrument)
        return command_refuse(command, "only one of --counter, --gauge and --histogram is allowed");
    request->instrument = instrument;
    return 0;
}

static int set_parser(const struct command *command, struct request *request, const char *name)
{
    char names[200];
    size_t used = 0;
    request->uses_patterns = strcmp(name, "patterns") == 0;
    request->parser = request->uses_patterns ? wr_patterns_type() : wr_parser_type_find(name);
    if (request->parser)
        return 0;
    if (request->uses_patterns)
        return command_refuse(command, "--parse patterns: weir was built without PCRE2");
    for (size_t i = 0; wr_parser_type_at(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s, ",
                                 wr_parser_type_name(wr_parser_type_at(i)));
    return command_refuse(command, "--parse: \"%s\" is not one of %spatterns", name, names);
}

static int add_values(const struct command *command, struct request *request, char **words, int count)
{
    int error = 0;
    request->input_requested = count == 1 && strcmp(words[0], "-") == 0;
    request->reads_input = request->input_requested || (!count && !isatty(STDIN_FILENO));
    if (request->parser && !request->reads_input)
        return command_refuse(command, "--parse needs standard input (-)");
    for (int i = 0; !error && i < count && !request->input_requested; i++)
        error = add_value(command, request, words[i]);
    return error;
}

static int read_arguments(const struct command *command, struct request *request, int argc, char **argv,
                          bool *done)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"group", required_argument, NULL, 'g'},
        {"label", required_argument, NULL, 'l'},
        {"timeout", required_argument, NULL, 't'},
        {"verbose", no_argument, NULL, 'v'},
        {"strict", no_argument, NULL, OPTION_STRICT},
        {"parse", required_argument, NULL, OPTION_PARSE},
        {"patterns", required_argument, NULL, OPTION_PATTERNS},
        {"counter", no_argument, NULL, OPTION_COUNTER},
        {"gauge", no_argument, NULL, OPTION_GAUGE},
        {"histogram", no_argument, NULL, OPTION_HISTOGRAM},
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
            if (!wr_units_read_duration(optarg, &request->timeout_ns))
                error = command_refuse(command, "--timeout: \"%s\" is not " WR_UNITS_DURATION_HINT, optarg);
            break;
        case 'v': request->verbose = true; break;
        case OPTION_PARSE: error = set_parser(command, request, optarg); break;
        case OPTION_PATTERNS: request->patterns_path = optarg; break;
        case OPTION_STRICT: request->strict = true; break;
        case OPTION_COUNTER: error = set_instrument(command, request, WEIR_COUNTER); break;
        case OPTION_GAUGE: error = set_instrument(command, request, WEIR_GAUGE); break;
        case OPTION_HISTOGRAM: error = set_instrument(command, request, WEIR_HISTOGRAM); break;
        case 'h':
            command_print_help(command, stdout);
            *done = true;
            return 0;
        default: return command_show_usage(command);
        }
    }
    return error ? error : add_values(command, request, argv + optind, argc - optind);
}

static int check_patterns(const struct command *command, const struct request *request)
{
    if (!request->uses_patterns)
        return request->patterns_path ? command_refuse(command, "--patterns needs --parse patterns") : 0;
    if (!request->group)
        return command_refuse(command, "-g GROUP is missing, since patterns name no group");
    if (!request->patterns_path && !patterns_file_has_variable())
        return command_refuse(command,
                              "no patterns: --patterns FILE is missing, and ANUBIS_METRICS is not set");
    return 0;
}

static int check(const struct command *command, const struct request *request)
{
    struct wr_error error;
    if (!request->group && !request->input_requested)
        return command_refuse(command, "-g GROUP is missing");
    if (request->group && !wr_name_check_group(request->group, &error))
        return command_refuse(command, "%s", error.text);
    if (!request->value_count && !request->reads_input)
        return command_refuse(command, NO_VALUE);
    if (!request->config && !wr_config_has_variable("WEIR_CONFIG") && !wr_benchmarkai_is_set() &&
        !wr_config_has_variable("WEIR_TEE"))
        return command_refuse(command, "no configuration: -c FILE is missing, and none of WEIR_CONFIG, "
                                       "BENCHMARK_AI and WEIR_TEE is set");
    return check_patterns(command, request);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static int add_arguments(struct request *request)
{
    record_settle_kinds(request->group, request->values, request->value_count);
    const struct wr_event event = {.values = request->values, .count = request->value_count};
    const struct wr_parse_record meaning = {.instrument = request->instrument};
    weir_stream *stream = weir_get_stream_labeled(request->group, request->labels, request->label_count);
    for (size_t i = 0; i < request->value_count && !stream->refusal; i++)
        record_declare(stream, &meaning, request->values[i].name);
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
    if (counts->left_out)
        command_fail("stdin: %" PRIu64 " values were left out of lines whose other values were added",
                     counts->left_out);
    if (counts->invalid)
        command_fail("stdin: %" PRIu64 " of %" PRIu64 " lines are invalid and were skipped", counts->invalid,
                     counts->lines);
}

static int add_input(const struct command *command, const struct request *request)
{
    const struct record_defaults defaults = {request->group, request->labels, request->label_count,
                                             request->instrument};
    struct input_counts counts;
    input_add_all(request->parser ? request->parser : wr_parser_type_find("auto"), request->patterns, &defaults,
                  &counts);
    if (!counts.lines && !counts.failed && !request->input_requested)
        return command_refuse(command, NO_VALUE);
    delivery_wait(request->timeout_ns / 1000000, true);
    print_counts(request, &counts);
    return counts.invalid || counts.left_out || counts.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int emit(const struct command *command, struct request *request)
{
    if (!configure_from(request->config))
        return EXIT_FAILURE;
    int result = request->reads_input ? add_input(command, request) : add_arguments(request);
    bool delivered = delivery_report(request->verbose);
    if (delivery_warn_of_unrouted() && request->strict)
        result = EXIT_FAILURE;
    weir_shutdown(delivered ? -1 : 0); /* the timeout for the rest has expired */
    return delivered ? result : EXIT_FAILURE;
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct request request = {.timeout_ns = INT64_C(5000000000)};
    bool done = false;
    int error = read_arguments(command, &request, argc, argv, &done);
    if (!error && !done)
        error = check(command, &request);
    if (error || done)
        return error;
    if (request.uses_patterns && patterns_file_is_empty(request.patterns_path))
        return EXIT_SUCCESS; /* as benchmarkai's extractor ends */
    if (request.uses_patterns && !(request.patterns = patterns_file_read(request.patterns_path)))
        return EXIT_FAILURE;
    int result = emit(command, &request);
    wr_patterns_free(request.patterns);
    return result;
}

const struct command command_emit = {
    .name = "emit",
    .arguments = "[-c FILE] [-g GROUP] [-l KEY=VALUE]... [--counter | --gauge | --histogram] [-t TIME] [-v] "
                 "[--strict] [--parse FORMAT] [--patterns FILE] "
                 "NAME=VALUE...|-",
    .summary = "Adds values, as one event or from standard input, and waits until they are delivered.",
    .help =
        "\n  -c, --config FILE      the configuration; default: WEIR_CONFIG, else BENCHMARK_AI\n"
        "  -g, --group GROUP      the group; optional only with -, if each line names its group\n"
        "  -l, --label KEY=VALUE  a label; may be repeated\n"
        "      --counter          values are increments of counters, unless they say what they are\n"
        "      --gauge            levels of gauges\n"
        "      --histogram        values of histograms\n"
        "  -t, --timeout TIME     how long to wait for delivery (5s)\n"
        "  -v, --verbose          prints what was read, and what each handler did\n"
        "      --strict           values of a group that no handler gets are an error\n"
        "      --parse FORMAT     what standard input is: auto (default), text, json, bai, csv, influx,\n"
        "                         statsd, graphite, prometheus, openmetrics or patterns\n"
        "      --patterns FILE    for --parse patterns: regular expressions as JSON, or nginx for its access\n"
        "                         log; default: ANUBIS_METRICS\n"
        "  -h, --help             this text\n\n"
        "With -, or without values if standard input is not a terminal, each line of it is an event:\n\n"
        "  latency=12.5 errors=1             values by name\n"
        "  {\"latency\": 12.5, \"errors\": 1}    the same as JSON\n"
        "  {\"timestamp\":1795219607.5,\"group\":\"my_app\",\"name\":\"latency\",\"value\":49.403}\n"
        "                                    as the format json writes it\n"
        "  [1795219607.5][my_app]: latency=49.403\n"
        "                                    as the format text writes it\n"
        "  # ...                             a comment\n\n"
        "Exit status 1: something was not delivered, a line was invalid, or no handler takes values\nany "
        "more; with --strict also, if a group has no handler.\n",
    .run = run,
};
