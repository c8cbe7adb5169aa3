/* names: a hundred threads create series at the same time: the same names, their own, and more than are
 * allowed. */

#include <pthread.h>
#include <string.h>

#include "../support/plain.h"
#include "text/error.h"
#include "registry/family.h"
#include "registry/registry.h"
#include "registry/series.h"
#include "registry/stream.h"

enum { THREADS = 100, SHARED = 200, OWN = 30, GROUPS = 10, EXCESS = 20 };

static struct wr_registry registry;
static pthread_barrier_t start;

struct thread_names {
    pthread_t thread;
    unsigned number;
    struct weir_metric *shared[SHARED], *own[OWN], *excess[EXCESS];
};

static struct thread_names all_names[THREADS];

static struct weir_metric *name(unsigned group, const char *label, const char *prefix, unsigned number)
{
    struct wr_error error;
    char group_name[20], series_name[40];
    snprintf(group_name, sizeof group_name, "group%u", group);
    snprintf(series_name, sizeof series_name, "%s%u", prefix, number);
    const weir_label labels[] = {{"what", label}, {"and", "more"}};
    struct weir_stream *stream = wr_stream_get(&registry, group_name, labels, 2, &error);
    PLAIN_CHECK(stream->refusal == 0);
    return wr_series_get(&registry, stream, series_name, 0, &error);
}

/* A series that another thread has just created must be complete. */
static void check_series(const struct weir_metric *metric)
{
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    PLAIN_CHECK(view->id == metric->series && strcmp(view->name, metric->name) == 0);
    PLAIN_CHECK(view->label_count == 2 && strcmp(view->labels[0].key, "and") == 0);
    PLAIN_CHECK(wr_registry_series(&registry, metric->series) == metric);
}

static void *create_names(void *argument)
{
    struct thread_names *thread_names = argument;
    char prefix[20];
    snprintf(prefix, sizeof prefix, "own%u.", thread_names->number);
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < SHARED; i++) {
        unsigned index = (i + thread_names->number * 7) % SHARED; /* each thread begins with another name */
        thread_names->shared[index] = name(index % GROUPS, "shared", "n", index);
        check_series(thread_names->shared[index]);
        if (i < OWN) {
            thread_names->own[i] = name(i % GROUPS, "own", prefix, i);
            check_series(thread_names->own[i]);
        }
        struct wr_error error;
        const struct weir_metric *described = thread_names->shared[index];
        int result = wr_family_describe(&registry, described->stream, described->name, "ms",
                                        thread_names->number % 2 ? "help" : NULL, &error);
        PLAIN_CHECK(result == 0 || result == WEIR_ERR_LIMIT); /* alternating texts: too many changes */
    }
    return NULL;
}

/* Runs when the registry is full. */
static void *create_excess_names(void *argument)
{
    struct thread_names *thread_names = argument;
    char prefix[20];
    snprintf(prefix, sizeof prefix, "more%u.", thread_names->number);
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < EXCESS; i++)
        thread_names->excess[i] = name(i % GROUPS, i % 2 ? "shared" : "new", prefix, i);
    return NULL;
}

static void run(void *(*what)(void *))
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    pthread_barrier_init(&start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        all_names[i].number = i;
        PLAIN_CHECK(pthread_create(&all_names[i].thread, &attributes, what, &all_names[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(all_names[i].thread, NULL);
    pthread_barrier_destroy(&start);
    pthread_attr_destroy(&attributes);
}

/* Each id refers to one series, and each series was returned to a thread. */
static void check_ids(uint32_t expected)
{
    static unsigned char seen[SHARED + THREADS * OWN];
    PLAIN_CHECK(atomic_load(&registry.series) == expected);
    for (unsigned i = 0; i < THREADS; i++) {
        PLAIN_CHECK(memcmp(all_names[i].shared, all_names[0].shared, sizeof all_names[0].shared) == 0,
                    "two series for one name");
        for (unsigned j = 0; j < OWN; j++)
            PLAIN_CHECK(seen[all_names[i].own[j]->series]++ == 0, "one series for two names");
    }
    for (unsigned i = 0; i < SHARED; i++)
        PLAIN_CHECK(seen[all_names[0].shared[i]->series]++ == 0, "one series for two names");
    for (uint32_t i = 0; i < expected; i++)
        PLAIN_CHECK(seen[i] == 1, "ids are not dense");
}

int main(void)
{
    plain_hang_no_longer_than(120);
    PLAIN_CHECK(wr_registry_init(&registry));
    run(create_names);
    const uint32_t series = SHARED + THREADS * OWN, all = series + GROUPS + 2 * GROUPS;
    check_ids(series);
    PLAIN_CHECK(atomic_load(&registry.count) == all);
    atomic_store(&registry.max, all);
    run(create_excess_names);
    PLAIN_CHECK(atomic_load(&registry.count) == all);
    PLAIN_CHECK(atomic_load(&registry.series) == series + GROUPS, "one overflow series for each group");
    for (unsigned i = 0; i < THREADS; i++)
        PLAIN_CHECK(memcmp(all_names[i].excess, all_names[0].excess, sizeof all_names[0].excess) == 0);
    return 0;
}
