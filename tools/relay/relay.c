/* weir relay: a service that reads values from the sources of a configuration and delivers them.
 *
 * Signals are blocked in all threads, and the main thread takes them from a descriptor. It never waits for
 * anything else: other threads wait for the sources and shut weir down, and report their end by an eventfd. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <weir/weir.h>

#include "common/command.h"
#include "common/configure.h"
#include "config/parse.h"
#include "engine/engine.h"
#include "notify.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/thread.h"
#include "runtime/runtime.h"
#include "summary.h"
#include "text/common.h"
#include "text/units.h"

#define DEFAULT_CONFIG "/etc/weir/relay.json"

enum { IDLE_MS = 1000, OPTION_EVERY = 256 };

struct request {
    const char *config;
    bool verbose;
    int64_t every_ns; /* 0: no summary before the end */
};

/* Threads may still be using it when the process ends, so it is never freed. */
struct relay {
    const struct request *request;
    int signal_fd, event_fd;
    _Atomic bool have_ended; /* the sources, at that moment */
    _Atomic bool is_drained;
    bool is_idle; /* there are no sources, until a reload adds some */
    int64_t summary_ns, timeout_ns;
};

enum event { EVENT_NONE, EVENT_STOP, EVENT_RELOAD };

/* ---- Arguments ------------------------------------------------------------------------------- */

static int set_every(const struct command *command, struct request *request, const char *text)
{
    if (!wr_units_parse_duration(text, &request->every_ns) || request->every_ns < 100 * WR_NS_PER_MS ||
        request->every_ns > 86400 * WR_NS_PER_S)
        return command_refuse(command, "--every: \"%s\" is not a duration from 100ms to 1d", text);
    request->verbose = true;
    return COMMAND_CONTINUE;
}

static int parse(const struct command *command, struct request *request, int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"every", required_argument, NULL, OPTION_EVERY},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    int result = COMMAND_CONTINUE;
    for (int option;
         result == COMMAND_CONTINUE && (option = getopt_long(argc, argv, "c:vh", options, NULL)) != -1;) {
        switch (option) {
        case 'c': request->config = optarg; break;
        case 'v': request->verbose = true; break;
        case OPTION_EVERY: result = set_every(command, request, optarg); break;
        case 'h': command_print_help(command, stdout); return EXIT_SUCCESS;
        default: return command_show_usage(command);
        }
    }
    if (result == COMMAND_CONTINUE && optind < argc)
        return command_refuse(command, "no arguments are allowed: \"%s\"", argv[optind]);
    return result;
}

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
static bool open_descriptors(struct relay *relay)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &taken, NULL);
    signal(SIGPIPE, SIG_IGN);
    relay->signal_fd = wr_fd_above_stdio(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    relay->event_fd = wr_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (relay->signal_fd >= 0 && relay->event_fd >= 0)
        return true;
    command_fail("no descriptor for signals: %s", strerror(errno));
    return false;
}

