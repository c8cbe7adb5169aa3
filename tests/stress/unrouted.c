/* Threads count values of a few groups that nobody listens to, in runs of all lengths, while others sum up what
 * there is: never more than was counted, and to the last value when all are at rest. */

#include <pthread.h>
#include <stdlib.h>

#include "../support/plain.h"
#include "os/clock.h"
#include "text/common.h"
#include "producer/unrouted.h"

enum { THREADS = 3, GROUPS = 4, SECONDS = 1 };

static struct wr_group *groups[GROUPS];
static struct wr_unrouted unrouted[THREADS];
static _Atomic uint64_t begun[THREADS][GROUPS]; /* before a value is counted */
static _Atomic bool done;

static void *count(void *argument)
{
    struct wr_unrouted *mine = argument;
    size_t number = (size_t)(mine - unrouted);
    uint64_t random = number + 1;
    int64_t end_ns = wr_clock_monotonic_ns() + SECONDS * WR_NS_PER_S;
    while (wr_clock_monotonic_ns() < end_ns)
        for (int i = 0; i < 100; i++) {
            uint32_t group = plain_draw(&random, GROUPS), length = plain_draw(&random, 6);
            for (uint32_t k = 0; k < length; k++) {
                atomic_fetch_add(&begun[number][group], 2);
                wr_unrouted_count(mine, groups[group], 2);
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

static uint64_t sum_begun(int group)
{
    uint64_t sum = 0;
    for (int i = 0; i < THREADS; i++)
        sum += atomic_load(&begun[i][group]);
    return sum;
}

static void *look(void *argument)
{
    uint64_t *looks = argument;
    while (!atomic_load(&done)) {
        uint64_t sums[GROUPS];
        sum_up(sums);
        for (int i = 0; i < GROUPS; i++)
            PLAIN_CHECK(sums[i] <= sum_begun(i), "a value was counted twice");
        ++*looks;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS], looker;
    uint64_t looks = 0, sums[GROUPS], all = 0, totals = 0;
    plain_hang_no_longer_than(60);
    for (int i = 0; i < GROUPS; i++)
        PLAIN_CHECK((groups[i] = calloc(1, sizeof *groups[i] + 1)));
    PLAIN_CHECK(pthread_create(&looker, NULL, look, &looks) == 0);
    for (int i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, count, &unrouted[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    pthread_join(looker, NULL);
    sum_up(sums);
    for (int i = 0; i < GROUPS; i++) {
        PLAIN_CHECK(sums[i] == sum_begun(i), "values are missing");
        all += sums[i];
        free(groups[i]);
    }
    for (int i = 0; i < THREADS; i++)
        totals += wr_unrouted_total(&unrouted[i]);
    PLAIN_CHECK(totals == all && all);
    printf("%llu values, %llu looks\n", (unsigned long long)all, (unsigned long long)looks);
    return 0;
}
