/* weir vet: tests whether a handler type keeps the contract of <weir/handler.h>. */

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/command.h"
#include "text/error.h"
#include "text/number.h"
#include "text/units.h"
#include "child.h"
#include "report.h"
#include "subject.h"

struct request {
    struct vet_subject subject;
    struct vet_report report;
    const char *check; /* the only one to run; NULL: all */
    unsigned broken;   /* bits of vet_call: callbacks that crashed or hung in an earlier check */
};

static bool is_wanted(const struct request *request, const struct vet_check *check)
{
    return !request->check || strcmp(request->check, check->name) == 0;
}

/* A callback that hung is not called again: it would hang until the deadline of every check that calls it. */
static const char *find_broken(unsigned broken)
{
    static const struct {
        unsigned call;
        const char *name;
    } calls[] = {{VET_LOAD, "loading"}, {VET_CREATE, "create"},   {VET_OPEN, "open"},
                 {VET_EMIT, "emit"},    {VET_FLUSH, "flush"},     {VET_WAKE, "wake"},
                 {VET_CLOSE, "close"},  {VET_DESTROY, "destroy"}, {VET_ABANDON, "abandon"},
                 {VET_PROBE, "probe"},  {VET_PREPARE, "prepare"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (broken & calls[i].call)
            return calls[i].name;
    return NULL;
}

static void run_check(struct request *request, const struct vet_check *check, struct vet_page *page)
{
    struct vet_result result = {.name = check->name, .verdict = VET_SKIPPED};
    const char *broken = find_broken(check->calls & request->broken);
    *page = (struct vet_page){0};
    if (broken)
        snprintf(result.message, sizeof result.message, "%s fails in an earlier check", broken);
    else
        vet_child_run(check, &request->subject, page, &result);
    request->broken |= result.broken;
    vet_report_result(&request->report, request->subject.type, &result);
    fflush(stdout);
}

static void run_type(struct request *request, const char *type, struct vet_page *page)
{
    request->subject.type = type;
    request->broken &= VET_LOAD;
    vet_report_type(&request->report, type);
    for (const struct vet_check *check = vet_checks_of_type; check->name; check++)
        if (is_wanted(request, check))
            run_check(request, check, page);
    if (request->subject.read && is_wanted(request, &vet_check_read))
        run_check(request, &vet_check_read, page);
    if (request->subject.fuzz && is_wanted(request, &vet_check_fuzz))
        run_check(request, &vet_check_fuzz, page);
}

/* Only child processes load the file; the first check reports its types. */
static int vet(struct request *request, const char *only)
{
    char types[VET_TYPES][VET_TYPE_NAME];
    bool found = !only;
    struct vet_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return command_fail("out of memory");
    vet_report_begin(&request->report, &request->subject);
    run_check(request, &vet_check_load, page);
    uint32_t count = page->type_count;
    memcpy(types, page->types, sizeof types);
    for (uint32_t i = 0; i < count; i++) {
        if (only && strcmp(only, types[i]) != 0)
            continue;
        found = true;
        run_type(request, types[i], page);
    }
    munmap(page, sizeof *page);
    bool passed = vet_report_end(&request->report);
    if (count && !found)
        return command_fail("%s: the file has no handler type \"%s\"", request->subject.path, only);
    return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- The command ----------------------------------------------------------------------------- */

static bool is_check(const char *name)
{
    const struct vet_check *const others[] = {&vet_check_load, &vet_check_read, &vet_check_fuzz};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]->name) == 0)
            return true;
    for (const struct vet_check *check = vet_checks_of_type; check->name; check++)
        if (strcmp(name, check->name) == 0)
            return true;
    return false;
}

static int take_seed(const struct command *command, struct vet_subject *subject, const char *text)
{
    int64_t seed;
    if (!wr_number_parse_int(text, &seed) || seed < 0)
        return command_refuse(command, "--fuzz: \"%s\" is not a seed; allowed: integers from 0", text);
    subject->fuzz = true;
    subject->seed = (uint64_t)seed;
    return 0;
}

