/* Threads and their rings: assignment, adoption, and the end of threads and programs. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "producer/fast_add.h"
#include "producer/producer.h"

static struct wr_producers producers;

static void setup(void)
{
    cr_assert(wr_producers_init(&producers));
    producers.fenced = false; /* regardless of this machine */
    producers.ticks = true;
}

TestSuite(producer, .init = setup);

/* Runs a function in a new thread and joins it. */
static void *on_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    cr_assert_eq(pthread_create(&thread, NULL, run, argument), 0);
    pthread_join(thread, &result);
    return result;
}

static void *attach(void *argument)
{
    (void)argument;
    return wr_producers_attach(&producers);
}

/* ---- Attaching ------------------------------------------------------------------------------- */

Test(producer, a_thread_without_a_ring_is_busy_and_cold)
{
    cr_assert_null(wr_producer_mine->home);
    cr_assert_eq(wr_producer_mine->state, WR_PRODUCER_COLD);
    cr_assert(wr_fast_add_is_busy(wr_producer_mine));
    cr_assert_not(wr_producer_is_own());
    cr_assert_not(wr_producer_is_gone());
}

Test(producer, a_thread_gets_a_ring_and_keeps_it)
{
    struct wr_producer *producer = wr_producers_attach(&producers);
    cr_assert_eq(wr_producer_mine, producer);
    cr_assert_eq(producer->home, &producers);
    cr_assert_eq(producer->state, WR_PRODUCER_READY);
    cr_assert_eq(wr_producers_attach(&producers), producer);
    cr_assert_eq(producers.count, 1);
}

Test(producer, a_new_ring_is_empty_and_parked)
{
    const struct wr_ring *ring = &wr_producers_attach(&producers)->ring;
    cr_assert_eq(ring->size, WR_PRODUCER_SLOTS);
    cr_assert_eq(wr_ring_fill(ring), 0);
    cr_assert_eq(ring->parked, 1);
    cr_assert_eq((uintptr_t)ring->slots % sizeof(weir_sample), 0);
}

Test(producer, reader_and_writer_indices_are_on_different_cache_lines)
{
    const struct wr_producer *producer = wr_producers_attach(&producers);
    cr_assert_eq((uintptr_t)producer % WR_LINE, 0);
    cr_assert_geq((uintptr_t)&producer->ring.head / WR_LINE, (uintptr_t)&producer->ring.tail / WR_LINE + 1);
}

Test(producer, without_membarrier_the_fast_path_is_closed)
{
    producers.fenced = true;
    cr_assert_eq(wr_producers_attach(&producers)->state, WR_PRODUCER_CAREFUL);
}

Test(producer, without_ticks_the_fast_path_reads_the_wall_clock)
{
    producers.ticks = false;
    cr_assert_eq(wr_producers_attach(&producers)->state, WR_PRODUCER_CLOCKED);
}

Test(producer, the_clock_can_be_changed_under_threads_that_add)
{
    if (!wr_clock_has_ticks())
        cr_skip_test("this processor has no counter to be used");
    struct wr_producer *producer = wr_producers_attach(&producers);
    wr_producers_use_ticks(&producers, false);
    cr_assert_not(producer->ticks);
    cr_assert_eq(producer->state, WR_PRODUCER_CLOCKED);
    wr_producers_use_ticks(&producers, true);
    cr_assert(producer->ticks);
    cr_assert_eq(producer->state, WR_PRODUCER_READY);
}

Test(producer, a_change_of_the_clock_does_not_open_a_closed_fast_path)
{
    if (!wr_clock_has_ticks())
        cr_skip_test("this processor has no counter to be used");
    wr_producers_mark_own();
    wr_producers_attach(&producers);
    wr_producers_use_ticks(&producers, false);
    wr_producers_use_ticks(&producers, true);
    cr_assert_eq(wr_producer_mine->state, WR_PRODUCER_CAREFUL, "weir's own");
    wr_producers_close(&producers);
    wr_producers_use_ticks(&producers, false);
    wr_producers_use_ticks(&producers, true);
    cr_assert_eq(wr_producer_mine->state, WR_PRODUCER_CLOSED);
}

Test(producer, weirs_own_threads_do_not_use_the_fast_path)
{
    wr_producers_mark_own();
    cr_assert(wr_producer_is_own());
    cr_assert_eq(producers.count, 0, "not needed yet");
    wr_producers_attach(&producers);
    cr_assert(wr_producer_is_own());
    cr_assert_eq(wr_producer_mine->state, WR_PRODUCER_CAREFUL);
}

/* ---- Detaching ------------------------------------------------------------------------------- */

Test(producer, the_ring_of_a_thread_that_ended_is_adopted_by_the_next)
{
    void *first = on_thread(attach, NULL);
    cr_assert_eq(producers.orphan_count, 1);
    cr_assert_eq(on_thread(attach, NULL), first);
    cr_assert_eq(wr_producers_attach(&producers), (struct wr_producer *)first);
    cr_assert_eq(producers.orphan_count, 0);
    cr_assert_eq(producers.count, 1);
}

