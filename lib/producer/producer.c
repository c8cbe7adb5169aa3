#include "producer/producer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "os/clock.h"
#include "os/membarrier.h"
#include "os/signals.h"
#include "producer/fast_add.h"

/* The producers of threads that have none: busy, so that the fast path is not used, and never written. */
static struct wr_producer cold = {.state = WR_PRODUCER_COLD, .busy = 1};
static struct wr_producer no_memory = {
    .state = WR_PRODUCER_COLD, .busy = 1, .error = {.code = WEIR_ERR_MEMORY, .text = "out of memory"}};
static struct wr_producer gone = {.state = WR_PRODUCER_CLOSED, .busy = 1};
/* that of a thread of weir's own: few of them add values */
static struct wr_producer cold_own = {.state = WR_PRODUCER_COLD, .busy = 1, .own = true};

_Thread_local struct wr_producer *wr_producer_mine __attribute__((tls_model("initial-exec"))) = &cold;

bool wr_producer_is_gone(void)
{
    return wr_producer_mine == &gone;
}

void wr_producer_wake_reader(struct wr_producer *producer)
{
    if (producer->home->wake_reader)
        producer->home->wake_reader(producer);
}

void wr_producer_wake_reader_and_end(struct wr_producer *producer)
{
    wr_producer_wake_reader(producer);
    wr_fast_add_end(producer);
}

void wr_producer_set_no_memory(void)
{
    struct wr_producer *producer = wr_producer_mine;
    if (producer == &cold)
        wr_producer_mine = &no_memory;
    else if (producer != &no_memory && producer != &gone && producer != &cold_own && !producer->shared)
        producer->error = no_memory.error;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { PAGE = 4096 };

/* Memory: the producer, its ring's block, the entries of the second-level cache. */
enum {
    PRODUCER_BYTES = (sizeof(struct wr_producer) + PAGE - 1) / PAGE * PAGE,
    BLOCK_BYTES = WR_RING_BLOCK_BYTES(WR_PRODUCER_SLOTS),
};

static struct wr_ring_block *block_of(struct wr_producer *producer)
{
    return (struct wr_ring_block *)((char *)producer + PRODUCER_BYTES);
}

static struct wr_name_cache_l2_entry *cache_l2_of(struct wr_producer *producer)
{
    return (struct wr_name_cache_l2_entry *)((char *)block_of(producer) + BLOCK_BYTES);
}

static struct wr_producer *map_producer(void)
{
    size_t size = PRODUCER_BYTES + BLOCK_BYTES + WR_NAME_CACHE_L2_BYTES;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    /* if the kernel cannot (before 4.14), wr_producers_after_fork wipes what the child reads */
    madvise(memory, size, MADV_WIPEONFORK);
    /* most of it is the second-level cache, which few threads touch */
    madvise(memory, size, MADV_NOHUGEPAGE);
    return (struct wr_producer *)memory;
}

/* Initialises a producer that is cold. */
static void init_producer(struct wr_producers *producers, struct wr_producer *producer, bool shared)
{
    wr_ring_init(&producer->ring, block_of(producer), WR_PRODUCER_SLOTS);
    producer->home = producers;
    producer->shared = shared;
    if (shared)
        atomic_store_explicit(&producer->busy, WR_PRODUCER_SHARED, memory_order_relaxed);
    producer->fenced = producers->fenced;
    atomic_store_explicit(&producer->ticks, producers->ticks, memory_order_relaxed);
    atomic_store_explicit(&producer->renew, producers->journal, memory_order_relaxed);
    producer->cache.open = !shared && producers->caches;
    producer->cache_l2.entries = cache_l2_of(producer);
}

/* Sets the state of a producer whose thread may use it. */
static void update_state(const struct wr_producers *producers, struct wr_producer *producer)
{
    bool ticks = atomic_load_explicit(&producer->ticks, memory_order_relaxed);
    bool renew = atomic_load_explicit(&producer->renew, memory_order_relaxed);
    bool plain = !producer->shared && !producer->own && !producer->fenced && !renew;
    uint32_t state = atomic_load(&producers->closed) ? WR_PRODUCER_CLOSED
                     : !plain                        ? WR_PRODUCER_CAREFUL
                     : ticks                         ? WR_PRODUCER_READY
                                                     : WR_PRODUCER_CLOCKED;
    atomic_store(&producer->state, state);
}

/* ---- Threads start and end ------------------------------------------------------------------- */

/* Destructor of the key: the thread ends, and its ring stays as it is for the next one. Other destructors may
 * still run on this thread; the values they add are refused. */
static void release_producer(void *value)
{
    struct wr_producer *producer = value;
    struct wr_producers *producers = producer->home;
    wr_producer_mine = &gone;
    if (wr_producer_is_cold(producer) || producer->shared) /* wiped by a fork and not used since; or shared */
        return;
    /* the thread may have ended inside a call, by pthread_exit or cancellation: what it had not published is
     * lost, and the thread that adopts the ring is in no call. release: as in wr_fast_add_end */
    if (atomic_load_explicit(&producer->busy, memory_order_relaxed))
        wr_cells_recount(&producer->cells);
    atomic_store_explicit(&producer->busy, 0, memory_order_release);
    if (atomic_load_explicit(&producer->reads, memory_order_relaxed) & 1)
        wr_producer_end_reading(producer);
    wr_lock_enter(&producers->lock);
    producer->own = false;
    producers->orphans[producers->orphan_count++] = producer;
    wr_lock_leave(&producers->lock);
}

/* The cache reads whole words, and so bytes behind the end of a text that may be uninitialised. They are masked
 * out, but valgrind would report them in a correct program. */
static bool is_under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "/vgpreload_");
}

