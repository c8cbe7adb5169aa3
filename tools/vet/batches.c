#include "batches.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "segment/batch.h"
#include "text/common.h"
#include "text/error.h"
#include "segment/segment.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "vet.h"

enum { ARENA_SIZE = 256 << 20, PAGE = 4096, MAX_SERIES = 64 };

/* ---- Series ---------------------------------------------------------------------------------- */

static const char *const plain_names[] = {"latency", "requests", "bytes", "queue.length", "temperature"};

static const char *const strange_names[] = {
    "a b",
    "say \"hi\"",
    "back\\slash",
    "comma,equals=",
    "gr\xc3\xb6\xc3\x9f",
    "%s%n",
    "${HOME}",
    "'; DROP --",
    "# comment",
    "{\"json\":1}",
    "-",
    "/etc/passwd",
    "NaN",
    "\xe2\x80\xa8sep",
    "\xf0\x9f\x8c\x8a",
    "..",
    "a:b|g|#c:d;e@0.1\t",
    "&lt;",
    " leading trailing ",
    "0",
};

static struct {
    pthread_once_t once;
    struct wr_registry registry;
    struct wr_batch_core core;
    const weir_series *(*find)(const weir_batch *batch, uint32_t id);
    uint32_t plain[MAX_SERIES], strange[MAX_SERIES];
    uint32_t plain_count, strange_count;
} known = {.once = PTHREAD_ONCE_INIT};

/* Names that the core refuses are left out, because no handler receives them. */
static void add_series(const char *group, const weir_label *labels, size_t label_count, const char *name,
                       bool strange)
{
    struct wr_error error = {0};
    uint32_t *count = strange ? &known.strange_count : &known.plain_count;
    uint32_t *ids = strange ? known.strange : known.plain;
    struct weir_stream *stream = wr_stream_get(&known.registry, group, labels, label_count, &error);
    uint16_t flags = *count % 3 == 2 ? WEIR_SAMPLE_CUMULATIVE : 0;
    if (error.code || *count == MAX_SERIES)
        return;
    const struct weir_metric *metric = wr_series_get(&known.registry, stream, name, flags, &error);
    if (error.code)
        return;
    if (*count % 2)
        wr_series_describe(&known.registry, stream, name, strange ? "\"\xc2\xb5s\"" : "ms",
                           strange ? "help, with \"quotes\" and a \\" : "how long it took", &error);
    ids[(*count)++] = metric->series;
}

static void add_long_names(void)
{
    char name[256];
    memset(name, 'x', 255);
    name[255] = '\0';
    const weir_label labels[] = {{"key", name}, {name, "v"}};
    add_series("my_app", NULL, 0, name, true);
    add_series(name, labels, 2, "long labels", true);
}

static void make_series(void)
{
    static const weir_label labels[] = {{"route", "/x"}, {"status", "200"}};
    static struct wr_segment_pool pool;
    if (!wr_registry_init(&known.registry))
        vet_skip("vet itself: out of memory");
    for (size_t i = 0; i < WR_COUNT_OF(plain_names); i++)
        add_series("my_app.db", labels, i % 3, plain_names[i], false);
    for (size_t i = 0; i < WR_COUNT_OF(strange_names); i++) {
        const weir_label odd[] = {{"key", strange_names[i]}, {strange_names[i], "value"}};
        add_series("my_app", odd, i % 3, strange_names[i], true);
        add_series(strange_names[i], NULL, 0, "latency", true);
    }
    add_long_names();
    struct wr_range none = {.segment = wr_segment_new(&pool, 1), .id.origin = wr_origin_new()};
    if (!none.segment)
        vet_skip("vet itself: out of memory");
    known.core = (struct wr_batch_core){.registry = &known.registry, .labels_number = 1};
    known.find = wr_batch_of(&none, &known.core, NULL).series;
    wr_segment_drop(none.segment);
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* The contents of a batch's pages. */
struct pages {
    weir_batch batch;
    char origin[40];
    weir_sample samples[];
};

uint64_t vet_batches_draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static const char *const texts[] = {
    NULL, "metadata", "with \"quotes\", a \\ and a\nnew line", "{\"json\": [1, 2]}", "gr\xc3\xb6\xc3\x9f\x65r",
};

static const weir_label batch_labels[] = {{"host", "vet"}, {"zone", "a \"b\", c=d"}};

static bool is_strange(enum vet_flavour flavour, enum vet_flavour of, uint64_t drawn)
{
    return flavour == of || (flavour == VET_MIXED && drawn % 2);
}

static double draw_double(bool strange, uint64_t drawn)
{
    static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0, 0.0,     DBL_MAX,
                                 -DBL_MAX,    DBL_MIN,          4.9e-324,          1e16, -1e-300, 1e22,
                                 0.1};
    return strange ? odd[drawn % WR_COUNT_OF(odd)] : (double)(drawn % 100000) / 8;
}

static int64_t draw_int(bool strange, uint64_t drawn)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_C(1) << 53, -(INT64_C(1) << 53) - 1};
    return strange ? odd[drawn % WR_COUNT_OF(odd)] : (int64_t)(drawn % 1000);
}

static int64_t draw_time(bool strange, uint64_t drawn)
{
    static const int64_t odd[] = {0, -1, INT64_C(-1000000001), INT64_MAX, INT64_MIN, 1};
    return strange && drawn % 2 ? odd[drawn / 2 % WR_COUNT_OF(odd)]
                                : INT64_C(1795219607576198123) + (int64_t)(drawn % 1000000000);
}