static void *publish_three(void *argument)
{
    (void)argument;
    struct wr_producer *producer = wr_producers_attach(&producers);
    wr_ring_publish(&producer->ring, 3);
    return producer;
}

Test(producer, an_adopted_ring_still_holds_what_was_in_it)
{
    on_thread(publish_three, NULL);
    cr_assert_eq(wr_ring_fill(&wr_producers_attach(&producers)->ring), 3);
}

static void *attach_as_own(void *argument)
{
    (void)argument;
    wr_producers_mark_own();
    wr_producers_attach(&producers);
    return NULL;
}

Test(producer, the_ring_of_one_of_weirs_own_threads_is_adopted_by_any_thread)
{
    on_thread(attach_as_own, NULL);
    cr_assert_eq(wr_producers_attach(&producers)->state, WR_PRODUCER_READY);
    cr_assert_not(wr_producer_is_own());
}

static void *attach_as_source(void *argument)
{
    (void)argument;
    atomic_store(&wr_producers_attach(&producers)->is_source, true);
    return NULL;
}

Test(producer, the_ring_of_a_source_is_adopted_as_that_of_the_program)
{
    on_thread(attach_as_source, NULL);
    cr_assert_not(wr_producers_attach(&producers)->is_source);
    cr_assert_eq(producers.count, 1);
}

static void *end_inside_a_call(void *argument)
{
    (void)argument;
    wr_fast_add_begin(wr_producers_attach(&producers));
    pthread_exit(NULL);
}

Test(producer, the_ring_of_a_thread_that_ended_inside_a_call_is_adopted)
{
    on_thread(end_inside_a_call, NULL);
    cr_assert_not(wr_fast_add_is_busy(wr_producers_attach(&producers)),
                  "otherwise every call would count as nested");
}

static void *end_inside_an_addition(void *argument)
{
    struct wr_producer *producer = wr_producers_attach(&producers);
    (void)argument;
    wr_fast_add_begin(producer);
    cr_assert(wr_cells_open(&producer->cells, 5) && wr_cells_add(&producer->cells, 5, 1));
    atomic_fetch_add(&producer->cells.values, 1); /* the next value is counted, and not added yet */
    pthread_exit(NULL);
}

Test(producer, what_a_thread_that_ended_inside_a_call_did_not_add_is_not_counted)
{
    on_thread(end_inside_an_addition, NULL);
    cr_assert_eq(atomic_load(&wr_producers_attach(&producers)->cells.values), 1);
}

static pthread_key_t late_key;
static bool was_gone;

static void check_late(void *value)
{
    /* the first round of destructors may come before the producer's own */
    if (!wr_producer_is_gone() && value == &late_key) {
        pthread_setspecific(late_key, &was_gone);
        return;
    }
    was_gone = wr_producer_is_gone() && !wr_producers_attach(&producers);
}

static void *attach_and_check_late(void *argument)
{
    pthread_setspecific(late_key, &late_key);
    return attach(argument);
}

Test(producer, a_thread_that_is_ending_gets_no_ring)
{
    pthread_key_create(&late_key, check_late);
    on_thread(attach_and_check_late, NULL);
    cr_assert(was_gone);
}

/* ---- Too many -------------------------------------------------------------------------------- */

