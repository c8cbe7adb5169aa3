/* signals: timers at 10 kHz interrupt threads in malloc, in a configuration, in a flush, in a forked child and
 * at exit, and their signal handlers add values by weir_metric_try_add. No process hangs, the handler starts no
 * thread, and the ledger has what the calls returned. `ordinary` does the same with weir_metric_add where it
 * may wait: it is not meant for signal handlers, but once the handler's thread runs, no lock of weir's makes it
 * wait for the thread that it interrupted.
 *
 * All threads share one arena of malloc, so that a thread that is interrupted inside malloc stops all others
 * that allocate. Each scenario is a process of its own. */

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"
#include "../support/threads.h"

enum { HANG_S = 100, RUN_MS = 1500, CHILDREN = 60, BURST = 20, LONG_BURST = 5000, PIECES = 64 };
enum { LONG_MS = 3600000 };

static weir_metric *metric;
static int (*add_in_handler)(weir_metric *metric, int64_t value) = weir_metric_try_add_int;
static int burst = BURST;
static _Atomic uint64_t good, busy, closed, other, ordinary;
static _Atomic bool done;

/* ---- Signals --------------------------------------------------------------------------------- */

/* A signal handler that may take longer than its timer's interval arms the timer itself, when it ends: else its
 * thread would never go on. */
static _Thread_local timer_t own_timer;
static bool rearms;

static void arm(timer_t timer, long value_ns, long interval_ns)
{
    struct itimerspec spec = {{0, interval_ns}, {0, value_ns}};
    timer_settime(timer, 0, &spec, NULL);
}

enum { OFTEN_NS = 100000, SELDOM_NS = 1000000 };

static void interrupt(int signal)
{
    (void)signal;
    int before = errno;
    errno = 4711;
    for (int i = 0; i < burst; i++) {
        int result = add_in_handler(metric, 1);
        atomic_fetch_add(result == 0                 ? &good
                         : result == WEIR_ERR_BUSY   ? &busy
                         : result == WEIR_ERR_CLOSED ? &closed
                                                     : &other,
                         1);
    }
    if (errno != 4711)
        atomic_fetch_add(&other, 1);
    if (rearms)
        arm(own_timer, SELDOM_NS, 0);
    errno = before;
}

static void install(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    PLAIN_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}

/* Interrupts the calling thread. */
static timer_t start_timer(long interval_ns)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    PLAIN_CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    own_timer = timer;
    arm(timer, interval_ns, rearms ? 0 : interval_ns);
    return timer;
}

/* ---- What is interrupted --------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Blocks of all sizes above those that malloc serves without a lock. */
static void use_malloc(void)
{
    static _Thread_local void *pieces[PIECES];
    static _Thread_local uint64_t seed;
    if (!seed)
        seed = (uint64_t)getpid() * 7919 + (uint64_t)syscall(SYS_gettid);
    for (int i = 0; i < 200; i++) {
        void **piece = &pieces[plain_draw(&seed, PIECES)];
        free(*piece);
        *piece = malloc(2000 + plain_draw(&seed, 60000));
    }
}

static void configure(void)
{
    static _Atomic unsigned turn;
    static const char *const groups[] = {"{\"*\":\"null\"}", "{\"*\":\"null\",\"g\":[\"null\"]}"};
    char text[200];
    int length = snprintf(text, sizeof text, "{\"handlers\":{\"*\":{\"block_timeout\":\"1h\"}},\"groups\":%s}",
                          groups[atomic_fetch_add(&turn, 1) % 2]);
    int result = weir_configure_text(text, (size_t)length);
    PLAIN_CHECK(result == 0 || result == WEIR_ERR_BUSY); /* the other thread keeps configuring */
}

static void flush_and_read(void)
{
    weir_stats process;
    weir_handler_stats handler;
    weir_flush(0);
    PLAIN_CHECK(weir_flush(-1) == 0);
    weir_get_stats(&process, sizeof process);
    weir_get_handler_stats("null", &handler, sizeof handler);
}

/* Other threads keep the queue near its bound. */
static void *flood(void *argument)
{
    (void)argument;
    while (!atomic_load(&done)) {
        uint64_t added = 0;
        for (int i = 0; i < 10000; i++)
            added += weir_metric_add_int(metric, 1) == 0;
        atomic_fetch_add(&ordinary, added);
        use_malloc();
    }
    return NULL;
}

