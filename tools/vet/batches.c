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
#include <unistd.h>

#include "segment/batch.h"
#include "text/common.h"
#include "text/error.h"
#include "segment/segment.h"
#include "registry/family.h"
#include "registry/name.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "vet.h"

enum { ARENA_SIZE = 256 << 20, PAGE = 4096, MAX_SERIES = 64, MAX_LABELS = 64 };

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
    struct ids {
        uint32_t id[MAX_SERIES], count;
    } plain, strange, sparse;
} known = {.once = PTHREAD_ONCE_INIT};

/* Names that the core refuses are left out, because no handler receives them. */
static void add_series(const char *group, const weir_label *labels, size_t label_count, const char *name,
                       struct ids *ids)
{
    struct wr_error error = {0};
    bool strange = ids == &known.strange;
    struct weir_stream *stream = wr_stream_get(&known.registry, group, labels, label_count, &error);
    uint16_t flags = ids->count % 3 == 2 ? WEIR_SAMPLE_CUMULATIVE : 0;
    if (error.code || ids->count == MAX_SERIES)
        return;
    const struct weir_metric *metric = wr_series_get(&known.registry, stream, name, flags, &error);
    if (error.code)
        return;
    if (ids->count % 2)
        wr_family_describe(&known.registry, stream, name, strange ? "\"\xc2\xb5s\"" : "ms",
                           strange ? "help, with \"quotes\" and a \\" : "how long it took", &error);
    ids->id[ids->count++] = metric->series;
}

/* The longest names, keys and values, and the most labels, that the core accepts. */
static void add_long_names(void)
{
    char name[WR_NAME_LONGEST + 1], value[WR_NAME_VALUE_LONGEST + 1], keys[MAX_LABELS][16];
    weir_label many[MAX_LABELS];
    memset(name, 'x', sizeof name - 1);
    memset(value, 'v', sizeof value - 1);
    name[sizeof name - 1] = value[sizeof value - 1] = '\0';
    const weir_label labels[] = {{"key", value}, {name, "v"}};
    for (int i = 0; i < MAX_LABELS; i++) {
        snprintf(keys[i], sizeof keys[i], "key_%02d", i);
        many[i] = (weir_label){keys[i], value};
    }
    add_series("my_app", NULL, 0, name, &known.strange);
    add_series(name, labels, 2, "long labels", &known.strange);
    add_series("my_app", many, MAX_LABELS, "many labels", &known.strange);
}

static void make_series(void)
{
    static const weir_label labels[] = {{"route", "/x"}, {"status", "200"}};
    static struct wr_segment_pool pool;
    if (!wr_registry_init(&known.registry))
        vet_skip("vet itself: out of memory");
    for (size_t i = 0; i < WR_COUNT_OF(plain_names); i++)
        add_series("my_app.db", labels, i % 3, plain_names[i], &known.plain);
    for (size_t i = 0; i < WR_COUNT_OF(strange_names); i++) {
        const weir_label odd[] = {{"key", strange_names[i]}, {strange_names[i], "value"}};
        add_series("my_app", odd, i % 3, strange_names[i], &known.strange);
        add_series(strange_names[i], NULL, 0, "latency", &known.strange);
    }
    add_long_names();
    struct wr_range none = {.segment = wr_segment_new(&pool, 1), .id.origin = wr_origin_new()};
    if (!none.segment)
        vet_skip("vet itself: out of memory");
    known.core = (struct wr_batch_core){.registry = &known.registry, .labels_number = 1};
    known.find = wr_batch_of(&none, &known.core, NULL).series;
    wr_segment_drop(none.segment);
}

/* Ids in between belong to series that no batch contains: a program may have added them to other handlers. */
void vet_batches_spread(uint32_t largest)
{
    static const uint32_t ids[] = {300, 5000, 70000, 1000000, 20000000};
    char name[32];
    pthread_once(&known.once, make_series);
    for (size_t i = 0; i < WR_COUNT_OF(ids) && ids[i] <= largest; i++) {
        atomic_store(&known.registry.series, ids[i]);
        snprintf(name, sizeof name, "series_%u", ids[i]);
        add_series("my_app.sparse", NULL, 0, name, &known.sparse);
    }
    if (!known.sparse.count)
        vet_skip("vet itself: out of memory");
}

