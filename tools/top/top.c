/* weir top: shows what moves in a program, by the page that it has for Prometheus. */

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/command.h"
#include "common/figures.h"
#include "common/http_client.h"
#include "common/live_table.h"
#include "os/clock.h"
#include "text/buffer.h"
#include "text/common.h"
#include "top_json.h"
#include "top_page.h"
#include "top_rows.h"
#include "top_series.h"
#include "top_show.h"

#define DEFAULT_URL "http://127.0.0.1:9464/metrics"

enum { OPTION_EVERY = 256, OPTION_COUNT, OPTION_NAME, COUNT_MOST = 1000000000 };

struct request {
    struct top_page page;
    struct top_table table;
    int64_t every_ns;
    long count, shown; /* tables; count 0: without end */
    bool json;
};

/* ---- Showing --------------------------------------------------------------------------------- */

static int show(struct request *request, int64_t passed_ns)
{
    const struct figures_screen screen = figures_screen_of(STDOUT_FILENO);
    struct top_rows rows = top_rows_find(&request->table, passed_ns);
    struct wr_buffer out = {0};
    int result;
    if (request->json)
        result = top_json_print(&request->page, &rows);
    else {
        live_table_start(&out, &screen, request->shown > 0);
        top_show(&out, &request->page, &rows, &screen);
        result = live_table_finish(&out, &screen);
    }
    top_rows_fini(&rows);
    request->shown++;
    return result;
}

static int fail(const struct top_page *page)
{
    return command_fail("top: %s: %s", page->url, page->problem);
}

/* The page is not there any more. */
static int show_lost(struct request *request)
{
    const struct figures_screen screen = figures_screen_of(STDOUT_FILENO);
    struct wr_buffer out = {0};
    if (request->count)
        return fail(&request->page);
    if (request->json)
        return top_json_print_lost(&request->page);
    live_table_start(&out, &screen, request->shown > 0);
    top_show_lost(&out, &request->page, wr_clock_monotonic_ns() - request->page.time_ns, &screen);
    request->shown++;
    return live_table_finish(&out, &screen);
}

static int show_repeatedly(struct request *request)
{
    struct top_page *page = &request->page;
    if (!top_page_read(page, &request->table)) {
        fail(page);
        return command_fail("top needs a page that Prometheus can scrape: a program has one with the handler "
                            "{\"type\": \"prometheus\"} in its configuration, see weir handlers prometheus");
    }
    int result = EXIT_SUCCESS;
    while (result == EXIT_SUCCESS && (!request->count || request->shown < request->count)) {
        int64_t before_ns = page->time_ns;
        live_table_pause(request->every_ns);
        result = top_page_read(page, &request->table) ? show(request, page->time_ns - before_ns)
                                                      : show_lost(request);
    }
    return result;
}

/* ---- The command ----------------------------------------------------------------------------- */

static bool read_count(const char *text, long *count)
{
    char *end;
    errno = 0;
    *count = strtol(text, &end, 10);
    return end != text && !*end && !errno && *count > 0 && *count <= COUNT_MOST;
}

static int read_options(const struct command *command, int argc, char **argv, struct request *request)
{
    static const struct option options[] = {{"every", required_argument, NULL, OPTION_EVERY},
                                            {"count", required_argument, NULL, OPTION_COUNT},
                                            {"name", required_argument, NULL, OPTION_NAME},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'h': return command_print_help(command, stdout);
        case 'j': request->json = true; break;
        case OPTION_NAME: request->page.pattern = optarg; break;
        case OPTION_COUNT:
            if (!read_count(optarg, &request->count))
                return command_refuse(command, "--count: \"%s\" is not a number from 1 to %d", optarg,
                                      COUNT_MOST);
            break;
        case OPTION_EVERY:
            if (command_read_every(command, optarg, 100, &request->every_ns) != COMMAND_CONTINUE)
                return EXIT_USAGE;
            break;
        default: return command_show_usage(command);
        }
    }
    if (argc - optind > 1)
        return command_refuse(command, "at most one URL is allowed");
    if (argv[optind])
        request->page.url = argv[optind];
    if (!http_client_is_url(request->page.url))
        return command_refuse(command, "\"%s\" is not a URL like " DEFAULT_URL, request->page.url);
    return COMMAND_CONTINUE;
}

/* http://127.0.0.1:9464 is short for /metrics there. */
static char *make_url(const char *url)
{
    struct wr_buffer whole = {0};
    const char *host = url + strcspn(url, "/") + 2;
    wr_buffer_put_text(&whole, url);
    wr_buffer_put_text(&whole, host[strcspn(host, "/?#")] ? "" : "/metrics");
    return command_take(&whole);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.page.url = DEFAULT_URL, .every_ns = LIVE_TABLE_EVERY_S * WR_NS_PER_S};
    int result = read_options(command, argc, argv, &request);
    if (result != COMMAND_CONTINUE)
        return result;
    if (!http_client_load("top"))
        return EXIT_FAILURE;
    char *url = make_url(request.page.url);
    request.page.url = url;
    result = show_repeatedly(&request);
    top_series_fini(&request.table);
    free(url);
    return result;
}

const struct command command_top = {
    .name = "top",
    .arguments = "[URL] [--every TIME] [--count NUMBER] [--name PATTERN] [--json]",
    .summary = "Shows which metrics of a program move now, the fastest first.",
    .help = "\n      --every TIME     the time between two pages (like 1s); default: 2s\n"
            "      --count NUMBER   end after so many tables; default: never\n"
            "      --name PATTERN   only metrics with such a name, like 'http_*'\n"
            "      --json           an object for each table, on a line of its own\n"
            "  -h, --help           this text\n\n"
            "URL is a page that Prometheus can scrape, such as that of the handler prometheus; "
            "default:\n" DEFAULT_URL ". Exit status 1: the page cannot be read; with --count also later.\n",
    .run = run,
};
