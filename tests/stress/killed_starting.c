/* killed_starting: four processes that share a folder for their journals and one for their spools start
 * together, again and again, and each is killed within milliseconds: before it has a journal, while it adopts
 * what others have left, while it adds, while it moves values to its spool. Each value whose call returned 0 is
 * delivered by one of them or by the last process, nothing is reported as damaged or kept as such, and nothing
 * is left. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "counting.h"

enum { PROCESSES = 4, ROUNDS = 15, VALUES = 600, THREADS = 2, BURST = 50, LIFE_US = 25000, HANG_S = 200 };

/* Of all processes; a process has VALUES numbers of its own. */
struct shared {
    _Atomic uint32_t waiting, go, adding, complaints;
    _Atomic uint8_t marks[]; /* ADDED and DELIVERED, by value */
};

enum { ADDED = 1, DELIVERED = 2 };

static struct shared *shared;
static char place[] = "/tmp/weir-killed-XXXXXX";
static bool is_flaky;
static uint64_t random_state;
static int first_value;
static _Atomic int next_value;

static void mark(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    if (is_flaky && plain_draw(&random_state, 3) == 0) {
        outcome->code = WEIR_OUTCOME_RETRY;
        outcome->done = 0;
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->samples[i].value.i64 >= 0)
            atomic_fetch_or(&shared->marks[batch->samples[i].value.i64], DELIVERED);
}

/* What is logged as a warning or an error, other than that the handler fails, that its spool is used, and that
 * a busy machine needs more than a second for the shutdown. */
static bool is_complaint(int level, const char *text)
{
    static const char *const expected[] = {"retrying",    "back after", "still failing",
                                           "spooling to", "replayed",   "shutting down: waiting"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (strstr(text, expected[i]))
            return false;
    return level <= WEIR_LOG_WARNING;
}

static void count_complaint(void *context, int level, const char *text)
{
    (void)context;
    if (!is_complaint(level, text))
        return;
    fprintf(stderr, "%s\n", text);
    atomic_fetch_add(&shared->complaints, 1);
}

static void configure(void)
{
    static weir_handler_type type;
    char config[500];
    type = counting_type;
    type.emit = mark;
    weir_set_log(count_complaint, NULL);
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    int length = snprintf(
        config, sizeof config,
        "{\"settings\":{\"journal\":\"%s/journal\"},\"handlers\":{\"counting\":{\"type\":"
        "\"counting\",\"spool\":\"%s/spool\",\"block_timeout\":\"1h\",\"queue\":\"4KiB\",\"retry_min\":\"1ms\","
        "\"retry_max\":\"2ms\"}},\"groups\":{\"*\":\"counting\"}}",
        place, place);
    PLAIN_CHECK(weir_configure_text(config, (size_t)length) == 0, "not configured");
}

static void *add_all(void *argument)
{
    int number;
    while ((number = atomic_fetch_add(&next_value, 1)) < VALUES) {
        if (weir_add_int(weir_get_stream("killed"), "value", first_value + number) == 0)
            atomic_fetch_or(&shared->marks[first_value + number], ADDED);
        if (number % BURST == 0) {
            atomic_store(&shared->adding, 1);
            usleep(1000);
        }
    }
    for (;;)
        pause();
    return argument;
}

static void be_killed(int number)
{
    pthread_t thread;
    plain_hang_no_longer_than(HANG_S);
    first_value = number * VALUES;
    is_flaky = true;
    random_state = (uint64_t)number + 1;
    atomic_fetch_add(&shared->waiting, 1);
    while (!atomic_load(&shared->go))
        usleep(100);
    configure();
    for (int i = 1; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&thread, NULL, add_all, NULL) == 0);
    add_all(NULL);
}

static void kill_round(int round, uint64_t *random)
{
    pid_t children[PROCESSES];
    int status;
    atomic_store(&shared->waiting, 0);
    atomic_store(&shared->go, 0);
    atomic_store(&shared->adding, 0);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        PLAIN_CHECK(children[i] >= 0);
        if (children[i] == 0)
            be_killed(round * PROCESSES + i);
    }
    while (atomic_load(&shared->waiting) < PROCESSES)
        usleep(1000);
    atomic_store(&shared->go, 1);
    /* in every other round values are added, on any machine */
    while (round % 2 == 0 && !atomic_load(&shared->adding))
        usleep(1000);
    for (int i = 0; i < PROCESSES; i++) {
        usleep(plain_draw(random, LIFE_US / PROCESSES * 2));
        kill(children[i], SIGKILL);
    }
    for (int i = 0; i < PROCESSES; i++)
        PLAIN_CHECK(waitpid(children[i], &status, 0) == children[i] && status == SIGKILL);
}

static bool all_are_delivered(int count, int *added)
{
    *added = 0;
    for (int i = 0; i < count; i++) {
        uint8_t marks = atomic_load(&shared->marks[i]);
        if (marks == ADDED)
            return false;
        *added += marks & ADDED;
    }
    return true;
}

/* What is left at the end of this process is a failure. */
static void drain(int count)
{
    int added;
    plain_hang_no_longer_than(plain_limit(HANG_S));
    configure();
    PLAIN_CHECK(weir_add_int(weir_get_stream("killed"), "value", -1) == 0);
    for (int i = 0; i < 100000 && !all_are_delivered(count, &added); i++)
        usleep(5000);
    PLAIN_CHECK(weir_flush(-1) == 0 && weir_shutdown(-1) == 0);
    _exit(0);
}

static void print_lost(int count)
{
    int lost = 0;
    for (int i = 0; i < count; i++)
        if (atomic_load(&shared->marks[i]) == ADDED && lost++ < 10)
            fprintf(stderr, "value %d of process %d is lost\n", i % VALUES, i / VALUES);
    fprintf(stderr, "%d values are lost; see %s\n", lost, place);
}

static bool remove_all(void)
{
    char command[400];
    snprintf(command, sizeof command,
             "cd %s && rmdir journal && { [ ! -d spool ] || rmdir spool; } && rmdir %s", place, place);
    return system(command) == 0;
}

int main(void)
{
    int status, added, rounds = plain_rounds(ROUNDS), count = rounds * PROCESSES * VALUES;
    uint64_t random = (uint64_t)getpid();
    shared =
        mmap(NULL, sizeof *shared + (size_t)count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(shared != MAP_FAILED && mkdtemp(place));
    for (int round = 0; round < rounds; round++)
        kill_round(round, &random);
    pid_t child = fork();
    if (child == 0)
        drain(count);
    PLAIN_CHECK(waitpid(child, &status, 0) == child && status == 0, "the last process failed");
    if (!all_are_delivered(count, &added)) {
        print_lost(count);
        return 1;
    }
    printf("%d processes killed, %d values delivered, %u complaints\n", rounds * PROCESSES, added,
           atomic_load(&shared->complaints));
    PLAIN_CHECK(added > 0 && !atomic_load(&shared->complaints));
    PLAIN_CHECK(remove_all(), "something is left");
    return 0;
}
