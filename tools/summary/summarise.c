/* weir summary: what is in files of values, a row for each series; or how two of them differ. */

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/command.h"
#include "common/figures.h"
#include "comparison.h"
#include "parse/parser.h"
#include "registry/name.h"
#include "report_document.h"
#include "report_table.h"
#include "statistics.h"
#include "summary_input.h"
#include "summary_table.h"
#include "text/buffer.h"

enum { OPTION_BY = 256, OPTION_COMPARE, OPTION_MERGE, OPTION_JSON, OPTION_CSV, OPTION_PARSE };

struct request {
    const char *by;
    const struct wr_parser_type *type;
    bool compares, merges, as_json, as_csv;
    char **files;
    int count;
};

/* ---- Arguments ------------------------------------------------------------------------------- */

static int set_type(const struct command *command, struct request *request, const char *name)
{
    request->type = strcmp(name, "patterns") == 0 ? NULL : wr_parser_type_find(name);
    return request->type
               ? 0
               : command_refuse(command,
                                "--parse: \"%s\" is not a format; allowed: auto, text, json, bai, csv, "
                                "influx, statsd, graphite, prometheus, openmetrics",
                                name);
}

static int check(const struct command *command, const struct request *request)
{
    if (request->as_json && request->as_csv)
        return command_refuse(command, "--json and --csv exclude each other");
    if (request->compares && request->as_csv)
        return command_refuse(command, "--compare has no --csv; use --json");
    if (request->compares && request->count != 2)
        return command_refuse(command, "--compare needs two files");
    if (request->merges && (request->compares || request->as_csv || request->by || request->type))
        return command_refuse(command, "--merge excludes --by, --compare, --csv and --parse");
    if (!request->count)
        return command_refuse(command, "FILE is missing; - is standard input");
    return 0;
}

