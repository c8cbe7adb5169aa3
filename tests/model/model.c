/* model: random sequences of weir's calls, by several threads and forked children, checked against a model
 * of which values must have arrived, where, in which order, and which may be missing.
 *
 * WEIR_TEST_SEED=N  WEIR_TEST_ROUNDS=N  WEIR_TEST_VARIANT=plain|spool|journal|both  model
 *
 * Each seed is one life: a process that adds values, is reconfigured, flushes, forks, and shuts down or is
 * killed; with a spool or a journal, another process runs afterwards and must receive everything that was
 * left. A failure prints its seed; because it may depend on the scheduling of threads, it may take several
 * runs to reproduce it. */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../support/plain.h"
#include "actor.h"
#include "instruments.h"
#include "plan.h"
#include "scripted.h"
#include "checker.h"
#include "sums.h"
#include "world.h"

enum { ROUNDS = 6, OPERATIONS = 500, HANG_S = 100, LONG_MS = 80000 };

static const char *const variants[] = {"plain", "spool", "journal", "both"};

/* How the first process ends. */
static enum end { WAIT_FOR_ALL, HURRY, SHUT_DOWN_UNDER_WAY, KILL } end;

static uint64_t first_seed = 1, rounds = ROUNDS;
static bool is_sanitized;

/* ---- A life ---------------------------------------------------------------------------------- */

static void draw_terms(uint64_t seed, int variant, const char *folder)
{
    uint64_t state = seed * 2654435761 + 1;
    for (int i = 0; i < 8; i++)
        plain_draw(&state, 2);
    plan_terms =
        (struct plan_terms){.seed = seed, .spool = variant & 1, .journal = variant & 2, .folder = folder};
    plan_terms.lossless = plain_draw(&state, 3) != 0;
    plan_terms.picky = plain_draw(&state, 3) == 0;
    plan_terms.sync = plain_draw(&state, 3) == 0;
    scripted_behaviour = (struct scripted_behaviour){
        .failure_odds = plain_draw(&state, 3) ? 3 + plain_draw(&state, 20) : 0,
        .rejects = plain_draw(&state, 2),
        .fails_waiting_calls = plain_draw(&state, 4) == 0,
        .fails = !plan_terms.lossless && plain_draw(&state, 2),
    };
    end = (enum end)plain_draw(&state, 3);
    if (plan_terms.journal && plan_terms.lossless && !plan_terms.spool && plain_draw(&state, 2))
        end = KILL;
    plan_draw(&state);
}

static void sleep_us(uint32_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
}

/* Ends while the other threads still work. */
static void end_early(uint64_t *state)
{
    sleep_us(plain_draw(state, 20000));
    atomic_store(&world->ends[world_self].in_a_hurry, true);
    if (end == KILL) {
        atomic_store(&world->ends[world_self].leaves, true);
        raise(SIGKILL);
    }
}

static void run_first(void)
{
    pthread_t threads[ACTOR_THREADS];
    struct actor actors[ACTOR_THREADS];
    uint64_t state = plan_terms.seed + 77;
    int result = 0;
    scripted_register();
    instruments_declare();
    actor_configure_first(0);
    for (uint32_t i = 0; i < ACTOR_THREADS; i++) {
        actors[i] = (struct actor){.id = i,
                                   .operations = OPERATIONS,
                                   .state = plan_terms.seed * 31 + i + 1,
                                   .configures = true,
                                   .forks = i == 0 && !is_sanitized};
        PLAIN_CHECK(pthread_create(&threads[i], NULL, actor_run, &actors[i]) == 0);
    }
    if (end == SHUT_DOWN_UNDER_WAY || end == KILL) {
        end_early(&state);
        result = checker_shut_down(plain_draw(&state, 2) ? LONG_MS : 0);
    }
    for (int i = 0; i < ACTOR_THREADS; i++)
        pthread_join(threads[i], NULL);
    if (end == HURRY)
        atomic_store(&world->ends[world_self].in_a_hurry, true);
    if (end != SHUT_DOWN_UNDER_WAY)
        result = checker_shut_down(end == HURRY ? plain_draw(&state, 20) : LONG_MS);
    checker_check_process(result);
}

