/* standstill: the process is stopped for longer than a call waits for rounds of the dispatcher, while a call
 * waits for its handler: as a suspended machine does. The call is not refused, and no value is lost. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "counting.h"

enum { VALUES = 50000, STOPS = 2, STOPPED_US = 2500000 };

/* Of both processes. */
struct shared {
    _Atomic int added;
    _Atomic bool may_deliver;
};

static struct shared *shared;

static void wait_until_allowed(const weir_batch *batch)
{
    (void)batch;
    while (!atomic_load(&shared->may_deliver))
        usleep(1000);
}

static void run_child(void)
{
    weir_stats process;
    weir_handler_stats handler;
    plain_hang_no_longer_than(60);
    counting_before = wait_until_allowed;
    counting_configure("{\"queue\": \"4KiB\", \"block_timeout\": \"1h\"}");
    weir_metric *metric = weir_get_metric(weir_get_stream("standstill"), "value");
    for (int i = 0; i < VALUES; i++) {
        PLAIN_CHECK(weir_metric_add_int(metric, i) == 0, "a call was refused");
        atomic_store(&shared->added, i + 1);
    }
    PLAIN_CHECK(weir_flush(-1) == 0 && weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(weir_get_handler_stats("counting", &handler, sizeof handler) == 0);
    PLAIN_CHECK(process.added == VALUES && handler.offered == VALUES && handler.delivered == VALUES);
    exit(0);
}

/* A call waits, unless the machine is very busy; then the test proves less. */
static void wait_for_standstill(void)
{
    int before = -1;
    while (!before || before != atomic_load(&shared->added)) {
        before = atomic_load(&shared->added);
        usleep(300000);
    }
}

int main(void)
{
    int status;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(shared != MAP_FAILED);
    pid_t child = fork();
    if (child == 0)
        run_child();
    PLAIN_CHECK(child > 0);
    wait_for_standstill();
    for (int i = 0; i < STOPS; i++) {
        PLAIN_CHECK(kill(child, SIGSTOP) == 0);
        usleep(STOPPED_US);
        PLAIN_CHECK(kill(child, SIGCONT) == 0);
        usleep(300000);
    }
    PLAIN_CHECK(atomic_load(&shared->added) < VALUES, "no call had to wait");
    atomic_store(&shared->may_deliver, true);
    PLAIN_CHECK(waitpid(child, &status, 0) == child && status == 0, "a value was lost");
    return 0;
}
