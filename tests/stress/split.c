/* split: a signal handler forks while it interrupts calls that add values. The child only ends, or executes
 * another program; the parent's calls are all in its ledger.
 *
 * usage: split [JOURNAL-FOLDER] */

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../support/plain.h"

enum { FORKS = 200, HANG_S = 30, NAMES = 3000, PERIOD_US = 1500 };

static weir_metric *metric;
static volatile sig_atomic_t forks, most_forks;
static bool only_metric;
static uint64_t good; /* values of calls that returned 0 */

static void split(int signal)
{
    int saved = errno, status;
    (void)signal;
    if (forks == most_forks)
        return;
    forks++;
    pid_t child = fork();
    PLAIN_CHECK(child >= 0);
    if (child == 0) {
        plain_hang_no_longer_than(HANG_S);
        if (forks % 2)
            execl("/bin/true", "true", (char *)NULL);
        _exit(forks % 2);
    }
    PLAIN_CHECK(waitpid(child, &status, 0) == child);
    PLAIN_CHECK(status == 0, "a child failed");
    errno = saved;
}

static void check_ledger(void)
{
    weir_stats process;
    weir_handler_stats handler;
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(weir_get_handler_stats("null", &handler, sizeof handler) == 0);
    PLAIN_CHECK(process.added == good && handler.delivered == good);
}

/* Adds one way after the other, quickly enough that the ring is often full. */
static int add(weir_stream *stream, int i)
{
    static char names[NAMES][8];
    char *name = names[i % NAMES];
    const weir_value event[] = {{"e", 1}, {"f", 2}};
    switch (only_metric ? 7 : i % 8) {
    case 0: snprintf(name, sizeof names[0], "n%d", i % NAMES); return weir_add_int(stream, name, i);
    case 1: return weir_emit(stream, event, 2);
    case 2: return weir_add_int(stream, "x", i);
    default: return weir_metric_add_int(metric, i);
    }
}

/* sums: the handler does, so that the values of the histogram go to cells. */
static void configure(const char *journal, bool sums)
{
    char text[512];
    int length =
        snprintf(text, sizeof text, "{%s%s%s\"handlers\":{\"*\":{%s}},\"groups\":{\"*\":\"null\"}}",
                 journal ? "\"settings\":{\"journal\":\"" : "", journal ? journal : "", journal ? "\"}," : "",
                 sums ? "\"aggregate\":\"10ms\",\"percentiles\":[]" : "\"block_timeout\":\"1h\"");
    PLAIN_CHECK(weir_configure_text(text, (size_t)length) == 0);
}

static void run(const char *journal, bool sums)
{
    most_forks = plain_rounds(FORKS);
    configure(journal, sums);
    only_metric = sums;
    weir_stream *stream = weir_get_stream("my_app");
    metric = sums ? weir_get_histogram(stream, "m", NULL, 0) : weir_get_metric(stream, "m");
    PLAIN_CHECK(weir_metric_add_int(metric, 1) == 0);
    good = 1;
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = split, .sa_flags = SA_RESTART}, NULL);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    PLAIN_CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec spec = {{0, PERIOD_US * 1000}, {0, PERIOD_US * 1000}};
    PLAIN_CHECK(timer_settime(timer, 0, &spec, NULL) == 0);
    for (int i = 0; forks < most_forks; i++) {
        PLAIN_CHECK(add(stream, i) == 0);
        good += i % 8 == 1 && !only_metric ? 2 : 1;
    }
    timer_delete(timer);
    check_ledger();
}

/* A process uses weir once. */
static void run_in_process(const char *journal, bool sums)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(plain_limit(150));
        run(journal, sums);
        exit(0);
    }
    PLAIN_CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        plain_fail(__FILE__, __LINE__, "the process succeeds",
                   journal ? "with a journal"
                   : sums  ? "with sums"
                           : "without a journal");
}

int main(void)
{
    char folder[] = "/tmp/weir-split.XXXXXX";
    if (plain_is_sanitized("")) {
        puts("the sanitizers' allocators and thread lists do not support a fork of a threaded program");
        return 77;
    }
    plain_hang_no_longer_than(plain_limit(450));
    run_in_process(NULL, false);
    run_in_process(NULL, true);
    PLAIN_CHECK(mkdtemp(folder));
    run_in_process(folder, false);
    PLAIN_CHECK(rmdir(folder) == 0, "the journal was not deleted at exit");
    return 0;
}
