/* unrouted: threads count values of a few groups without a route, in runs of all lengths, while another
 * thread sums up the counts: never more than was counted, and the exact number when all threads have ended. */

#include <pthread.h>
#include <stdlib.h>

#include "../support/plain.h"
#include "os/clock.h"
#include "text/common.h"
#include "producer/unrouted.h"

enum { THREADS = 3, GROUPS = 4, SECONDS = 1 };

static struct wr_group *groups[GROUPS];
static struct wr_unrouted unrouted[THREADS];
static _Atomic uint64_t started[THREADS][GROUPS]; /* incremented before a value is counted */
static _Atomic bool done;

static void *count(void *argument)
{
    struct wr_unrouted *own = argument;
    size_t number = (size_t)(own - unrouted);
    uint64_t random = number + 1;
    int64_t end_ns = wr_clock_monotonic_ns() + SECONDS * WR_NS_PER_S;
    while (wr_clock_monotonic_ns() < end_ns)
        for (int i = 0; i < 100; i++) {
            uint32_t group = plain_draw(&random, GROUPS), length = plain_draw(&random, 6);
            for (uint32_t k = 0; k < length; k++) {
                atomic_fetch_add(&started[number][group], 2);
                wr_unrouted_count(own, groups[group], 2);
            }
        }
    return NULL;
}

/* The groups' own counters before the runs, as wr_ledger_list_unrouted has it. */
static void sum_up(uint64_t *sums)
{
    for (int i = 0; i < GROUPS; i++)
        sums[i] = atomic_load(&groups[i]->unrouted);
    for (int i = 0; i < THREADS; i++) {
        uint64_t values;
        const struct wr_group *group = wr_unrouted_run(&unrouted[i], &values);
        for (int k = 0; k < GROUPS; k++)
            sums[k] += groups[k] == group ? values : 0;
    }
}

static uint64_t sum_started(int group)
{
    uint64_t sum = 0;
    for (int i = 0; i < THREADS; i++)
        sum += atomic_load(&started[i][group]);
    return sum;
}

static void *check_sums(void *argument)
{
    uint64_t *checks = argument;
    while (!atomic_load(&done)) {
        uint64_t sums[GROUPS];
        sum_up(sums);
        for (int i = 0; i < GROUPS; i++)
            PLAIN_CHECK(sums[i] <= sum_started(i), "a value was counted twice");
        ++*checks;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS], checker;
    uint64_t checks = 0, sums[GROUPS], all = 0, totals = 0;
    plain_hang_no_longer_than(60);
    for (int i = 0; i < GROUPS; i++)
        PLAIN_CHECK((groups[i] = calloc(1, sizeof *groups[i] + 1)));
    PLAIN_CHECK(pthread_create(&checker, NULL, check_sums, &checks) == 0);
    for (int i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, count, &unrouted[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    pthread_join(checker, NULL);
    sum_up(sums);
    for (int i = 0; i < GROUPS; i++) {
        PLAIN_CHECK(sums[i] == sum_started(i), "values are missing");
        all += sums[i];
        free(groups[i]);
    }
    for (int i = 0; i < THREADS; i++)
        totals += wr_unrouted_total(&unrouted[i]);
    PLAIN_CHECK(totals == all && all);
    printf("%llu values, %llu checks\n", (unsigned long long)all, (unsigned long long)checks);
    return 0;
}
