/* held_at_shutdown: a thread keeps the round lock while weir shuts down, as one that is stopped by a debugger
 * does. The handlers are stopped all the same, and what a round could not take is reported: a shutdown never
 * returns 0 then. One that gets the lock in time delivers and counts everything. */

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/wait.h>

#include "counting.h"
#include "runtime/runtime.h"

static sem_t is_held, may_leave;
static _Atomic int complaints;

static struct wr_engine *get_engine(void)
{
    return wr_runtime_engine(wr_runtime_get());
}

static void count_complaint(void *context, int level, const char *text)
{
    (void)context;
    if (level == WEIR_LOG_ERROR && strstr(text, "has kept weir's lock"))
        complaints++;
}

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

static void *hold_lock(void *argument)
{
    struct wr_visit visit;
    wr_engine_enter(get_engine(), &visit);
    sem_post(&is_held);
    await(&may_leave);
    wr_engine_leave(&visit);
    return argument;
}

/* The first value is in the handler's hands, or delivered, and the second in the ring when the lock is taken.
 */
static pthread_t begin(void)
{
    pthread_t holder;
    plain_hang_no_longer_than(100);
    sem_init(&is_held, 0, 0);
    sem_init(&may_leave, 0, 0);
    weir_set_log(count_complaint, NULL);
    counting_configure("{}");
    PLAIN_CHECK(weir_add_int(weir_get_stream("held"), "value", 0) == 0 && weir_flush(-1) == 0);
    PLAIN_CHECK(pthread_create(&holder, NULL, hold_lock, NULL) == 0);
    await(&is_held);
    PLAIN_CHECK(weir_add_int(weir_get_stream("held"), "value", 1) == 0);
    return holder;
}

/* Returns how many of the two values were not delivered. */
static uint64_t end(pthread_t holder)
{
    weir_stats process;
    weir_handler_stats handler;
    pthread_join(holder, NULL);
    PLAIN_CHECK(weir_shutdown(0) == 0, "it is finished");
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(weir_get_handler_stats("counting", &handler, sizeof handler) == 0);
    PLAIN_CHECK(process.added == 2 && handler.offered == 2 && handler.queued == 0);
    PLAIN_CHECK(handler.offered == handler.delivered + handler.dropped[WEIR_DROPPED_SHUTDOWN]);
    return process.added - handler.delivered;
}

static void shut_down_without_lock(void)
{
    pthread_t holder = begin();
    get_engine()->limits.lock_ns = 0;
    PLAIN_CHECK(weir_shutdown(0) == WEIR_ERR_TIMEOUT);
    PLAIN_CHECK(strstr(weir_last_error(), "another thread has kept weir's lock"));
    PLAIN_CHECK(complaints == 1);
    sem_post(&may_leave);
    PLAIN_CHECK(end(holder) == 1, "the second value was not delivered");
    PLAIN_CHECK(weir_add_int(weir_get_stream("held"), "value", 2) == WEIR_ERR_CLOSED);
}

static void *leave_lock(void *argument)
{
    sem_post(&may_leave);
    return argument;
}

static void shut_down_with_lock_in_time(void)
{
    pthread_t holder = begin(), leaver;
    get_engine()->limits.lock_ns = 3600 * WR_NS_PER_S;
    PLAIN_CHECK(pthread_create(&leaver, NULL, leave_lock, NULL) == 0);
    int result = weir_shutdown(0);
    PLAIN_CHECK(result == 0 || result == WEIR_ERR_DROPPED);
    PLAIN_CHECK(complaints == 0);
    pthread_join(leaver, NULL);
    PLAIN_CHECK(end(holder) == (result == 0 ? 0 : 1));
}

int main(void)
{
    void (*const cases[])(void) = {shut_down_without_lock, shut_down_with_lock_in_time};
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            cases[i]();
            _exit(0);
        }
        PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    return 0;
}