void vet_batches_mark(uint64_t number, char name[VET_MARK_SIZE], int *value)
{
    static _Atomic uint32_t run;
    uint32_t none = 0;
    atomic_compare_exchange_strong(&run, &none,
                                   (uint32_t)vet_now_ms() % 0xfffff << 12 | ((uint32_t)getpid() & 0xfff) | 1);
    snprintf(name, VET_MARK_SIZE, "vet%08xn%06llu", atomic_load(&run), (unsigned long long)number);
    *value = 1000000 + 10 * (int)(number * 7919 % 900000);
}

static uint32_t make_marked_series(uint64_t number)
{
    static const weir_label labels[] = {{"part", "a"}, {"route", "/x"}};
    char name[VET_MARK_SIZE];
    int value;
    struct ids one = {.count = 0};
    vet_batches_mark(number, name, &value);
    add_series("vet.read", labels, number % 3, name, &one);
    if (!one.count)
        vet_skip("vet itself: out of memory");
    return one.id[0];
}

/* ---- Samples --------------------------------------------------------------------------------- */

enum { NOTES = 6, LONG_NOTE = 20000, TEXTS_ROOM = 256 };

/* The contents of a batch's pages. */
struct pages {
    weir_batch batch;
    size_t bytes; /* whole pages */
    char origin[40];
    weir_label labels[2];
    const char *notes[NOTES];
    char *texts; /* behind the samples: of the notes and labels */
    weir_sample samples[];
};

static const weir_label batch_labels[] = {{"host", "vet"}, {"zone", "a \"b\", c=d"}};

uint64_t vet_batches_draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The last note is LONG_NOTE bytes long. */
static const char *const texts[NOTES - 1] = {
    NULL, "metadata", "with \"quotes\", a \\ and a\nnew line", "{\"json\": [1, 2]}", "gr\xc3\xb6\xc3\x9f\x65r",
};

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

static uint32_t draw_series(const struct ids *ids, uint64_t drawn)
{
    return ids->id[drawn % ids->count];
}

static void fill_marked(weir_sample *sample, uint64_t number)
{
    char name[VET_MARK_SIZE];
    int value;
    vet_batches_mark(number, name, &value);
    sample->series = make_marked_series(number);
    if (sample->kind == WEIR_KIND_INT)
        sample->value.i64 = value;
    else
        sample->value.f64 = value;
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
        .series = draw_series(strange_name                    ? &known.strange
                              : recipe->flavour == VET_SERIES ? &known.sparse
                                                              : &known.plain,
                              draws[0]),
        .kind = integer ? WEIR_KIND_INT : WEIR_KIND_DOUBLE,
        .time_ns = draw_time(strange_number, draws[3]),
        .note = strange_name ? (uint32_t)(draws[4] % NOTES) : 0,
    };
    const struct weir_metric *metric = wr_registry_series(&known.registry, sample->series);
    sample->flags = metric->flags;
    if (integer)
        sample->value.i64 = draw_int(strange_number, draws[1]);
    else
        sample->value.f64 = draw_double(strange_number, draws[1]);
}

