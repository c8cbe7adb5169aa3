#include "service.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <weir/weir.h>

#include "command.h"
#include "delivery.h"
#include "engine/engine.h"
#include "notify.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/thread.h"
#include "runtime/runtime.h"
#include "service_summary.h"
#include "text/common.h"

/* SAME_SIGNAL_MS: timeout(1), for example, sends a signal to a process and then to its process group: these are
 * one request. */
enum { IDLE_MS = 1000, TEND_MS = 100, SAME_SIGNAL_MS = 1000 };

enum event { EVENT_NONE, EVENT_STOP, EVENT_RELOAD };

/* ---- Starting -------------------------------------------------------------------------------- */

static struct wr_engine *engine(void)
{
    return wr_runtime_engine(wr_runtime_get());
}

static size_t count_sources(void)
{
    uint64_t generation;
    struct wr_config *config = wr_engine_config(engine(), &generation);
    size_t count = config->source_count;
    wr_config_drop(config);
    return count;
}

/* Before any thread starts. A standard stream that is closed stays so: the source `stdin` must not read these.
 */
bool service_open(struct service *service)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &taken, NULL);
    signal(SIGPIPE, SIG_IGN);
    service->signal_fd = wr_fd_above_stdio(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    service->event_fd = wr_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (service->signal_fd >= 0 && service->event_fd >= 0)
        return true;
    command_fail("no descriptor for signals: %s", strerror(errno));
    return false;
}

static void report_ready(const char *problem)
{
    char text[900];
    size_t count = count_sources();
    snprintf(text, sizeof text, "reading from %zu source%s%s%.700s", count, count == 1 ? "" : "s",
             problem ? "; not reloaded: " : "", problem ? problem : "");
    notify_ready(text);
}

bool service_start(const char *name)
{
    if (count_sources() == 0)
        command_fail(
            "%s: the configuration has no sources: \"sources\" is missing or empty; nothing would be read",
            name);
    else if (weir_start_sources() != 0)
        command_fail("%s", weir_last_error());
    else
        return true;
    return false;
}

/* ---- Other threads --------------------------------------------------------------------------- */

static void report_event(struct service *service, _Atomic bool *what)
{
    const uint64_t one = 1;
    atomic_store(what, true);
    (void)!write(service->event_fd, &one, sizeof one); /* it does not block */
}

static void *wait_for_sources(void *argument)
{
    struct service *service = argument;
    weir_wait_sources(-1);
    report_event(service, &service->have_ended);
    return NULL;
}

static void *drain(void *argument)
{
    struct service *service = argument;
    weir_shutdown(service->timeout_ns / WR_NS_PER_MS);
    report_event(service, &service->is_drained);
    return NULL;
}

/* Without another thread the main one does the work: then a second signal has to wait. */
static void start_or_run(void *(*run)(void *), struct service *service)
{
    pthread_t thread;
    if (wr_thread_start(run, service, &thread))
        pthread_detach(thread);
    else
        run(service);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static enum event take_signal(const struct service *service)
{
    struct signalfd_siginfo info;
    if (read(service->signal_fd, &info, sizeof info) != sizeof info)
        return EVENT_NONE;
    return info.ssi_signo == SIGHUP ? EVENT_RELOAD : EVENT_STOP;
}

/* Returns at most one event; may return EVENT_NONE early. */
static enum event wait_for_event(const struct service *service, int64_t timeout_ms)
{
    struct pollfd fds[] = {{service->signal_fd, POLLIN, 0}, {service->event_fd, POLLIN, 0}};
    uint64_t unused;
    poll(fds, WR_COUNT_OF(fds), timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
    (void)!read(service->event_fd, &unused, sizeof unused); /* it does not block */
    return take_signal(service);
}

static int64_t find_timeout_ms(const struct service *service)
{
    int64_t ms = service->tend ? TEND_MS : service->is_idle ? IDLE_MS : -1;
    if (!service->every_ns)
        return ms;
    int64_t left_ns = service->summary_ns - wr_clock_monotonic_ns();
    int64_t left_ms = left_ns > 0 ? (left_ns + WR_NS_PER_MS - 1) / WR_NS_PER_MS : 0;
    return ms < 0 || left_ms < ms ? left_ms : ms;
}

/* ---- Running --------------------------------------------------------------------------------- */

static void reload(struct service *service)
{
    struct wr_log *log = engine()->log;
    notify_reloading();
    if (weir_reload() == 0) {
        wr_log_write(log, WEIR_LOG_INFO, "configuration reloaded");
        report_ready(NULL);
    } else {
        wr_log_write(log, WEIR_LOG_ERROR, "%s; the configuration in force stays", weir_last_error());
        report_ready(weir_last_error());
    }
    if (service->is_verbose)
        service_summary_print();
}

/* A reload may have started sources since they were found to have ended. Returns whether to end. */
static bool check_end(struct service *service)
{
    if (weir_wait_sources(0) != 0) {
        service->is_idle = false;
        atomic_store(&service->have_ended, false);
        start_or_run(wait_for_sources, service);
        return false;
    }
    if (weir_get_source_name(0))
        return true;
    if (!service->is_idle)
        wr_log_write(engine()->log, WEIR_LOG_WARNING,
                     "the configuration has no sources any more; nothing is read until it has some");
    service->is_idle = true;
    return false;
}

static void print_summary_when_due(struct service *service)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    if (!service->every_ns || now_ns < service->summary_ns)
        return;
    service_summary_print();
    service->summary_ns = now_ns + service->every_ns;
}

static void wait_for_end(struct service *service)
{
    service->summary_ns = wr_clock_monotonic_ns() + service->every_ns;
    start_or_run(wait_for_sources, service);
    for (;;) {
        enum event event = wait_for_event(service, find_timeout_ms(service));
        if (event == EVENT_STOP)
            return;
        if (event == EVENT_RELOAD)
            reload(service);
        if (atomic_load(&service->have_ended) && check_end(service))
            return;
        print_summary_when_due(service);
        if (service->tend && service->tend(service->ctx))
            service->tend = NULL;
    }
}

/* ---- Ending ---------------------------------------------------------------------------------- */

/* The supervisor waits longer than weir itself does. */
static void deliver_rest(struct service *service)
{
    const int64_t grace_ns = 10 * WR_NS_PER_S;
    service->timeout_ns = delivery_timeout_ns();
    notify_stopping((service->timeout_ns + grace_ns) / 1000);
    int64_t again_ns = wr_clock_monotonic_ns() + SAME_SIGNAL_MS * WR_NS_PER_MS;
    start_or_run(drain, service);
    while (!atomic_load(&service->is_drained)) {
        if (wait_for_event(service, -1) != EVENT_STOP || wr_clock_monotonic_ns() < again_ns)
            continue;
        command_fail("ended by a second signal: what is queued was not delivered");
        _exit(EXIT_FAILURE); /* exit handlers would wait for what is queued */
    }
}

int service_run(struct service *service)
{
    report_ready(NULL);
    wait_for_end(service);
    deliver_rest(service);
    if (service->is_verbose)
        service_summary_print();
    return service_summary_check(service->is_strict) ? EXIT_SUCCESS : EXIT_FAILURE;
}