static bool configure(const struct request *request)
{
    const char *file = request->config ? request->config : wr_parse_has_variable() ? NULL : DEFAULT_CONFIG;
    if (!configure_from(file))
        return false;
    if (count_sources() == 0)
        command_fail(
            "%s: the configuration has no sources: \"sources\" is missing or empty; nothing would be read",
            file ? file : "WEIR_CONFIG");
    else if (weir_start_sources() != 0)
        command_fail("%s", weir_last_error());
    else
        return true;
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

/* ---- Other threads --------------------------------------------------------------------------- */

static void report_event(struct relay *relay, _Atomic bool *what)
{
    const uint64_t one = 1;
    atomic_store(what, true);
    (void)!write(relay->event_fd, &one, sizeof one); /* it does not block */
}

static void *wait_for_sources(void *argument)
{
    struct relay *relay = argument;
    weir_wait_sources(-1);
    report_event(relay, &relay->have_ended);
    return NULL;
}

static void *drain(void *argument)
{
    struct relay *relay = argument;
    weir_shutdown(relay->timeout_ns / WR_NS_PER_MS);
    report_event(relay, &relay->is_drained);
    return NULL;
}

/* Without another thread the main one does the work: then a second signal has to wait. */
static void start_or_run(void *(*run)(void *), struct relay *relay)
{
    pthread_t thread;
    if (wr_thread_start(run, relay, &thread))
        pthread_detach(thread);
    else
        run(relay);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static enum event take_signal(const struct relay *relay)
{
    struct signalfd_siginfo info;
    if (read(relay->signal_fd, &info, sizeof info) != sizeof info)
        return EVENT_NONE;
    return info.ssi_signo == SIGHUP ? EVENT_RELOAD : EVENT_STOP;
}

/* Returns at most one event; may return EVENT_NONE early. */
static enum event wait_for_event(const struct relay *relay, int64_t timeout_ms)
{
    struct pollfd fds[] = {{relay->signal_fd, POLLIN, 0}, {relay->event_fd, POLLIN, 0}};
    uint64_t unused;
    poll(fds, WR_COUNT_OF(fds), timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
    (void)!read(relay->event_fd, &unused, sizeof unused); /* it does not block */
    return take_signal(relay);
}

static int64_t find_timeout_ms(const struct relay *relay)
{
    int64_t ms = relay->is_idle ? IDLE_MS : -1;
    if (!relay->request->every_ns)
        return ms;
    int64_t left_ns = relay->summary_ns - wr_clock_monotonic_ns();
    int64_t left_ms = left_ns > 0 ? (left_ns + WR_NS_PER_MS - 1) / WR_NS_PER_MS : 0;
    return ms < 0 || left_ms < ms ? left_ms : ms;
}

/* ---- Running --------------------------------------------------------------------------------- */

static void reload(struct relay *relay)
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
    if (relay->request->verbose)
        summary_print();
}

/* A reload may have started sources since they were found to have ended. Returns whether to end. */
static bool check_end(struct relay *relay)
{
    weir_source_stats stats;
    if (weir_wait_sources(0) != 0) {
        relay->is_idle = false;
        atomic_store(&relay->have_ended, false);
        start_or_run(wait_for_sources, relay);
        return false;
    }
    if (weir_get_source_stats(0, &stats, sizeof stats) == 0)
        return true;
    if (!relay->is_idle)
        wr_log_write(engine()->log, WEIR_LOG_WARNING,
                     "the configuration has no sources any more; nothing is read until it has some");
    relay->is_idle = true;
    return false;
}

static void print_summary_when_due(struct relay *relay)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    if (!relay->request->every_ns || now_ns < relay->summary_ns)
        return;
    summary_print();
    relay->summary_ns = now_ns + relay->request->every_ns;
}

static void serve(struct relay *relay)
{
    relay->summary_ns = wr_clock_monotonic_ns() + relay->request->every_ns;
    start_or_run(wait_for_sources, relay);
    for (;;) {
        enum event event = wait_for_event(relay, find_timeout_ms(relay));
        if (event == EVENT_STOP)
            return;
        if (event == EVENT_RELOAD)
            reload(relay);
        if (atomic_load(&relay->have_ended) && check_end(relay))
            return;
        print_summary_when_due(relay);
    }
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static int64_t shutdown_timeout_ns(void)
{
    uint64_t generation;
    struct wr_config *config = wr_engine_config(engine(), &generation);
    int64_t timeout_ns = config->settings.shutdown_timeout_ns;
    wr_config_drop(config);
    return timeout_ns;
}

/* The supervisor waits longer than weir itself does. */
static void deliver_rest(struct relay *relay)
{
    const int64_t grace_ns = 10 * WR_NS_PER_S;
    relay->timeout_ns = shutdown_timeout_ns();
    notify_stopping((relay->timeout_ns + grace_ns) / 1000);
    start_or_run(drain, relay);
    while (!atomic_load(&relay->is_drained)) {
        if (wait_for_event(relay, -1) != EVENT_STOP)
            continue;
        command_fail("ended by a second signal: what is queued was not delivered");
        _exit(EXIT_FAILURE); /* exit handlers would wait for what is queued */
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct request request;
    static struct relay relay = {.request = &request};
    int result = parse(command, &request, argc, argv);
    if (result != COMMAND_CONTINUE)
        return result;
    if (!open_descriptors(&relay) || !configure(&request))
        return EXIT_FAILURE;
    report_ready(NULL);
    serve(&relay);
    deliver_rest(&relay);
    if (request.verbose)
        summary_print();
    return summary_check() ? EXIT_SUCCESS : EXIT_FAILURE;
}

const struct command command_relay = {
    .name = "relay",
    .arguments = "[-c FILE] [-v] [--every TIME]",
    .summary = "Reads values from the sources of a configuration and delivers them, as a service.",
    .help = "\n  -c, --config FILE  the configuration; default: WEIR_CONFIG, else " DEFAULT_CONFIG "\n"
            "  -v, --verbose      prints what was read and delivered: after a reload and at the end\n"
            "      --every TIME   also at this interval, from 100ms to 1d\n"
            "  -h, --help         this text\n\n"
            "Runs until SIGTERM or SIGINT, or until all sources have ended; then it delivers what is queued,\n"
            "within settings.shutdown_timeout. A second signal ends it at once. SIGHUP reloads the\n"
            "configuration; one that is invalid is logged, and the present one stays. State is reported to\n"
            "NOTIFY_SOCKET, for systemd. Exit status 1: the configuration is invalid, values were dropped or\n"
            "not delivered, or a source has failed.\n",
    .run = run,
};