/* Values refused before there were producers to count them in. */
static _Atomic uint64_t refused_early;

static void count_early(struct wr_producers *producers)
{
    atomic_fetch_add(&producers->refused[WEIR_REFUSED_MEMORY], atomic_exchange(&refused_early, 0));
}

/* An event of so many values is the caller's error, as in a negative count. It counts as one value: the sum
 * must not overflow. */
static uint64_t limit_count(uint64_t count)
{
    return count <= UINT32_MAX ? count : 1;
}

int wr_producers_refuse_early(uint64_t count)
{
    atomic_fetch_add(&refused_early, limit_count(count));
    return WEIR_ERR_MEMORY;
}

static bool map_refused(struct wr_producers *producers)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    producers->refused_kept = madvise(page, PAGE, MADV_WIPEONFORK) != 0;
    producers->refused = page;
    return true;
}

bool wr_producers_init(struct wr_producers *producers)
{
    if (!map_refused(producers))
        return false;
    producers->caches = !is_under_valgrind();
    producers->fenced = !wr_membarrier_register();
    producers->has_ticks = wr_clock_has_ticks();
    producers->ticks = producers->has_ticks;
    count_early(producers);
    return pthread_key_create(&producers->key, release_producer) == 0;
}

static struct wr_producer *make_producer(struct wr_producers *producers)
{
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_relaxed);
    if (count == WR_PRODUCERS_MOST)
        return NULL;
    struct wr_producer *producer = map_producer();
    if (!producer)
        return NULL;
    init_producer(producers, producer, false);
    producers->all[count] = producer;
    /* release: pairs with the acquire of the threads that read `all` */
    atomic_store_explicit(&producers->count, count + 1, memory_order_release);
    return producer;
}

/* For threads beyond WR_PRODUCERS_MOST, and for all new ones when out of memory, if it was made before. */
static struct wr_producer *get_shared(struct wr_producers *producers)
{
    struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_relaxed);
    if (shared && !wr_producer_is_cold(shared))
        return shared;
    if (!shared && !(shared = map_producer()))
        return NULL;
    init_producer(producers, shared, true);
    /* release: pairs with the acquire of the threads that read it without the lock */
    atomic_store_explicit(&producers->shared, shared, memory_order_release);
    return shared;
}

static struct wr_producer *find_producer(struct wr_producers *producers)
{
    if (producers->orphan_count) {
        struct wr_producer *orphan = producers->orphans[--producers->orphan_count];
        if (wr_producer_is_cold(orphan)) /* wiped by a fork */
            init_producer(producers, orphan, false);
        atomic_store_explicit(&orphan->is_source, false, memory_order_relaxed);
        return orphan;
    }
    struct wr_producer *producer = make_producer(producers);
    return producer ? producer : get_shared(producers);
}

/* In a forked child: producers of the parent's other threads may be adopted. */
static void orphan_cold(struct wr_producers *producers, const struct wr_producer *forker)
{
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        if (producers->all[i] != forker && wr_producer_is_cold(producers->all[i]))
            producers->orphans[producers->orphan_count++] = producers->all[i];
    producers->forker_unknown = false;
}

/* As find_producer, for a thread of weir's own. */
static struct wr_producer *find_for_own(struct wr_producers *producers)
{
    struct wr_producer *producer = find_producer(producers);
    if (producer && !producer->shared)
        producer->own = true;
    return producer;
}

/* The calling thread's own one, initialised if necessary, or one for a thread that has none. */
static struct wr_producer *find_mine(struct wr_producers *producers)
{
    struct wr_producer *producer = wr_producer_mine;
    if (producer == &cold || producer == &no_memory) {
        producer = find_producer(producers);
    } else if (producer == &cold_own) {
        producer = find_for_own(producers);
    } else if (wr_producer_is_cold(producer)) { /* this thread has forked */
        if (producers->forker_unknown)
            orphan_cold(producers, producer);
        init_producer(producers, producer, producer == producers->shared);
    }
    if (producer)
        update_state(producers, producer);
    return producer;
}