static void add_ordinary(void)
{
    if (weir_metric_add_int(metric, 0) == 0)
        atomic_fetch_add(&ordinary, 1);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static void check_ledger(const char *name)
{
    weir_stats process;
    weir_handler_stats handler;
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(weir_get_handler_stats("null", &handler, sizeof handler) == 0);
    uint64_t added = good + ordinary, dropped = ledger_dropped(&handler);
    bool balanced = process.added == added && handler.delivered + dropped == added &&
                    process.refused[WEIR_REFUSED_BUSY] == busy &&
                    process.refused[WEIR_REFUSED_CLOSED] == closed && other == 0;
    if (!balanced)
        fprintf(stderr,
                "%s: %" PRIu64 " by handlers, %" PRIu64 " otherwise, %" PRIu64 " busy, %" PRIu64
                " closed, %" PRIu64 " other; ledger: %" PRIu64 " added, %" PRIu64 " delivered, %" PRIu64
                " dropped, %" PRIu64 " refused as busy, %" PRIu64 " as closed\n",
                name, (uint64_t)good, (uint64_t)ordinary, (uint64_t)busy, (uint64_t)closed, (uint64_t)other,
                process.added, handler.delivered, dropped, process.refused[WEIR_REFUSED_BUSY],
                process.refused[WEIR_REFUSED_CLOSED]);
    PLAIN_CHECK(balanced);
}

/* ---- Scenarios ------------------------------------------------------------------------------- */

static void begin(void)
{
    install();
    configure();
    metric = weir_get_metric(weir_get_stream("g"), "m");
}

/* Two threads are interrupted, another one adds values as fast as it can. */
struct victim {
    void (*work)(void);
    long interval_ns;
};

static void *suffer(void *argument)
{
    const struct victim *victim = argument;
    int64_t end_ms = now_ms() + RUN_MS;
    add_ordinary();
    timer_t timer = start_timer(victim->interval_ns);
    while (now_ms() < end_ms)
        victim->work();
    timer_delete(timer);
    return NULL;
}

static void interrupt_work(const char *name, void (*work)(void), long interval_ns)
{
    struct victim victim = {work, interval_ns};
    pthread_t threads[3];
    begin();
    add_ordinary();
    PLAIN_CHECK(weir_flush(-1) == 0); /* the handler's thread runs: starting it takes memory */
    for (int i = 0; i < 3; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, i < 2 ? suffer : flood, &victim) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    pthread_join(threads[2], NULL);
    int result = weir_flush(-1);
    PLAIN_CHECK(result == 0 || result == WEIR_ERR_DROPPED);
    PLAIN_CHECK(good > 0, "no signal handler added a value");
    check_ledger(name);
}

static void in_malloc(void)
{
    interrupt_work("malloc", use_malloc, OFTEN_NS);
}

static void in_configure(void)
{
    interrupt_work("configure", configure, OFTEN_NS);
}

static void in_flush(void)
{
    interrupt_work("flush", flush_and_read, OFTEN_NS);
}

static void in_malloc_ordinary(void)
{
    add_in_handler = weir_metric_add_int;
    burst = LONG_BURST;
    rearms = true;
    interrupt_work("ordinary", use_malloc, SELDOM_NS);
}

/* The process's first values come from the signal handler: refused, until an ordinary call has been made. */
static void first_values(void)
{
    begin();
    timer_t timer = start_timer(OFTEN_NS);
    while (busy < 1000)
        use_malloc();
    PLAIN_CHECK(good == 0 && other == 0);
    PLAIN_CHECK(count_threads() == 1, "a signal handler has started a thread");
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    add_ordinary();
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    for (uint64_t before = good; good < before + 1000;)
        use_malloc();
    timer_delete(timer);
    PLAIN_CHECK(weir_flush(-1) == 0);
    check_ledger("first");
}

static void count_from_zero(void)
{
    good = busy = closed = other = ordinary = 0;
}

/* Values are refused before the child has used weir itself, and counted; then they are added. */
static void live_as_child(void)
{
    plain_hang_no_longer_than(HANG_S);
    count_from_zero();
    timer_t timer = start_timer(OFTEN_NS);
    while (busy < 50)
        use_malloc();
    PLAIN_CHECK(good == 0 && count_threads() == 1);
    for (int i = 0; i < 100; i++)
        add_ordinary();
    for (uint64_t before = good; good < before + 50;)
        use_malloc();
    timer_delete(timer);
    PLAIN_CHECK(weir_flush(-1) == 0);
    check_ledger("child");
    exit(0);
}

static void check_end(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    PLAIN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child failed");
}

static void in_children(void)
{
    begin();
    add_ordinary();
    timer_t timer = start_timer(OFTEN_NS); /* a child does not inherit it */
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0)
            live_as_child();
        PLAIN_CHECK(child > 0);
        use_malloc();
        check_end(child);
    }
    timer_delete(timer);
    PLAIN_CHECK(weir_flush(-1) == 0);
    check_ledger("fork");
}

/* Signals go on until the process is gone. */
static void at_exit(void)
{
    begin();
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        PLAIN_CHECK(child >= 0);
        if (child == 0) {
            plain_hang_no_longer_than(HANG_S);
            add_ordinary();
            start_timer(OFTEN_NS);
            use_malloc();
            PLAIN_CHECK(weir_shutdown(LONG_MS) == 0);
            uint64_t added = good;
            while (closed < 50)
                use_malloc();
            sigset_t signals;
            sigfillset(&signals);
            sigprocmask(SIG_BLOCK, &signals, NULL);
            PLAIN_CHECK(good >= added);
            check_ledger("shutdown");
            sigprocmask(SIG_UNBLOCK, &signals, NULL);
            exit(0);
        }
        check_end(child);
    }
    add_ordinary();
    start_timer(OFTEN_NS);
    use_malloc();
    exit(0);
}

/* ---- Running them ---------------------------------------------------------------------------- */

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"malloc", in_malloc},
    {"configure", in_configure},
    {"flush", in_flush},
    {"first", first_values},
    {"children", in_children},
    {"exit", at_exit},
    {"ordinary", in_malloc_ordinary},
};

static bool run(const struct scenario *scenario)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(HANG_S);
        mallopt(M_ARENA_MAX, 1);
        mallopt(M_MMAP_THRESHOLD, 1 << 25);
        scenario->run();
        exit(0);
    }
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child);
    bool good_end = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    printf("%s: %s\n", scenario->name,
           good_end                                             ? "good"
           : WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "HANGS"
                                                                : "failed");
    fflush(stdout);
    return good_end;
}

int main(int argc, char **argv)
{
    bool all = true;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (argc < 2 || strcmp(argv[1], scenarios[i].name) == 0)
            all &= run(&scenarios[i]);
    return !all;
}