/* The last process: adopts run all others have left, and may lose nothing. */
static void run_last(void)
{
    struct actor actor = {.id = WORLD_ACTORS - 1, .state = 1};
    world_self = WORLD_LAST;
    plan_terms.lossless = true;
    plan_terms.sync = false;
    scripted_behaviour = (struct scripted_behaviour){0};
    scripted_register();
    instruments_declare();
    sums_first_config = PLAN_LAST;
    actor_configure_first(PLAN_LAST);
    actor_add_some(&actor);
    int flushed = weir_flush(LONG_MS);
    if (flushed != 0 && !(flushed == WEIR_ERR_DROPPED && plan_terms.picky))
        world_fail("the last flush: %s", weir_last_error());
    checker_check_process(checker_shut_down(LONG_MS));
}

/* ---- Processes ------------------------------------------------------------------------------- */

static int run_process(void (*run)(void), bool may_be_killed)
{
    int status, result = 0;
    pid_t first = fork(), pid;
    if (first == 0) {
        plain_hang_no_longer_than(HANG_S);
        run();
        _exit(0);
    }
    /* this process is a subreaper: it also waits for orphaned children */
    while ((pid = wait(&status)) > 0 || errno == EINTR) {
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && pid == first && may_be_killed;
        if (pid > 0 && !killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
            fprintf(stderr, "process %d ended by %s %d\n", (int)pid, WIFEXITED(status) ? "status" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
            result = 1;
        }
    }
    return result;
}

static void check_all(void)
{
    for (uint32_t i = 0; i < WORLD_LAST; i++)
        checker_check_life(i);
    sums_check_life();
}

static int run_life(uint64_t seed, int variant, const char *folder)
{
    char command[200];
    draw_terms(seed, variant, folder);
    world_make();
    int result = run_process(run_first, end == KILL);
    if (!result && variant)
        result = run_process(run_last, false);
    if (!result && variant)
        result = run_process(check_all, false);
    if (!result) {
        snprintf(command, sizeof command, "rm -rf %s/*", folder);
        PLAIN_CHECK(system(command) == 0);
        return 0;
    }
    fprintf(stderr,
            "failed: seed %llu, %s; again: WEIR_TEST_SEED=%llu WEIR_TEST_ROUNDS=1 WEIR_TEST_VARIANT=%s "
            "make check TESTS=tests/model/model.p; its files are in %s\n",
            (unsigned long long)seed, variants[variant], (unsigned long long)seed, variants[variant], folder);
    return result;
}

/* With a spool a life takes long with sanitizers: it runs only if selected. */
static bool is_selected(int variant)
{
    const char *selected = getenv("WEIR_TEST_VARIANT");
    return selected ? strcmp(selected, variants[variant]) == 0 : !is_sanitized || !(variant & 1);
}

static uint64_t read_number(const char *name, uint64_t default_value)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : default_value;
}

int main(void)
{
    char folder[] = "/tmp/weir-model-XXXXXX";
    const char *sanitized = getenv("WEIR_TEST_SANITIZED");
    is_sanitized = sanitized && *sanitized;
    first_seed = read_number("WEIR_TEST_SEED", first_seed);
    rounds = read_number("WEIR_TEST_ROUNDS", rounds);
    setenv("WEIR_LOG", "off", 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    PLAIN_CHECK(mkdtemp(folder) != NULL);
    printf("seeds %llu to %llu\n", (unsigned long long)first_seed,
           (unsigned long long)(first_seed + rounds - 1));
    for (uint64_t seed = first_seed; seed < first_seed + rounds; seed++)
        for (int i = 0; i < 4; i++)
            if (is_selected(i) && run_life(seed, i, folder) != 0)
                return 1;
    rmdir(folder);
    return 0;
}