Test(producer, threads_beyond_the_limit_share_one_ring)
{
    producers.count = WR_PRODUCERS_MOST;
    struct wr_producer *shared = wr_producers_attach(&producers);
    cr_assert(shared->shared);
    cr_assert_eq(shared->state, WR_PRODUCER_CAREFUL);
    cr_assert_not(shared->cache.open);
    cr_assert(wr_fast_add_is_busy(shared), "the fast path, which takes no lock, must not begin");
    cr_assert_eq(on_thread(attach, NULL), shared);
    cr_assert_eq(producers.orphan_count, 0, "the shared ring is not an orphan");
    cr_assert_eq(producers.count, WR_PRODUCERS_MOST);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

Test(producer, after_a_fork_all_rings_but_the_callers_are_free_for_adoption)
{
    struct wr_producer *mine = wr_producers_attach(&producers);
    on_thread(attach, NULL);
    struct wr_producer *other = producers.all[1];
    wr_ring_publish(&mine->ring, 2);
    wr_ring_publish(&other->ring, 2);
    wr_lock_enter(&producers.lock);
    wr_producers_after_fork(&producers, NULL);
    cr_assert_eq(mine->state, WR_PRODUCER_COLD);
    cr_assert_eq(producers.orphan_count, 1);
    cr_assert_eq(wr_producers_attach(&producers), mine);
    cr_assert_eq(mine->state, WR_PRODUCER_READY);
    cr_assert_eq(wr_ring_fill(&mine->ring), 0);
    cr_assert_eq(on_thread(attach, NULL), other);
    cr_assert_eq(wr_ring_fill(&other->ring), 0);
}

/* Whatever the child does first. */
Test(producer, a_forked_child_counts_refusals_from_zero_before_it_has_used_weir)
{
    int status;
    wr_producers_refuse(&producers, WEIR_REFUSED_BUSY, 5);
    pid_t child = fork();
    if (child == 0) {
        bool zero = producers.refused[WEIR_REFUSED_BUSY] == 0;
        wr_producers_refuse(&producers, WEIR_REFUSED_BUSY, 1);
        wr_producers_after_fork(&producers, NULL);
        _exit(zero && producers.refused[WEIR_REFUSED_BUSY] == 1 ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(producers.refused[WEIR_REFUSED_BUSY], 5);
}

Test(producer, after_a_fork_the_forking_thread_keeps_its_ring_if_another_thread_attaches_first)
{
    struct wr_producer *mine = wr_producers_attach(&producers);
    wr_producers_after_fork(&producers, mine);
    cr_assert_eq(producers.orphan_count, 0);
    cr_assert_neq(on_thread(attach, NULL), mine);
    cr_assert_eq(wr_producers_attach(&producers), mine);
}

static void *restart_and_attach(void *argument)
{
    wr_producers_after_fork(&producers, NULL);
    return attach(argument);
}

Test(producer, after_a_fork_by_an_unknown_thread_no_ring_is_adopted_until_that_thread_attaches)
{
    struct wr_producer *mine = wr_producers_attach(&producers);
    struct wr_producer *first = on_thread(restart_and_attach, NULL);
    cr_assert_neq(first, mine);
    cr_assert_eq(producers.orphan_count, 1, "the ring of the thread that has ended");
    cr_assert_eq(wr_producers_attach(&producers), mine);
    cr_assert_eq(wr_ring_fill(&mine->ring), 0);
}

/* ---- The end --------------------------------------------------------------------------------- */

Test(producer, closing_applies_to_existing_and_future_producers)
{
    struct wr_producer *producer = wr_producers_attach(&producers);
    wr_producers_close(&producers);
    cr_assert_eq(producer->state, WR_PRODUCER_CLOSED);
    on_thread(attach, NULL);
    cr_assert_eq(producers.all[1]->state, WR_PRODUCER_CLOSED);
}

Test(producer, settling_waits_for_calls_in_progress)
{
    wr_producers_attach(&producers);
    on_thread(attach, NULL);
    struct wr_producer *other = producers.all[1];
    wr_fast_add_begin(other);
    wr_producers_close(&producers);
    cr_assert_eq(wr_producers_settle(&producers, 0), 1);
    wr_fast_add_end(other);
    cr_assert_eq(wr_producers_settle(&producers, 0), 0);
}

Test(producer, settling_does_not_wait_for_the_caller_itself)
{
    wr_fast_add_begin(wr_producers_attach(&producers));
    cr_assert_eq(wr_producers_settle(&producers, 0), 0);
}

Test(producer, settling_does_not_wait_for_calls_that_wait)
{
    wr_producers_attach(&producers);
    on_thread(attach, NULL);
    atomic_store(&producers.all[1]->busy, WR_PRODUCER_WAITING);
    wr_producers_close(&producers);
    cr_assert_eq(wr_producers_settle(&producers, 0), 0);
}

Test(producer, settling_waits_for_the_call_in_the_shared_ring)
{
    producers.count = WR_PRODUCERS_MOST;
    struct wr_producer *shared = wr_producers_attach(&producers);
    producers.count = 0;
    wr_fast_add_begin(shared);
    cr_assert_eq(wr_producers_settle(&producers, 0), 1);
    atomic_store(&shared->busy, WR_PRODUCER_SHARED);
    cr_assert_eq(wr_producers_settle(&producers, 0), 0);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

Test(producer, refusals_are_counted_by_reason_and_each_has_an_error)
{
    const struct {
        enum weir_refusal why;
        int error;
    } table[] = {
        {WEIR_REFUSED_NAME, WEIR_ERR_NAME},         {WEIR_REFUSED_LIMIT, WEIR_ERR_LIMIT},
        {WEIR_REFUSED_MEMORY, WEIR_ERR_MEMORY},     {WEIR_REFUSED_CLOSED, WEIR_ERR_CLOSED},
        {WEIR_REFUSED_BUSY, WEIR_ERR_BUSY},         {WEIR_REFUSED_TOO_LARGE, WEIR_ERR_TOO_LARGE},
        {WEIR_REFUSED_ARGUMENT, WEIR_ERR_ARGUMENT},
    };
    for (size_t i = 0; i < WR_COUNT_OF(table); i++) {
        cr_assert_eq(wr_producers_refuse(&producers, table[i].why, 3), table[i].error);
        cr_assert_eq(wr_producers_refuse(&producers, table[i].why, 1), table[i].error);
        cr_assert_eq(producers.refused[table[i].why], 4);
    }
}
