/* churn: label sets come and go while threads add to them, handlers sum in intervals of different lengths, or
 * take single values, the configuration changes and children are forked. What a label set has been given
 * arrives under its labels, in each handler, and memory follows the label sets that live: once there are LIVING
 * of them, a new one waits until the stream of another one can be reused. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"
#include "registry/family.h"
#include "runtime/runtime.h"

enum { THREADS = 4, SETS = 6000, LIVING = 900, RECENT = 40, FORK_EACH = 1500, CONFIGURE_EACH = 700 };
enum { NAMES = 3, GROUPS = 2, HANDLERS = 3 };

static const char *const names[NAMES] = {"requests", "size", "plain"};
static const char *const groups[GROUPS] = {"churn", "churn.single"};
static const char *const handlers[HANDLERS] = {"sums", "ranks", "single"};

static int sets;
static _Atomic int opened; /* label sets */
static _Atomic bool has_ended;
static _Atomic uint32_t *added;     /* by label set and name */
static uint32_t *arrived[HANDLERS]; /* the same. By the worker of the handler of that name alone */

/* ---- The destinations ------------------------------------------------------------------------ */

struct destination {
    const weir_host *host;
    uint32_t *arrived;
};

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    for (int i = 0; i < HANDLERS; i++) {
        if (strcmp(host->name, handlers[i]) != 0)
            continue;
        struct destination *destination = malloc(sizeof *destination);
        if (destination)
            *destination = (struct destination){host, arrived[i]};
        return destination;
    }
    return NULL;
}

static uint32_t *find(const struct destination *to, const weir_series *series)
{
    PLAIN_CHECK(series->label_count == 1 && strcmp(series->labels[0].key, "set") == 0);
    int set = atoi(series->labels[0].value), name = 0;
    while (name < NAMES && strcmp(series->name, names[name]) != 0)
        name++;
    PLAIN_CHECK(set < sets && name < NAMES && strcmp(series->group, groups[set % GROUPS]) == 0);
    return &to->arrived[set * NAMES + name];
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    const struct destination *to = self;
    const weir_summaries *summaries = to->host->service(to->host, WEIR_SERVICE_SUMMARIES);
    for (uint32_t i = 0; i < batch->count; i++) {
        const weir_sample *sample = &batch->samples[i];
        weir_summary summary = {.size = sizeof summary, .count = 1};
        if (sample->kind == WEIR_KIND_SUMMARY)
            PLAIN_CHECK(summaries->read(to->host, batch, sample, &summary));
        *find(to, weir_batch_series(batch, sample)) += (uint32_t)summary.count;
    }
    outcome->done = batch->count;
}

static void open_handler(void *self, weir_outcome *outcome)
{
    (void)self, (void)outcome;
}

static void close_handler(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .flags = WEIR_TYPE_SHARES_NOTHING, /* a child may be forked while it is in use */
    .name = "counting",
    .summary = "counts what arrives",
    .kinds = WEIR_KINDS_DOUBLE | WEIR_KINDS_INT | WEIR_KINDS_SUMMARY,
    .create = create,
    .open = open_handler,
    .emit = emit,
    .close = close_handler,
    .destroy = free,
};

/* ---- The program ----------------------------------------------------------------------------- */

static void configure(int turn)
{
    static const char *const every[] = {"10ms", "17ms"};
    char text[600];
    int length = snprintf(
        text, sizeof text,
        "{\"settings\":{\"expiry\":\"30ms\",\"shutdown_timeout\":\"1h\",\"max_series_per_name\":20000},"
        "\"handlers\":{\"*\":{\"block_timeout\":\"1h\"},"
        "\"sums\":{\"type\":\"counting\",\"aggregate\":\"%s\",\"percentiles\":[]},"
        "\"ranks\":{\"type\":\"counting\",\"aggregate\":\"%s\"},\"single\":{\"type\":\"counting\"}},"
        "\"groups\":{\"churn\":[\"sums\",\"ranks\"],\"churn.single\":[\"sums\",\"ranks\",\"single\"]}}",
        every[turn % 2], every[(turn + 1) % 2]);
    if (weir_configure_text(text, (size_t)length) != 0)
        plain_fail(__FILE__, __LINE__, "weir_configure_text", weir_last_error());
}