/* Returns COMMAND_CONTINUE, or the exit code. */
static int read_arguments(const struct command *command, struct request *request, int argc, char **argv)
{
    static const struct option options[] = {
        {"by", required_argument, NULL, OPTION_BY}, {"compare", no_argument, NULL, OPTION_COMPARE},
        {"merge", no_argument, NULL, OPTION_MERGE}, {"json", no_argument, NULL, OPTION_JSON},
        {"csv", no_argument, NULL, OPTION_CSV},     {"parse", required_argument, NULL, OPTION_PARSE},
        {"help", no_argument, NULL, 'h'},           {0},
    };
    int error = 0;
    for (int option; !error && (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case OPTION_BY: request->by = optarg; break;
        case OPTION_COMPARE: request->compares = true; break;
        case OPTION_MERGE: request->merges = true; break;
        case OPTION_JSON: request->as_json = true; break;
        case OPTION_CSV: request->as_csv = true; break;
        case OPTION_PARSE: error = set_type(command, request, optarg); break;
        case 'h': return command_print_help(command, stdout);
        default: return command_show_usage(command);
        }
    }
    request->files = argv + optind;
    request->count = argc - optind;
    error = error ? error : check(command, request);
    return error ? error : COMMAND_CONTINUE;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Returns whether all could be read, with at least one value and nothing left out. */
static bool read_files(const struct request *request, int first, int end, struct statistics *statistics,
                       struct report_documents *documents)
{
    struct summary_faults faults = {0};
    bool read = true;
    statistics->by = request->by;
    for (int i = first; i < end; i++)
        read &= summary_input_read(request->files[i], request->type, statistics, documents, &faults);
    statistics_sort(statistics);
    if (faults.lines)
        command_fail("%" PRIu64 " lines are invalid and were skipped", faults.lines);
    if (faults.values)
        command_fail("%" PRIu64 " values were left out of lines whose other values count", faults.values);
    if (statistics->left_over)
        command_fail("%" PRIu64 " values are of more than %d series and were left out", statistics->left_over,
                     STATISTICS_SERIES_MOST);
    bool has_any = statistics->values || documents->count;
    if (read && !has_any)
        command_fail("there are no values");
    return read && has_any && !faults.lines && !faults.values && !statistics->left_over;
}

static int compare(const struct request *request)
{
    static struct statistics a, b;
    static struct report_documents nodes;
    bool is_whole = read_files(request, 0, 1, &a, &nodes);
    is_whole &= read_files(request, 1, 2, &b, &nodes);
    int result = is_whole ? EXIT_SUCCESS : EXIT_FAILURE;
    if (!a.values || !b.values)
        return EXIT_FAILURE;
    if (request->as_json)
        return comparison_print_json(&a, &b, result);
    struct wr_buffer out = {0};
    const struct figures_screen screen = figures_screen_of(STDOUT_FILENO);
    comparison_put(&out, &a, &b, &screen);
    return command_finish(&out, result);
}

/* The series, and figures of nodes below them. */
static void put_tables(struct wr_buffer *out, const struct statistics *all,
                       const struct report_documents *nodes)
{
    const struct figures_screen screen = figures_screen_of(STDOUT_FILENO);
    if (all->values)
        summary_table_put(out, all, &screen);
    if (all->values && nodes->count)
        wr_buffer_put_text(out, "\n");
    if (nodes->count)
        report_table_put(out, nodes, &screen);
}

static int summarise(const struct request *request)
{
    static struct statistics all;
    static struct report_documents nodes;
    int result = read_files(request, 0, request->count, &all, &nodes) ? EXIT_SUCCESS : EXIT_FAILURE;
    if (request->as_json)
        return summary_print_json(&all, result);
    if (!all.values && !nodes.count)
        return EXIT_FAILURE;
    struct wr_buffer out = {0};
    if (request->as_csv)
        summary_put_csv(&out, &all);
    else
        put_tables(&out, &all, &nodes);
    return command_finish(&out, result);
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* The path in NAME=FILE; the argument itself if there is a file of that name, or no name. */
static const char *find_path(const char *argument)
{
    const char *sign = strchr(argument, '=');
    return sign && sign > argument && access(argument, F_OK) != 0 ? sign + 1 : argument;
}

/* Returns false after printing why not. */
static bool rename_node(struct report_documents *nodes, size_t first, const char *argument, const char *path)
{
    if (path == argument)
        return true;
    if (nodes->count != first + 1) {
        command_fail("%s: has %zu nodes; NAME=FILE renames the only one of a file", path, nodes->count - first);
        return false;
    }
    char *name = command_must(strndup(argument, (size_t)(path - argument - 1)));
    free(nodes->nodes[first].name);
    nodes->nodes[first].name = name;
    return true;
}

static int merge(const struct request *request)
{
    static struct report_documents nodes;
    struct wr_buffer out = {0};
    bool is_read = true;
    for (int i = 0; i < request->count; i++) {
        size_t first = nodes.count;
        const char *path = find_path(request->files[i]);
        is_read = summary_input_read(path, NULL, NULL, &nodes, NULL) &&
                  rename_node(&nodes, first, request->files[i], path) && is_read;
    }
    if (!is_read || !report_merge_put(&out, &nodes))
        return EXIT_FAILURE;
    return command_finish(&out, EXIT_SUCCESS);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {0};
    int result = read_arguments(command, &request, argc, argv);
    if (result != COMMAND_CONTINUE)
        return result;
    return request.merges ? merge(&request) : request.compares ? compare(&request) : summarise(&request);
}

const struct command command_summary = {
    .name = "summary",
    .arguments = "[--by LABEL] [--compare] [--merge] [--json|--csv] [--parse FORMAT] FILE...",
    .summary = "Shows count, mean, spread, quantiles and course of each series in files of values.",
    .help =
        "\n      --by LABEL      a row for each value of this label; others are put together\n"
        "      --compare       two files: how the means of B differ from those of A, and whether that\n"
        "                      is noise\n"
        "      --merge         reports of nodes, as one: {\"NODE\": {\"figures\", \"reports\", \"metrics\"}};\n"
        "                      NAME=FILE names the node of a file\n"
        "      --json          as JSON\n"
        "      --csv           as CSV\n"
        "      --parse FORMAT  what the files are: auto, text, json, bai, csv, influx, statsd, graphite,\n"
        "                      prometheus or openmetrics; default: csv and json by their names, else\n"
        "                      auto\n"
        "  -h, --help          this text\n\n"
        "FILE - is standard input. Quantiles of many values are within 1 %. Running totals count by\n"
        "their increments. Reports, of weir run --report, of the handler type report and of perf.py, are\n"
        "recognised.\n",
    .run = run,
};
