/* starters: processes that start at the same time with one folder for their journals, or for their spools. Each
 * has its own in it: a value that was added before the process was killed, or that was spooled at its end, is
 * delivered by a later process. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "counting.h"

enum { ROUNDS = 8, PROCESSES = 40, VALUES = ROUNDS * PROCESSES };

/* Shared by all processes. */
struct shared {
    _Atomic uint32_t waiting, go;
    _Atomic uint32_t complaints;
    _Atomic uint8_t added[VALUES], delivered[VALUES];
};

static struct shared *shared;
static char place[] = "/tmp/weir-starters-XXXXXX";

static void mark(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    for (uint32_t i = 0; i < batch->count; i++) {
        int64_t value = batch->samples[i].value.i64;
        PLAIN_CHECK(value >= -1 && value < VALUES);
        if (value >= 0)
            atomic_store(&shared->delivered[value], 1);
    }
}

static void fail(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    outcome->code = WEIR_OUTCOME_RETRY;
    outcome->done = 0;
}

static void count_complaint(void *context, int level, const char *text)
{
    (void)context;
    if (level > WEIR_LOG_WARNING || (!strstr(text, "journal") && !strstr(text, "spool:")))
        return;
    fprintf(stderr, "%s\n", text);
    atomic_fetch_add(&shared->complaints, 1);
}

static void configure(bool journal, void (*emit)(void *self, const weir_batch *batch, weir_outcome *outcome))
{
    static weir_handler_type type;
    char config[300];
    type = counting_type;
    type.emit = emit;
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    int length = snprintf(config, sizeof config,
                          journal ? "{\"settings\":{\"journal\":\"%s\"},\"handlers\":{\"counting\":{\"type\":"
                                    "\"counting\"}},\"groups\":{\"*\":\"counting\"}}"
                                  : "{\"handlers\":{\"counting\":{\"type\":\"counting\",\"spool\":\"%s\"}},"
                                    "\"groups\":{\"*\":\"counting\"}}",
                          place);
    PLAIN_CHECK(weir_configure_text(config, (size_t)length) == 0, "not configured");
}

static void add(int value)
{
    PLAIN_CHECK(weir_add_int(weir_get_stream("starters"), "value", value) == 0);
    atomic_store(&shared->added[value], 1);
}

static void wait_for_start(void)
{
    atomic_fetch_add(&shared->waiting, 1);
    while (!atomic_load(&shared->go))
        usleep(100);
}

static void be_killed(int value)
{
    weir_set_log(count_complaint, NULL);
    wait_for_start();
    configure(true, mark);
    add(value);
    raise(SIGKILL);
}

static void leave_in_spool(int value)
{
    weir_set_log(count_complaint, NULL);
    wait_for_start();
    configure(false, fail);
    add(value);
    int result = weir_shutdown(0);
    PLAIN_CHECK(result == WEIR_ERR_SPOOLED, "the value was not spooled");
    _exit(0);
}

static void drain(bool journal)
{
    configure(journal, mark);
    PLAIN_CHECK(weir_add_int(weir_get_stream("starters"), "value", -1) == 0);
    PLAIN_CHECK(weir_flush(-1) == 0 && weir_shutdown(-1) == 0);
    _exit(0);
}

static void start_together(int first, void (*start)(int value), int expected)
{
    pid_t children[PROCESSES];
    int status;
    atomic_store(&shared->waiting, 0);
    atomic_store(&shared->go, 0);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        PLAIN_CHECK(children[i] >= 0);
        if (children[i] == 0) {
            plain_hang_no_longer_than(60);
            start(first + i);
        }
    }
    while (atomic_load(&shared->waiting) < PROCESSES)
        usleep(1000);
    atomic_store(&shared->go, 1);
    for (int i = 0; i < PROCESSES; i++)
        PLAIN_CHECK(waitpid(children[i], &status, 0) == children[i] && status == expected);
}

static void drain_in_child(bool journal)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        drain(journal);
    PLAIN_CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void run_all(const char *what, bool journal)
{
    int added = 0, delivered = 0;
    memset(shared, 0, sizeof *shared);
    strcpy(place, "/tmp/weir-starters-XXXXXX");
    PLAIN_CHECK(mkdtemp(place));
    for (int round = 0; round < ROUNDS; round++) {
        start_together(round * PROCESSES, journal ? be_killed : leave_in_spool, journal ? SIGKILL : 0);
        drain_in_child(journal);
    }
    for (int i = 0; i < VALUES; i++) {
        added += atomic_load(&shared->added[i]);
        delivered += atomic_load(&shared->added[i]) && atomic_load(&shared->delivered[i]);
    }
    printf("%s: %d of %d values delivered, %u complaints\n", what, delivered, added,
           atomic_load(&shared->complaints));
    PLAIN_CHECK(added == VALUES && delivered == added && !atomic_load(&shared->complaints));
    PLAIN_CHECK(rmdir(place) == 0, "something is left in the folder");
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(shared != MAP_FAILED);
    run_all("journal", true);
    run_all("spool", false);
    return 0;
}