static bool add(int set, int name)
{
    char text[16];
    snprintf(text, sizeof text, "%d", set);
    const weir_label label = {"set", text};
    weir_stream *stream = weir_get_stream(groups[set % GROUPS]);
    const weir_sample_spec spec = {
        .size = sizeof spec, .name = names[name], .value = 1, .labels = &label, .label_count = 1};
    bool is_added = (set + name) % 2 ? weir_add_value_labeled(stream, names[name], 1, &label, 1) == 0
                                     : weir_add(stream, &spec) == 0;
    if (is_added)
        atomic_fetch_add_explicit(&added[set * NAMES + name], 1, memory_order_relaxed);
    return is_added;
}

static void *run(void *number)
{
    uint64_t state = (uint64_t)(uintptr_t)number + 1;
    while (!atomic_load(&has_ended)) {
        int set = atomic_load(&opened) - 1 - (int)plain_draw(&state, RECENT);
        PLAIN_CHECK(add(set < 0 ? 0 : set, (int)plain_draw(&state, NAMES)));
    }
    return NULL;
}

static bool has_spare(int set)
{
    struct wr_registry *registry = &wr_runtime_get()->registry;
    const char *name = names[set % NAMES];
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    const struct wr_group *group = wr_registry_find_group(
        registry, &(struct wr_group_key){groups[set % GROUPS], strlen(groups[set % GROUPS])});
    const struct wr_family *family = wr_family_find(registry, group, name, strlen(name));
    bool has = family->spare[0];
    wr_registry_unlock(registry, &signals);
    return has;
}

static void open_set(int set)
{
    while (set >= LIVING && !has_spare(set))
        usleep(1000);
    PLAIN_CHECK(add(set, set % NAMES));
    atomic_store(&opened, set + 1);
}

/* The child has none of what its parent's label sets had. */
static void fork_child(int set)
{
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < HANDLERS; i++)
            memset(arrived[i], 0, (size_t)(sets * NAMES) * sizeof *arrived[i]);
        PLAIN_CHECK(add(set, 0) && add(0, 1) && weir_flush(-1) == 0);
        PLAIN_CHECK(arrived[0][set * NAMES] == 1 && arrived[0][1] == 1);
        PLAIN_CHECK(ledger_all_are_balanced());
        _exit(0);
    }
    int status = 0;
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child);
    PLAIN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void declare(const char *group)
{
    weir_metric_spec spec = {.size = sizeof spec, .instrument = WEIR_COUNTER};
    PLAIN_CHECK(weir_declare(weir_get_stream(group), names[0], &spec) == 0);
    spec.instrument = WEIR_HISTOGRAM;
    PLAIN_CHECK(weir_declare(weir_get_stream(group), names[1], &spec) == 0);
}

static void check(void)
{
    for (int i = 0; i < sets * NAMES; i++)
        for (int k = 0; k < HANDLERS; k++) {
            bool is_routed = k < 2 || i / NAMES % GROUPS == 1;
            if (arrived[k][i] == (is_routed ? added[i] : 0))
                continue;
            fprintf(stderr, "set %d, %s, %s: %" PRIu32 " of %" PRIu32 "\n", i / NAMES, names[i % NAMES],
                    handlers[k], arrived[k][i], (uint32_t)added[i]);
            plain_fail(__FILE__, __LINE__, "arrived == added", "");
        }
}

int main(void)
{
    pthread_t threads[THREADS];
    sets = plain_rounds(SETS);
    plain_hang_no_longer_than(plain_limit(60));
    added = calloc((size_t)(sets * NAMES), sizeof *added);
    for (int i = 0; i < HANDLERS; i++)
        PLAIN_CHECK((arrived[i] = calloc((size_t)(sets * NAMES), sizeof *arrived[i])) && added);
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    configure(0);
    declare(groups[0]);
    declare(groups[1]);
    PLAIN_CHECK(weir_start() == 0);
    open_set(0);
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    for (int set = 1; set < sets; set++) {
        open_set(set);
        if (set % CONFIGURE_EACH == 0)
            configure(set / CONFIGURE_EACH);
        if (set % FORK_EACH == 0 && !plain_is_sanitized(""))
            fork_child(set);
    }
    atomic_store(&has_ended, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    PLAIN_CHECK(weir_flush(-1) == 0 && ledger_all_are_balanced());
    PLAIN_CHECK(weir_shutdown(-1) == 0); /* totals are repeated until then */
    check();
    uint32_t series = atomic_load(&wr_runtime_get()->registry.series);
    printf("%d label sets, %" PRIu32 " series\n", sets, series);
    PLAIN_CHECK(sets < SETS || series < (uint32_t)sets, "streams are reused");
    for (int i = 0; i < HANDLERS; i++)
        free(arrived[i]);
    free((void *)added);
    return 0;
}