static int take_deadline(const struct command *command, struct vet_subject *subject, const char *text)
{
    enum { MIN_MS = 100 };
    int64_t ns;
    if (!wr_units_parse_duration(text, &ns) || ns / 1000000 < MIN_MS)
        return command_refuse(command, "--deadline: \"%s\" is not " WR_UNITS_DURATION_HINT " of at least 100ms",
                              text);
    subject->deadline_ms = ns / 1000000;
    return 0;
}

static int take_options(const struct command *command, struct vet_subject *subject, const char *text)
{
    struct wr_error error = {0};
    subject->options = text;
    return vet_subject_check_options(text, &error) ? 0 : command_refuse(command, "%s", error.text);
}

static int take_check(const struct command *command, struct request *request, const char *text)
{
    request->check = text;
    return is_check(text) ? 0 : command_refuse(command, "--check: unknown check \"%s\"", text);
}

enum { OPTION_CHECK = 256, OPTION_JSON, OPTION_STRICT, OPTION_TYPE };

static int take(const struct command *command, struct request *request, int option, const char **only)
{
    switch (option) {
    case 'o': return take_options(command, &request->subject, optarg);
    case OPTION_TYPE: *only = optarg; return 0;
    case OPTION_CHECK: return take_check(command, request, optarg);
    case 'r': request->subject.read = optarg; return 0;
    case 'd': return take_deadline(command, &request->subject, optarg);
    case 'f': return take_seed(command, &request->subject, optarg);
    case OPTION_JSON: request->report.json = true; return 0;
    case OPTION_STRICT: request->report.strict = true; return 0;
    default: return command_show_usage(command);
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"options", required_argument, NULL, 'o'},
        {"type", required_argument, NULL, OPTION_TYPE},
        {"check", required_argument, NULL, OPTION_CHECK},
        {"read", required_argument, NULL, 'r'},
        {"deadline", required_argument, NULL, 'd'},
        {"fuzz", required_argument, NULL, 'f'},
        {"json", no_argument, NULL, OPTION_JSON},
        {"strict", no_argument, NULL, OPTION_STRICT},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct request request = {.subject = {.deadline_ms = 10000}};
    const char *only = NULL;
    int error = 0;
    for (int option; !error && (option = getopt_long(argc, argv, "o:r:d:f:h", options, NULL)) != -1;) {
        if (option == 'h') {
            command_print_help(command, stdout);
            return EXIT_SUCCESS;
        }
        error = take(command, &request, option, &only);
    }
    if (error)
        return error;
    if (request.check && strcmp(request.check, vet_check_read.name) == 0 && !request.subject.read)
        return command_refuse(command, "--check read: needs --read, a command that prints what has arrived");
    if (argc - optind != 1)
        return command_refuse(command, "expected one FILE, the shared object of a plugin");
    char *path = realpath(argv[optind], NULL);
    if (!path)
        return command_fail("%s: %s", argv[optind], strerror(errno));
    request.subject.path = path;
    int result = vet(&request, only);
    free(path);
    return result;
}

const struct command command_vet = {
    .name = "vet",
    .arguments =
        "FILE [-o JSON] [--type NAME] [--check CHECK] [-r CMD] [-d TIME] [-f SEED] [--strict] [--json]",
    .summary = "Tests whether a handler type keeps the contract of weir-handler(7).",
    .help = "\n  -o, --options JSON   the handler's options, as in a configuration: '{\"path\": \"/tmp/x\"}'\n"
            "      --type NAME      only this one of the file's handler types\n"
            "      --check CHECK    only this check, after loading\n"
            "  -r, --read CMD       an additional check: CMD is a shell command that prints what the "
            "destination has\n"
            "                       received, a line for each value with its name and its value\n"
            "  -d, --deadline TIME  time limit of a call (10s); after half of it the handler is stopped\n"
            "  -f, --fuzz SEED      an additional check with random calls, reproducible by the seed\n"
            "      --strict         skipped checks count as failed\n"
            "      --json           as JSON\n"
            "  -h, --help           this text\n\n"
            "The plugin runs in child processes, so a crash of it is a result. If the destination is not "
            "available,\n"
            "most checks are skipped. Exit status 1: the plugin violates the contract or cannot be loaded or "
            "created.\n",
    .run = run,
};
