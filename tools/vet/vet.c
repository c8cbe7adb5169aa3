/* weir vet: tests whether a handler type keeps the contract of <weir/handler.h>, or a source type that of
 * <weir/source.h>. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
                 {VET_PROBE, "probe"},  {VET_PREPARE, "prepare"}, {VET_RUN, "run"}};
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

static const struct vet_check *checks_of(const struct vet_subject *subject)
{
    return subject->is_source ? vet_checks_of_source : vet_checks_of_type;
}

static void run_type(struct request *request, const char *type, struct vet_page *page)
{
    request->subject.type = type;
    request->broken &= VET_LOAD;
    vet_report_type(&request->report, type);
    for (const struct vet_check *check = checks_of(&request->subject); check->name; check++)
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
    if (count && !found) {
        command_fail("%s: the file has no %s type \"%s\"", request->subject.path,
                     request->subject.is_source ? "source" : "handler", only);
        request->report.failed++;
    }
    return vet_report_end(&request->report) ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Whether the file has the name of a source's entry point, and not that of a handler's. Nothing is loaded, and
 * what is no file is not opened. */
static bool is_source_file(const char *path)
{
    struct stat status;
    bool may_open = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    int fd = may_open ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    bool is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    size_t size = is_file ? (size_t)status.st_size : 0;
    void *text = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (text == MAP_FAILED)
        return false;
    static const char source_entry[] = "weir_source_type_at", handler_entry[] = "weir_handler_type_at";
    bool is_source = memmem(text, size, source_entry, sizeof source_entry) && /* with its NUL */
                     !memmem(text, size, handler_entry, sizeof handler_entry);
    munmap(text, size);
    return is_source;
}

static bool is_check(const struct request *request)
{
    const struct vet_check *const others[] = {&vet_check_load, &vet_check_read, &vet_check_fuzz};
    size_t count = request->subject.is_source ? 1 : sizeof others / sizeof *others;
    for (size_t i = 0; i < count; i++)
        if (is_wanted(request, others[i]))
            return true;
    for (const struct vet_check *check = checks_of(&request->subject); check->name; check++)
        if (is_wanted(request, check))
            return true;
    return false;
}

static int take_seed(const struct command *command, struct vet_subject *subject, const char *text)
{
    int64_t seed;
    if (!wr_number_read_int(text, &seed) || seed < 0)
        return command_refuse(command, "--fuzz: \"%s\" is not a seed; allowed: integers from 0", text);
    subject->fuzz = true;
    subject->seed = (uint64_t)seed;
    return 0;
}

static int take_deadline(const struct command *command, struct vet_subject *subject, const char *text)
{
    enum { MIN_MS = 100 };
    int64_t ns;
    if (!wr_units_read_duration(text, &ns) || ns / 1000000 < MIN_MS)
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

enum { OPTION_CHECK = 256, OPTION_JSON, OPTION_STRICT, OPTION_TYPE };

static int take(const struct command *command, struct request *request, int option, const char **only)
{
    switch (option) {
    case 'o': return take_options(command, &request->subject, optarg);
    case OPTION_TYPE: *only = optarg; return 0;
    case OPTION_CHECK: request->check = optarg; return 0;
    case 'r': request->subject.read = optarg; return 0;
    case 'w': request->subject.write = optarg; return 0;
    case 'd': return take_deadline(command, &request->subject, optarg);
    case 'f': return take_seed(command, &request->subject, optarg);
    case OPTION_JSON: request->report.json = true; return 0;
    case OPTION_STRICT: request->report.strict = true; return 0;
    default: return command_show_usage(command);
    }
}

/* Returns 0 if its arguments fit together and the file. */
static int check_request(const struct command *command, const struct request *request)
{
    const struct vet_subject *subject = &request->subject;
    if (request->check && !is_check(request))
        return command_refuse(command, "--check: unknown check \"%s\"", request->check);
    if (request->check && strcmp(request->check, vet_check_read.name) == 0 && !subject->read)
        return command_refuse(command, "--check read: needs --read, a command that prints what has arrived");
    if (subject->is_source && (subject->read || subject->fuzz))
        return command_refuse(command, "--read and --fuzz are for handler types, and %s has source types",
                              subject->path);
    if (!subject->is_source && subject->write)
        return command_refuse(command, "--write is for source types, and %s has none", subject->path);
    return 0;
}

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"options", required_argument, NULL, 'o'},
        {"type", required_argument, NULL, OPTION_TYPE},
        {"check", required_argument, NULL, OPTION_CHECK},
        {"read", required_argument, NULL, 'r'},
        {"write", required_argument, NULL, 'w'},
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
    for (int option; !error && (option = getopt_long(argc, argv, "o:r:w:d:f:h", options, NULL)) != -1;) {
        if (option == 'h')
            return command_print_help(command, stdout);
        error = take(command, &request, option, &only);
    }
    if (error)
        return error;
    if (argc - optind != 1)
        return command_refuse(command, "expected one FILE, the shared object of a plugin");
    char *path = realpath(argv[optind], NULL);
    if (!path)
        return command_fail("%s: %s", argv[optind], strerror(errno));
    request.subject.path = path;
    request.subject.is_source = is_source_file(path);
    int result = check_request(command, &request);
    if (!result)
        result = vet(&request, only);
    free(path);
    return result;
}

const struct command command_vet = {
    .name = "vet",
    .arguments = "FILE [-o JSON] [--type NAME] [--check CHECK] [-r CMD] [-w CMD] [-d TIME] [-f SEED] "
                 "[--strict] [--json]",
    .summary = "Tests whether a handler or source type keeps its contract.",
    .help =
        "\n  -o, --options JSON   its options, as in a configuration: '{\"path\": \"/tmp/x\"}'\n"
        "      --type NAME      only this one of the file's types\n"
        "      --check CHECK    only this check, after loading\n"
        "  -r, --read CMD       of handlers, an additional check: CMD is a shell command that prints what the\n"
        "                       destination has received, a line for each value with its name and its value,\n"
        "                       in any form of the number; the destination must accept ordinary values\n"
        "  -w, --write CMD      of sources: CMD is a shell command that sends a few values to the source; its\n"
        "                       standard output is the source's standard input\n"
        "  -d, --deadline TIME  time limit of a call (10s); after half of it a stop is requested\n"
        "  -f, --fuzz SEED      of handlers, an additional check with random calls, reproducible by the seed\n"
        "      --strict         skipped checks count as failed\n"
        "      --json           as JSON\n"
        "  -h, --help           this text\n\n"
        "The plugin runs in child processes, so a crash of it is a result. If the destination is not "
        "available,\n"
        "or nothing is sent to the source, checks are skipped. Exit status 1: the plugin violates the "
        "contract\n"
        "or cannot be loaded or created.\n",
    .run = run,
};
