/* busy_at_fork: the program forks while a handler is inside its callback for longer than the fork waits. In the
 * child, types whose handlers share nothing work as usual. Handlers of other types cannot be used there, the
 * idle ones neither: their values are dropped and counted, or, with a journal or a spool, left there and
 * delivered by a later process. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"

enum { HANDLERS = 4, VALUES = 10, HANG_S = 100 };

static const char *const names[HANDLERS] = {"sharing_busy", "sharing_idle", "alone_busy", "alone_idle"};

static bool is_sharing(int handler)
{
    return handler < 2;
}

/* Of all processes. */
struct shared {
    _Atomic uint64_t delivered[HANDLERS];
};

static struct shared *shared;
static char folder[] = "/tmp/weir-busy-XXXXXX";
static _Atomic bool hold;
static _Atomic int inside;

/* ---- The handler types ------------------------------------------------------------------------ */

static void *create(const weir_host *host, const void *options)
{
    static int numbers[HANDLERS] = {0, 1, 2, 3};
    (void)options;
    for (int i = 0; i < HANDLERS; i++)
        if (strcmp(host->name, names[i]) == 0)
            return &numbers[i];
    return NULL;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    int number = *(int *)self;
    (void)outcome;
    if (number % 2 == 0 && atomic_load(&hold)) {
        atomic_fetch_add(&inside, 1);
        while (atomic_load(&hold))
            usleep(1000);
    }
    atomic_fetch_add(&shared->delivered[number], batch->count);
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type sharing = {
    .size = sizeof sharing,
    .abi = WEIR_ABI,
    .name = "sharing",
    .summary = "may share locks, for tests",
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

static const weir_handler_type alone = {
    .size = sizeof alone,
    .abi = WEIR_ABI,
    .name = "alone",
    .summary = "shares nothing, for tests",
    .create = create,
    .emit = emit,
    .destroy = destroy,
    .flags = WEIR_TYPE_SHARES_NOTHING,
};

/* ---- Processes -------------------------------------------------------------------------------- */

enum keep { NOTHING, JOURNAL, SPOOL };

static void configure(enum keep keep)
{
    char text[2000], handlers[1000] = "", groups[300] = "", option[100] = "", settings[100] = "";
    if (keep == SPOOL)
        snprintf(option, sizeof option, ",\"spool\":\"%s/spool\"", folder);
    if (keep == JOURNAL)
        snprintf(settings, sizeof settings, "\"settings\":{\"journal\":\"%s/journal\"},", folder);
    for (int i = 0; i < HANDLERS; i++) {
        size_t length = strlen(handlers);
        snprintf(handlers + length, sizeof handlers - length, "%s\"%s\":{\"type\":\"%s\"%s}", i ? "," : "",
                 names[i], is_sharing(i) ? "sharing" : "alone", option);
        length = strlen(groups);
        snprintf(groups + length, sizeof groups - length, "%s\"%s\":\"%s\"", i ? "," : "", names[i], names[i]);
    }
    int length =
        snprintf(text, sizeof text, "{%s\"handlers\":{%s},\"groups\":{%s}}", settings, handlers, groups);
    PLAIN_CHECK(weir_register_handler_type(&sharing, NULL) == 0);
    PLAIN_CHECK(weir_register_handler_type(&alone, NULL) == 0);
    PLAIN_CHECK(weir_configure_text(text, (size_t)length) == 0);
}

static void check_child(enum keep keep)
{
    weir_handler_stats stats;
    for (int i = 0; i < HANDLERS; i++) {
        PLAIN_CHECK(weir_get_handler_stats(names[i], &stats, sizeof stats) == 0 && ledger_is_balanced(&stats));
        uint64_t dropped = stats.dropped[WEIR_DROPPED_FORK_UNSAFE], left = stats.queued + stats.spooled;
        printf("  %s: %llu delivered, %llu dropped, %llu queued or spooled\n", names[i],
               (unsigned long long)stats.delivered, (unsigned long long)dropped, (unsigned long long)left);
        PLAIN_CHECK(stats.offered == VALUES);
        if (!is_sharing(i))
            PLAIN_CHECK(stats.delivered == VALUES);
        else if (keep == NOTHING)
            PLAIN_CHECK(dropped == VALUES);
        else
            PLAIN_CHECK(left == VALUES);
    }
}

static void run_child(enum keep keep)
{
    plain_hang_no_longer_than(HANG_S);
    atomic_store(&hold, false);
    for (int i = 0; i < HANDLERS; i++)
        for (int j = 0; j < VALUES; j++)
            PLAIN_CHECK(weir_add_value(weir_get_stream(names[i]), "value", j) == 0);
    int result = weir_flush(-1);
    PLAIN_CHECK(result == (keep == NOTHING ? WEIR_ERR_DROPPED : WEIR_ERR_SPOOLED));
    check_child(keep);
    weir_shutdown(100);
    check_child(keep);
    fflush(stdout);
    _exit(0);
}

static void ignore_log(void *context, int level, const char *text)
{
    (void)context, (void)level, (void)text;
}

static void run_parent(enum keep keep)
{
    int status;
    weir_set_log(ignore_log, NULL);
    configure(keep);
    atomic_store(&hold, true);
    for (int i = 0; i < HANDLERS; i++)
        PLAIN_CHECK(weir_add_value(weir_get_stream(names[i]), "value", -1) == 0);
    while (atomic_load(&inside) < 2 || !atomic_load(&shared->delivered[1]) ||
           !atomic_load(&shared->delivered[3]))
        usleep(1000);
    pid_t child = fork();
    if (child == 0)
        run_child(keep);
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child failed");
    atomic_store(&hold, false);
    PLAIN_CHECK(weir_flush(-1) == 0 && weir_shutdown(-1) == 0);
    exit(0);
}

/* What an earlier process has left is delivered. */
static void run_successor(enum keep keep)
{
    weir_set_log(ignore_log, NULL);
    configure(keep);
    for (int i = 0; i < HANDLERS; i++)
        PLAIN_CHECK(weir_add_value(weir_get_stream(names[i]), "value", -1) == 0);
    for (int i = 0; i < HANDLERS; i++)
        while (atomic_load(&shared->delivered[i]) < VALUES + 2)
            usleep(1000);
    PLAIN_CHECK(weir_flush(-1) == 0 && weir_shutdown(-1) == 0);
    exit(0);
}

static void run_process(void (*run)(enum keep keep), enum keep keep)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(HANG_S);
        run(keep);
    }
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void run_case(const char *name, enum keep keep)
{
    puts(name);
    for (int i = 0; i < HANDLERS; i++)
        atomic_store(&shared->delivered[i], 0);
    run_process(run_parent, keep);
    if (keep != NOTHING)
        run_process(run_successor, keep);
    for (int i = 0; i < HANDLERS; i++) {
        uint64_t expected = keep != NOTHING ? VALUES + 2 : is_sharing(i) ? 1 : VALUES + 1;
        PLAIN_CHECK(atomic_load(&shared->delivered[i]) == expected);
    }
}

int main(void)
{
    char command[100];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(shared != MAP_FAILED && mkdtemp(folder));
    run_case("without a journal or spool:", NOTHING);
    run_case("with a journal:", JOURNAL);
    run_case("with a spool:", SPOOL);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0;
}