struct wr_producer *wr_producers_attach(struct wr_producers *producers)
{
    sigset_t signals;
    if (wr_producer_mine == &gone)
        return NULL;
    wr_signals_block(&signals);
    wr_lock_enter(&producers->lock);
    struct wr_producer *producer = find_mine(producers);
    wr_lock_leave(&producers->lock);
    if (producer) {
        wr_producer_mine = producer;
        /* if it fails, no later thread can adopt the ring, which is harmless */
        pthread_setspecific(producers->key, producer);
    } else {
        wr_producer_set_no_memory();
    }
    wr_signals_restore(&signals);
    return producer;
}

struct wr_error *wr_producers_error(struct wr_producers *producers)
{
    struct wr_producer *producer = wr_producer_mine;
    if (!producer->home && !(producer = wr_producers_attach(producers)))
        return NULL;
    return producer->shared ? NULL : &producer->error;
}

void wr_producers_mark_own(void)
{
    wr_producer_mine = &cold_own;
}

/* ---- Looking for label sets ------------------------------------------------------------------ */

void wr_producers_note_reads(const struct wr_producers *producers, uint32_t *reads)
{
    wr_membarrier();
    /* acquire: pairs with the release in make_producer. A later producer begins to read after this. */
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_acquire);
    for (uint32_t i = 0; i < WR_PRODUCERS_MOST; i++)
        reads[i] = i < count ? atomic_fetch_add(&producers->all[i]->reads, 0) : 0;
}

bool wr_producers_have_read(const struct wr_producers *producers, const uint32_t *reads)
{
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) /* acquire: pairs with the release in wr_producer_end_reading */
        if (atomic_load_explicit(&producers->all[i]->reads, memory_order_acquire) == reads[i] && reads[i] & 1)
            return false;
    return true;
}

/* ---- The clock, and the journal -------------------------------------------------------------- */

/* Caller holds the lock, as for every change of a state. relaxed: it does not matter at which of its calls a
 * thread sees it, since each sample has a flag for its clock. */
static void use_ticks(const struct wr_producers *producers, struct wr_producer *producer)
{
    atomic_store_explicit(&producer->ticks, producers->ticks, memory_order_relaxed);
}

bool wr_producer_is_in_journal(struct wr_producer *producer)
{
    return producer->ring.slots && wr_ring_block(&producer->ring) != block_of(producer);
}

static void renew(const struct wr_producers *producers, struct wr_producer *producer)
{
    (void)producers;
    if (!wr_producer_is_in_journal(producer) ||
        atomic_load_explicit(&producer->cells.no_space, memory_order_relaxed))
        atomic_store_explicit(&producer->renew, true, memory_order_relaxed);
}

static void change_one(const struct wr_producers *producers, struct wr_producer *producer,
                       void (*change)(const struct wr_producers *producers, struct wr_producer *producer))
{
    uint32_t state = atomic_load(&producer->state);
    change(producers, producer);
    if (state != WR_PRODUCER_COLD && state != WR_PRODUCER_CLOSED)
        update_state(producers, producer);
}

static void change_all(const struct wr_producers *producers,
                       void (*change)(const struct wr_producers *producers, struct wr_producer *producer))
{
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        change_one(producers, producers->all[i], change);
    struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_relaxed);
    if (shared)
        change_one(producers, shared, change);
}

void wr_producers_use_ticks(struct wr_producers *producers, bool wanted)
{
    sigset_t signals;
    bool ticks = wanted && producers->has_ticks;
    wr_signals_block(&signals);
    wr_lock_enter(&producers->lock);
    bool changes = producers->ticks != ticks;
    producers->ticks = ticks;
    if (changes)
        change_all(producers, use_ticks);
    wr_lock_leave(&producers->lock);
    wr_signals_restore(&signals);
}

void wr_producers_renew(struct wr_producers *producers)
{
    sigset_t signals;
    wr_signals_block(&signals);
    wr_lock_enter(&producers->lock);
    producers->journal = true;
    change_all(producers, renew);
    wr_lock_leave(&producers->lock);
    wr_signals_restore(&signals);
}

