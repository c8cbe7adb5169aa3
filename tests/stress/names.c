/* A hundred threads that name things at the same moment: the same ones, their own, and more than are allowed.
 */

#include <pthread.h>
#include <string.h>

#include "../support/plain.h"
#include "text/error.h"
#include "registry/registry.h"
#include "registry/series.h"
#include "registry/stream.h"

enum { THREADS = 100, SHARED = 200, OWN = 30, GROUPS = 10, EXCESS = 20 };

static struct wr_registry registry;
static pthread_barrier_t start;

struct namer {
    pthread_t thread;
    unsigned number;
    struct weir_metric *shared[SHARED], *own[OWN], *excess[EXCESS];
};

static struct namer namers[THREADS];

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

/* What somebody else has just made must be whole. */
static void check_whole(const struct weir_metric *metric)
{
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    PLAIN_CHECK(view->id == metric->series && strcmp(view->name, metric->name) == 0);
    PLAIN_CHECK(view->label_count == 2 && strcmp(view->labels[0].key, "and") == 0);
    PLAIN_CHECK(wr_registry_series(&registry, metric->series) == metric);
}

static void *name_all(void *argument)
{
    struct namer *namer = argument;
    char prefix[20];
    snprintf(prefix, sizeof prefix, "own%u.", namer->number);
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < SHARED; i++) {
        unsigned which = (i + namer->number * 7) % SHARED; /* each begins somewhere else */
        namer->shared[which] = name(which % GROUPS, "shared", "n", which);
        check_whole(namer->shared[which]);
        if (i < OWN) {
            namer->own[i] = name(i % GROUPS, "own", prefix, i);
            check_whole(namer->own[i]);
        }
        struct wr_error error;
        int result = wr_series_describe(&registry, namer->shared[which]->stream, namer->shared[which]->name,
                                        "ms", namer->number % 2 ? "help" : NULL, &error);
        PLAIN_CHECK(result == 0 || result == WEIR_ERR_LIMIT); /* two texts in turn: too many changes */
    }
    return NULL;
}

/* When the registry is full. */
static void *name_more(void *argument)
{
    struct namer *namer = argument;
    char prefix[20];
    snprintf(prefix, sizeof prefix, "more%u.", namer->number);
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < EXCESS; i++)
        namer->excess[i] = name(i % GROUPS, i % 2 ? "shared" : "new", prefix, i);
    return NULL;
}

static void run(void *(*what)(void *))
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    pthread_barrier_init(&start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        namers[i].number = i;
        PLAIN_CHECK(pthread_create(&namers[i].thread, &attributes, what, &namers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(namers[i].thread, NULL);
    pthread_barrier_destroy(&start);
    pthread_attr_destroy(&attributes);
}

/* Every id leads to one series, and every series was found by somebody. */
static void check_ids(uint32_t expected)
{
    static unsigned char seen[SHARED + THREADS * OWN];
    PLAIN_CHECK(atomic_load(&registry.series) == expected);
    for (unsigned i = 0; i < THREADS; i++) {
        PLAIN_CHECK(memcmp(namers[i].shared, namers[0].shared, sizeof namers[0].shared) == 0,
                    "two for one name");
        for (unsigned j = 0; j < OWN; j++)
            PLAIN_CHECK(seen[namers[i].own[j]->series]++ == 0, "one for two names");
    }
    for (unsigned i = 0; i < SHARED; i++)
        PLAIN_CHECK(seen[namers[0].shared[i]->series]++ == 0, "one for two names");
    for (uint32_t i = 0; i < expected; i++)
        PLAIN_CHECK(seen[i] == 1, "ids are not dense");
}

int main(void)
{
    plain_hang_no_longer_than(120);
    PLAIN_CHECK(wr_registry_init(&registry));
    run(name_all);
    const uint32_t series = SHARED + THREADS * OWN, all = series + GROUPS + 2 * GROUPS;
    check_ids(series);
    PLAIN_CHECK(atomic_load(&registry.count) == all);
    atomic_store(&registry.max, all);
    run(name_more);
    PLAIN_CHECK(atomic_load(&registry.count) == all);
    PLAIN_CHECK(atomic_load(&registry.series) == series + GROUPS, "one overflow series for each group");
    for (unsigned i = 0; i < THREADS; i++)
        PLAIN_CHECK(memcmp(namers[i].excess, namers[0].excess, sizeof namers[0].excess) == 0);
    return 0;
}