/* A long note makes its lines long: it is rare. */
static void limit_notes(weir_sample *samples, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (samples[i].note == NOTES - 1 && i % 16)
            samples[i].note = 1;
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

static size_t bytes_of(uint32_t count, bool long_note)
{
    return round_up(sizeof(struct pages) + count * sizeof(weir_sample) + TEXTS_ROOM +
                    (long_note ? LONG_NOTE + 1 : 0));
}

static char *put_text(struct pages *pages, const char *text)
{
    size_t length = strlen(text) + 1;
    char *copy = memcpy(pages->texts, text, length);
    pages->texts += length;
    return copy;
}

/* Copies notes and labels into the batch's pages. */
static void put_texts(struct pages *pages, uint32_t count, bool long_note)
{
    pages->texts = (char *)&pages->samples[count];
    pages->notes[0] = NULL;
    for (size_t i = 1; i < WR_COUNT_OF(texts); i++)
        pages->notes[i] = put_text(pages, texts[i]);
    for (size_t i = 0; i < WR_COUNT_OF(batch_labels); i++)
        pages->labels[i] =
            (weir_label){put_text(pages, batch_labels[i].key), put_text(pages, batch_labels[i].value)};
    pages->notes[NOTES - 1] = pages->notes[1];
    if (!long_note)
        return;
    memset(pages->texts, 'm', LONG_NOTE);
    pages->texts[LONG_NOTE] = '\0';
    pages->notes[NOTES - 1] = pages->texts;
}

static bool has_long_note(const struct pages *pages)
{
    return pages->notes[NOTES - 1] != pages->notes[1];
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
static struct pages *allocate_pages(uint32_t count, bool long_note)
{
    size_t bytes = bytes_of(count, long_note);
    pthread_mutex_lock(&arena.mutex);
    if (!arena.pages) {
        void *pages = mmap(NULL, ARENA_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        arena.pages = pages == MAP_FAILED ? NULL : pages;
    }
    if (arena.used + bytes > ARENA_SIZE)
        arena.used = 0;
    char *place = arena.pages ? arena.pages + arena.used : NULL;
    arena.used += bytes;
    struct pages *pages = place && mprotect(place, bytes, PROT_READ | PROT_WRITE) == 0 ? (void *)place : NULL;
    if (pages)
        replace_in_use(NULL, &pages->batch);
    pthread_mutex_unlock(&arena.mutex);
    if (!pages)
        vet_skip("vet itself: out of memory");
    pages->bytes = bytes;
    put_texts(pages, count, long_note);
    return pages;
}

int vet_batches_place(const void *address)
{
    const char *at = address, *pages = atomic_load(&arena.pages);
    if (!pages || at < pages || at >= pages + ARENA_SIZE)
        return 0;
    for (size_t i = 0; i < WR_COUNT_OF(arena.in_use); i++) {
        const char *batch = (const char *)atomic_load(&arena.in_use[i]);
        if (batch && at >= batch && at < batch + ((const struct pages *)(const void *)batch)->bytes)
            return 1;
    }
    return 2;
}

static bool has_notes(const weir_sample *samples, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (samples[i].note)
            return true;
    return false;
}

static const weir_batch *protect(struct pages *pages)
{
    mprotect(pages, pages->bytes, PROT_READ);
    return &pages->batch;
}

const weir_batch *vet_batches_make(const struct vet_recipe *recipe)
{
    uint64_t state = recipe->seed;
    pthread_once(&known.once, make_series);
    bool long_note = recipe->flavour == VET_NAMES || recipe->flavour == VET_MIXED;
    struct pages *pages = allocate_pages(recipe->count, long_note);
    weir_sample *samples = pages->samples;
    for (uint32_t i = 0; i < recipe->count; i++) {
        fill_sample(&samples[i], recipe, &state);
        if (recipe->flavour == VET_MARKED)
            fill_marked(&samples[i], recipe->sequence + i);
    }
    make_events(samples, recipe, &state);
    limit_notes(samples, recipe->count);
    snprintf(pages->origin, sizeof pages->origin, "%s", known.core.origin);
    pages->batch = (weir_batch){
        .size = sizeof pages->batch,
        .count = recipe->count,
        .samples = samples,
        .notes = has_notes(samples, recipe->count) ? pages->notes : NULL,
        .labels = pages->labels,
        .label_count = WR_COUNT_OF(batch_labels),
        .series = known.find,
        .core = &known.core,
        .sequence = recipe->sequence,
        .origin = pages->origin,
    };
    return protect(pages);
}

const weir_batch *vet_batches_rest(const weir_batch *batch, uint32_t done)
{
    const struct pages *from = (const struct pages *)batch;
    struct pages *pages = allocate_pages(batch->count - done, has_long_note(from));
    weir_batch *rest = &pages->batch;
    *rest = *batch;
    rest->origin = memcpy(pages->origin, batch->origin, strlen(batch->origin) + 1);
    rest->notes = batch->notes ? pages->notes : NULL;
    rest->labels = pages->labels;
    rest->count = batch->count - done;
    rest->sequence = batch->sequence + done;
    rest->samples = memcpy(pages->samples, batch->samples + done, rest->count * sizeof *batch->samples);
    return protect(pages);
}

void vet_batches_end(const weir_batch *batch)
{
    pthread_mutex_lock(&arena.mutex);
    size_t bytes = ((const struct pages *)batch)->bytes;
    replace_in_use(batch, NULL);
    mprotect((void *)(uintptr_t)batch, bytes, PROT_NONE);
    pthread_mutex_unlock(&arena.mutex);
}
