/* weir bench-handler: measures the throughput of a handler type and its format, without the core: batches are
 * passed to it one after the other, as a worker does. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/command.h"
#include "common/json.h"
#include "os/clock.h"
#include "text/error.h"
#include "text/units.h"
#include "vet/child.h"
#include "vet/probe.h"
#include "vet/subject.h"

enum { MAX_BATCHES = 100000, SIZES = 4 };

static const uint32_t sizes[SIZES] = {1, 10, 100, 5000};

struct timing {
    uint32_t size;
    uint64_t batches;
    double seconds, median_us, p99_us;
};

/* Shared with the child process that measures, so that a crash of the plugin does not end the command. */
static struct {
    int64_t time_ns; /* per size */
    struct timing *timings;
    uint32_t measured; /* sizes */
} * bench;

static int compare(const void *a, const void *b)
{
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Measures batches of one size for bench->time_ns. */
static void measure(struct vet_probe *probe, uint32_t size, int64_t *times_ns, struct timing *timing)
{
    uint64_t count = 0;
    int64_t begin_ns = wr_clock_monotonic_ns(), spent_ns = 0;
    const struct vet_recipe recipe = {.count = size, .seed = size};
    vet_probe_must_deliver(probe, recipe);
    do {
        weir_outcome outcome;
        struct vet_recipe next = recipe;
        next.kinds = probe->type->kinds;
        next.sequence = probe->sequence;
        probe->sequence += size;
        const weir_batch *batch = vet_batches_make(&next);
        int64_t before_ns = wr_clock_monotonic_ns();
        vet_probe_emit(probe, batch, &outcome);
        times_ns[count] = wr_clock_monotonic_ns() - before_ns;
        spent_ns += times_ns[count++];
        vet_batches_end(batch);
        if (outcome.code != WEIR_OUTCOME_OK || outcome.done < size)
            vet_fail("a batch of %u samples was not accepted: %s", size,
                     *probe->reason ? probe->reason : "accepted in part");
    } while (count < MAX_BATCHES && wr_clock_monotonic_ns() - begin_ns < bench->time_ns);
    qsort(times_ns, count, sizeof *times_ns, compare);
    const int64_t median_ns = times_ns[count / 2], p99_ns = times_ns[count * 99 / 100];
    *timing =
        (struct timing){size, count, (double)spent_ns / 1e9, (double)median_ns / 1e3, (double)p99_ns / 1e3};
}

static void measure_all(struct vet_probe *probe)
{
    int64_t *times_ns = calloc(MAX_BATCHES, sizeof *times_ns);
    if (!times_ns)
        vet_skip("out of memory");
    vet_probe_must_open(probe);
    for (uint32_t i = 0; i < SIZES; i++) {
        measure(probe, sizes[i], times_ns, &bench->timings[i]);
        bench->measured = i + 1;
    }
    vet_probe_flush(probe, -1);
    vet_probe_close(probe);
    free(times_ns);
}

static void run_bench(const struct vet_subject *subject)
{
    vet_probe_run(subject, measure_all);
    vet_pass("measured");
}

/* ---- Results --------------------------------------------------------------------------------- */

static double values_per_second(const struct timing *timing)
{
    return timing->seconds > 0 ? (double)(timing->batches * timing->size) / timing->seconds : 0;
}

static int print_json(void)
{
    struct json_object *array = json_start_array();
    for (uint32_t i = 0; i < bench->measured; i++) {
        const struct timing *timing = &bench->timings[i];
        struct json_object *object = json_add_object(array, NULL);
        json_add_count(object, "batch", timing->size);
        json_add_count(object, "batches", timing->batches);
        json_add_decimals(object, "values_per_second", values_per_second(timing), 0);
        json_add_decimals(object, "median_us", timing->median_us, 3);
        json_add_decimals(object, "p99_us", timing->p99_us, 3);
    }
    return json_print(array, JSON_LINES, EXIT_SUCCESS);
}

static int print_text(void)
{
    printf("%8s %10s %14s %12s %12s\n", "batch", "batches", "values/s", "median us", "p99 us");
    for (uint32_t i = 0; i < bench->measured; i++) {
        const struct timing *timing = &bench->timings[i];
        printf("%8u %10" PRIu64 " %14.0f %12.2f %12.2f\n", timing->size, timing->batches,
               values_per_second(timing), timing->median_us, timing->p99_us);
    }
    return EXIT_SUCCESS;
}

static void *share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Measures the first type of the file, unless subject->type is set. */
static int bench_file(struct vet_subject *subject, int64_t time_ns, bool json)
{
    const struct vet_check check = {"bench", run_bench, "testing", VET_LOAD | VET_LIFE, false};
    static struct vet_result result;
    static char type[VET_TYPE_NAME];
    struct vet_page *page = share(sizeof *page);
    bench = share(sizeof *bench + SIZES * sizeof *bench->timings);
    if (!page || !bench)
        return command_fail("out of memory");
    bench->timings = (struct timing *)(bench + 1);
    bench->time_ns = time_ns;
    subject->deadline_ms = 60000 + SIZES * time_ns / 500000; /* after half of it the handler is stopped */
    vet_child_run(&vet_check_load, subject, page, &result);
    if (result.verdict != VET_OK)
        return command_fail("%s", result.message);
    if (!subject->type)
        subject->type = memcpy(type, page->types[0], sizeof type);
    *page = (struct vet_page){0};
    vet_child_run(&check, subject, page, &result);
    int code = json ? print_json() : print_text();
    return result.verdict == VET_OK ? code : command_fail("%s", result.message);
}

/* ---- The command ----------------------------------------------------------------------------- */

enum { OPTION_TYPE = 256 };

static int take(const struct command *command, struct vet_subject *subject, int option, int64_t *time_ns)
{
    struct wr_error error = {0};
    switch (option) {
    case 'o':
        subject->options = optarg;
        return vet_subject_check_options(optarg, &error) ? 0 : command_refuse(command, "%s", error.text);
    case OPTION_TYPE: subject->type = optarg; return 0;
    case 'd':
        return wr_units_read_duration(optarg, time_ns)
                   ? 0
                   : command_refuse(command, "--time: \"%s\" is not " WR_UNITS_DURATION_HINT, optarg);
    default: return command_show_usage(command);
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"options", required_argument, NULL, 'o'}, {"type", required_argument, NULL, OPTION_TYPE},
        {"time", required_argument, NULL, 'd'},    {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},          {0}};
    struct vet_subject subject = {0};
    int64_t time_ns = INT64_C(1000000000);
    bool json = false;
    int error = 0;
    for (int option; !error && (option = getopt_long(argc, argv, "o:d:h", options, NULL)) != -1;) {
        if (option == 'h')
            return command_print_help(command, stdout);
        json |= option == 'j';
        error = option == 'j' ? 0 : take(command, &subject, option, &time_ns);
    }
    if (error)
        return error;
    if (argc - optind != 1)
        return command_refuse(command, "expected one FILE, the shared object of a plugin");
    char *path = realpath(argv[optind], NULL);
    if (!path)
        return command_fail("%s: %s", argv[optind], strerror(errno));
    subject.path = path;
    int result = bench_file(&subject, time_ns, json);
    free(path);
    return result;
}

const struct command command_bench_handler = {
    .name = "bench-handler",
    .arguments = "FILE [-o JSON] [--type NAME] [-d TIME] [--json]",
    .summary = "Measures the throughput of a handler type.",
    .help =
        "\n  -o, --options JSON  the handler's options, as in a configuration\n"
        "      --type NAME     one of the file's handler types; default: the first\n"
        "  -d, --time TIME     how long to measure each batch size (1s)\n"
        "      --json          as JSON\n"
        "  -h, --help          this text\n\n"
        "Batches are passed to the handler one after the other, without the core. Exit status 1: the handler\n"
        "could not be created, or did not accept a batch.\n",
    .run = run,
};