void wr_producers_renewed(struct wr_producers *producers)
{
    struct wr_producer *producer = wr_producer_mine;
    sigset_t signals;
    wr_signals_block(&signals);
    wr_lock_enter(&producers->lock);
    atomic_store_explicit(&producer->renew, false, memory_order_relaxed);
    update_state(producers, producer);
    wr_lock_leave(&producers->lock);
    wr_signals_restore(&signals);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

static bool has_none(const struct wr_producer *producer)
{
    return producer == &cold || producer == &no_memory || producer == &gone || producer == &cold_own;
}

/* In a child, the thread that has forked is none of weir's. */
static void disown_mine(void)
{
    if (wr_producer_mine == &cold_own)
        wr_producer_mine = &cold;
}

/* Only the thread that forked has a producer before any thread of the child is attached. */
static const struct wr_producer *find_forker(const struct wr_producer *known)
{
    return known || has_none(wr_producer_mine) ? known : wr_producer_mine;
}

/* In a child: what the kernel has not wiped, as it does not know MADV_WIPEONFORK. */
static void wipe_all(struct wr_producers *producers)
{
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_relaxed);
    struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        if (!wr_producer_is_cold(producers->all[i]))
            *producers->all[i] = (struct wr_producer){0};
    if (shared && !wr_producer_is_cold(shared))
        *shared = (struct wr_producer){0};
}

void wr_producers_after_fork(struct wr_producers *producers, const struct wr_producer *known)
{
    const struct wr_producer *forker = find_forker(known);
    disown_mine();
    wr_lock_reset(&producers->lock);
    producers->journal = false;
    producers->orphan_count = 0;
    producers->forker_unknown = !forker;
    wipe_all(producers);
    if (forker)
        orphan_cold(producers, forker);
    count_early(producers);
}

void wr_producers_forked(struct wr_producers *producers)
{
    disown_mine();
    if (!producers->refused_kept)
        return;
    wipe_all(producers);
    for (size_t i = 0; i < WEIR_REFUSED_MAX; i++)
        atomic_store_explicit(&producers->refused[i], 0, memory_order_relaxed);
}

/* ---- Shutdown -------------------------------------------------------------------------------- */

static void close_one(struct wr_producer *producer)
{
    uint32_t state = atomic_load(&producer->state);
    while (state != WR_PRODUCER_COLD &&
           !atomic_compare_exchange_weak(&producer->state, &state, WR_PRODUCER_CLOSED))
        ;
}

static bool wait_until_settled(const struct wr_producer *producer, int64_t deadline_ns)
{
    while (atomic_load(&producer->busy) == WR_PRODUCER_WRITING) {
        if (wr_clock_monotonic_ns() >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 50 * WR_NS_PER_US}, NULL);
    }
    return true;
}

void wr_producers_close(struct wr_producers *producers)
{
    sigset_t signals;
    wr_signals_block(&signals);
    wr_lock_enter(&producers->lock);
    atomic_store(&producers->closed, true);
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        close_one(producers->all[i]);
    struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_relaxed);
    if (shared)
        close_one(shared);
    wr_lock_leave(&producers->lock);
    wr_signals_restore(&signals);
    /* pairs with the compiler barrier (or, without membarrier, the sequentially consistent accesses) between
     * `busy = WRITING` and the load of `state` on the calling path: a call either sees CLOSED, or is seen
     * WRITING by wr_producers_settle */
    wr_membarrier();
}

/* A call that begins later sees CLOSED, also that of another thread on the shared producer. */
uint32_t wr_producers_settle(struct wr_producers *producers, int64_t deadline_ns)
{
    uint32_t running = 0;
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        if (producers->all[i] != wr_producer_mine)
            running += !wait_until_settled(producers->all[i], deadline_ns);
    struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_acquire);
    if (shared)
        running += !wait_until_settled(shared, deadline_ns);
    return running;
}

static bool has_values(const struct wr_producer *producer)
{
    return !wr_producer_is_cold(producer) &&
           (wr_ring_published(&producer->ring) != wr_ring_taken(&producer->ring) ||
            wr_cells_have_values(&producer->cells));
}

bool wr_producers_have_values(const struct wr_producers *producers)
{
    const struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_acquire);
    bool found = shared && has_values(shared);
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_acquire);
    for (uint32_t i = 0; !found && i < count; i++)
        found = has_values(producers->all[i]);
    return found;
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static int refusal_error(enum weir_refusal why)
{
    switch (why) {
    case WEIR_REFUSED_NAME: return WEIR_ERR_NAME;
    case WEIR_REFUSED_LIMIT: return WEIR_ERR_LIMIT;
    case WEIR_REFUSED_MEMORY: return WEIR_ERR_MEMORY;
    case WEIR_REFUSED_CLOSED: return WEIR_ERR_CLOSED;
    case WEIR_REFUSED_BUSY: return WEIR_ERR_BUSY;
    case WEIR_REFUSED_TOO_LARGE: return WEIR_ERR_TOO_LARGE;
    default: return WEIR_ERR_ARGUMENT;
    }
}

int wr_producers_refuse(struct wr_producers *producers, enum weir_refusal why, uint64_t count)
{
    /* always the common counter: refusals are rare, and a nested call must not write what the interrupted one
     * may be writing */
    atomic_fetch_add_explicit(&producers->refused[why], limit_count(count), memory_order_relaxed);
    return refusal_error(why);
}