static void fill_sample(weir_sample *sample, const struct vet_recipe *recipe, uint64_t *state)
{
    uint64_t draws[5];
    for (size_t i = 0; i < WR_COUNT_OF(draws); i++)
        draws[i] = vet_batches_draw(state);
    bool strange_name = is_strange(recipe->flavour, VET_NAMES, draws[0] >> 32);
    bool strange_number = is_strange(recipe->flavour, VET_NUMBERS, draws[1] >> 32);
    uint32_t kinds = recipe->kinds ? recipe->kinds : WEIR_KINDS_DOUBLE | WEIR_KINDS_INT;
    bool integer = kinds & WEIR_KINDS_INT && (!(kinds & WEIR_KINDS_DOUBLE) || draws[2] % 4 == 0);
    *sample = (weir_sample){
        .series = strange_name ? known.strange[draws[0] % known.strange_count]
                               : known.plain[draws[0] % known.plain_count],
        .kind = integer ? WEIR_KIND_INT : WEIR_KIND_DOUBLE,
        .time_ns = draw_time(strange_number, draws[3]),
        .note = strange_name ? (uint32_t)(draws[4] % WR_COUNT_OF(texts)) : 0,
    };
    const struct weir_metric *metric = wr_registry_series(&known.registry, sample->series);
    sample->flags = metric->flags;
    if (integer)
        sample->value.i64 = draw_int(strange_number, draws[1]);
    else
        sample->value.f64 = draw_double(strange_number, draws[1]);
}

/* Samples of one event share its time. */
static void make_events(weir_sample *samples, const struct vet_recipe *recipe, uint64_t *state)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < recipe->count; i++) {
        if (left)
            samples[i].time_ns = samples[i - 1].time_ns;
        else
            left = recipe->event ? recipe->event : 1 + (uint32_t)(vet_batches_draw(state) % 7);
        if (--left && i + 1 < recipe->count)
            samples[i].flags |= WEIR_SAMPLE_MORE;
    }
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t mutex;
    _Atomic(char *) pages;
    size_t used;
    _Atomic(const weir_batch *) in_use[32];
} arena = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static size_t round_up(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t bytes_of(uint32_t count)
{
    return round_up(sizeof(struct pages) + count * sizeof(weir_sample));
}

static void replace_in_use(const weir_batch *old, const weir_batch *new)
{
    for (size_t i = 0; i < WR_COUNT_OF(arena.in_use); i++)
        if (atomic_load(&arena.in_use[i]) == old) {
            atomic_store(&arena.in_use[i], new);
            return;
        }
}

/* The arena is reused from the start when it is full; by then the oldest batches have long ended. */
static weir_batch *allocate_pages(uint32_t count)
{
    size_t bytes = bytes_of(count);
    pthread_mutex_lock(&arena.mutex);
    if (!arena.pages) {
        void *pages = mmap(NULL, ARENA_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        arena.pages = pages == MAP_FAILED ? NULL : pages;
    }
    if (arena.used + bytes > ARENA_SIZE)
        arena.used = 0;
    char *place = arena.pages ? arena.pages + arena.used : NULL;
    arena.used += bytes;
    weir_batch *batch = place && mprotect(place, bytes, PROT_READ | PROT_WRITE) == 0 ? (void *)place : NULL;
    if (batch)
        replace_in_use(NULL, batch);
    pthread_mutex_unlock(&arena.mutex);
    if (!batch)
        vet_skip("vet itself: out of memory");
    return batch;
}

int vet_batches_place(const void *address)
{
    const char *at = address, *pages = atomic_load(&arena.pages);
    if (!pages || at < pages || at >= pages + ARENA_SIZE)
        return 0;
    for (size_t i = 0; i < WR_COUNT_OF(arena.in_use); i++) {
        const char *batch = (const char *)atomic_load(&arena.in_use[i]);
        if (batch && at >= batch && at < batch + bytes_of(((const weir_batch *)(const void *)batch)->count))
            return 1;
    }
    return 2;
}

static const weir_batch *protect(weir_batch *batch)
{
    mprotect(batch, bytes_of(batch->count), PROT_READ);
    return batch;
}

const weir_batch *vet_batches_make(const struct vet_recipe *recipe)
{
    uint64_t state = recipe->seed;
    pthread_once(&known.once, make_series);
    weir_batch *batch = allocate_pages(recipe->count);
    struct pages *pages = (struct pages *)batch;
    weir_sample *samples = pages->samples;
    for (uint32_t i = 0; i < recipe->count; i++)
        fill_sample(&samples[i], recipe, &state);
    make_events(samples, recipe, &state);
    snprintf(pages->origin, sizeof pages->origin, "%s", known.core.origin);
    *batch = (weir_batch){
        .size = sizeof *batch,
        .count = recipe->count,
        .samples = samples,
        .notes = texts,
        .labels = batch_labels,
        .label_count = WR_COUNT_OF(batch_labels),
        .series = known.find,
        .core = &known.core,
        .sequence = recipe->sequence,
        .origin = pages->origin,
    };
    return protect(batch);
}

const weir_batch *vet_batches_rest(const weir_batch *batch, uint32_t done)
{
    weir_batch *rest = allocate_pages(batch->count - done);
    struct pages *pages = (struct pages *)rest;
    *rest = *batch;
    rest->origin = memcpy(pages->origin, batch->origin, strlen(batch->origin) + 1);
    rest->count = batch->count - done;
    rest->sequence = batch->sequence + done;
    rest->samples = memcpy(pages->samples, batch->samples + done, rest->count * sizeof *batch->samples);
    return protect(rest);
}

void vet_batches_end(const weir_batch *batch)
{
    pthread_mutex_lock(&arena.mutex);
    size_t bytes = bytes_of(batch->count);
    replace_in_use(batch, NULL);
    mprotect((void *)(uintptr_t)batch, bytes, PROT_NONE);
    pthread_mutex_unlock(&arena.mutex);
}
