/* weir run: runs a command, and measures it, the machine, and the command's own metrics.
 *
 * The command is a child in the same process group and on the same terminal, whose streams nobody touches. It
 * is forked before any thread starts, waits until everything that measures it runs, and is measured for the
 * last time when it has ended and was not waited for yet. The main thread takes signals from a descriptor. */

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "common/command.h"
#include "common/delivery.h"
#include "common/figures.h"
#include "job.h"
#include "measuring.h"
#include "mlbench_run.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/thread.h"
#include "receiver.h"
#include "run_table.h"
#include "tally.h"
#include "../../plugins/report/report_file.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/utf8.h"

/* As of env(1), beside EXIT_NOT_RUN. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

enum {
    OPTION_EVERY = 256,
    OPTION_MLBENCH,
    OPTION_PROGRESS,
    OPTION_REPORT,
    PROGRESS_MS = 1000,
    NAME_BYTES = 100
};

struct request {
    const char *config;
    const char *details, *html; /* absolute; NULL: none */
    int64_t every_ns;
    struct mlbench_run mlbench;
    bool is_quiet, has_progress;
    char **arguments; /* the command and its arguments, then NULL */
};

/* Another thread may still be using it when the process ends, so it is never freed. */
struct run {
    struct request request;
    struct job job;
    const char *name;  /* of the command, as in the label */
    const char *state; /* of its MLBench run, as last set; NULL: it could not be set */
    struct receiver receiver;
    int event_fd;
    int64_t start_ns, end_ns, timeout_ns; /* monotonic */
    _Atomic bool is_drained;
};

/* ---- Arguments ------------------------------------------------------------------------------- */

static int set_progress(const struct command *command, struct request *request, const char *when)
{
    if (when && strcmp(when, "always") != 0 && strcmp(when, "auto") != 0)
        return command_refuse(command, "--progress: \"%s\" is not allowed; allowed: always, auto", when);
    request->has_progress = (when && strcmp(when, "always") == 0) || isatty(STDERR_FILENO);
    return COMMAND_CONTINUE;
}

static int set_mlbench(const struct command *command, struct request *request, const char *url)
{
    free(request->mlbench.api); /* the last one holds */
    if (mlbench_run_set_url(&request->mlbench, url))
        return COMMAND_CONTINUE;
    return command_refuse(command, "--mlbench: \"%s\" is not a URL; allowed: like http://127.0.0.1:8080", url);
}

static bool has_ending(const char *path, const char *ending)
{
    size_t length = strlen(path);
    return command_has_ending(path, length, ending) && path[length - strlen(ending) - 1] != '/';
}

/* Never freed. */
static const char *make_absolute(const char *path)
{
    struct wr_buffer whole = {0};
    char *folder = *path == '/' ? NULL : getcwd(NULL, 0);
    wr_buffer_put_format(&whole, "%s%s%s", folder ? folder : "", folder ? "/" : "", path);
    free(folder);
    return command_take(&whole);
}

/* The ending decides what is written. That it can be is checked before the command runs. */
static int set_report(const struct command *command, struct request *request, const char *path)
{
    bool is_page = has_ending(path, ".html");
    const char **file = is_page ? &request->html : &request->details;
    size_t where;
    if (!is_page && !has_ending(path, ".json"))
        return command_refuse(command, "--report: \"%s\" must end in .json or .html", path);
    if (*file)
        return command_refuse(command, "--report: \"%s\" is a second file of its kind", path);
    if (!wr_utf8_is_valid(path, strlen(path), &where))
        return command_refuse(command, "--report: \"%s\" is not UTF-8", path);
    *file = make_absolute(path);
    int problem = report_file_check(*file);
    if (problem)
        return command_refuse(command, "--report: \"%s\": %s", path,
                              problem == EEXIST ? "it is not a regular file" : strerror(problem));
    return COMMAND_CONTINUE;
}

/* The first word that is no option is the command; what follows belongs to it. */
static int read_arguments(const struct command *command, struct request *request, int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"every", required_argument, NULL, OPTION_EVERY},
                                            {"mlbench", required_argument, NULL, OPTION_MLBENCH},
                                            {"progress", optional_argument, NULL, OPTION_PROGRESS},
                                            {"report", required_argument, NULL, OPTION_REPORT},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    int result = COMMAND_CONTINUE;
    *request = (struct request){.every_ns = WR_NS_PER_S};
    for (int option;
         result == COMMAND_CONTINUE && (option = getopt_long(argc, argv, "+c:qh", options, NULL)) != -1;) {
        switch (option) {
        case 'c': request->config = optarg; break;
        case 'q': request->is_quiet = true; break;
        case OPTION_EVERY: result = command_read_every(command, optarg, 10, &request->every_ns); break;
        case OPTION_MLBENCH: result = set_mlbench(command, request, optarg); break;
        case OPTION_PROGRESS: result = set_progress(command, request, optarg); break;
        case OPTION_REPORT: result = set_report(command, request, optarg); break;
        case 'h': return command_print_help(command, stdout);
        default: command_show_usage(command); return EXIT_NOT_RUN;
        }
    }
    request->arguments = argv + optind;
    if (result == COMMAND_CONTINUE && (optind == argc || !*argv[optind]))
        result = command_refuse(command, "a command is missing: weir run -- make all");
    return result == COMMAND_CONTINUE ? result : EXIT_NOT_RUN;
}

/* Takes the text, cut behind a whole character. */
static char *take_cut(struct wr_buffer *buffer, size_t most)
{
    char *text = command_take(buffer);
    size_t length = strlen(text), where;
    for (length = length < most ? length : most; !wr_utf8_is_valid(text, length, &where); length--)
        ;
    text[length] = '\0';
    return text;
}

/* For the label: the file's name, as text. Never freed. */
static const char *name_command(const char *path)
{
    struct wr_buffer name = {0};
    const char *slash = strrchr(path, '/');
    command_put_text(&name, slash && slash[1] ? slash + 1 : path);
    return take_cut(&name, NAME_BYTES);
}

/* The command and its arguments as text, cut where they are long. The caller frees it. */
static char *make_title(char **arguments)
{
    enum { TITLE_BYTES = 300 };
    struct wr_buffer title = {0};
    for (size_t i = 0; arguments[i] && title.length < TITLE_BYTES; i++) {
        wr_buffer_put_text(&title, i ? " " : "");
        command_put_text(&title, arguments[i]);
    }
    return take_cut(&title, TITLE_BYTES);
}

/* ---- Output ---------------------------------------------------------------------------------- */

static void print_progress_of(void *ctx, const struct tally *tally)
{
    const struct run *run = ctx;
    const struct figures_screen screen = figures_screen_of(STDERR_FILENO);
    struct wr_buffer out = {0};
    run_table_put_progress(&out, wr_clock_monotonic_ns() - run->start_ns, tally, &screen);
    command_print_buffer(&out, stderr);
}

static void clear_progress(const struct run *run)
{
    if (run->request.has_progress && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static void print_table_of(void *ctx, const struct tally *tally)
{
    const struct run *run = ctx;
    const struct figures_screen screen = figures_screen_of(STDERR_FILENO);
    const struct run_result result = {.arguments = run->request.arguments,
                                      .job = &run->job,
                                      .duration_ns = run->end_ns - run->start_ns,
                                      .lost = measuring_lost(),
                                      .mlbench = &run->request.mlbench,
                                      .state = run->state};
    struct wr_buffer out = {0};
    run_table_put(&out, &result, tally, &screen);
    command_print_buffer(&out, stderr);
}

/* ---- Starting -------------------------------------------------------------------------------- */

static bool start_measuring(const struct run *run, const char *name, const char *title)
{
    const struct measuring measuring = {.config = run->request.config,
                                        .name = name,
                                        .pipe = run->receiver.pipe,
                                        .every_ns = run->request.every_ns,
                                        .pid = run->job.pid,
                                        .title = title,
                                        .details = run->request.details,
                                        .html = run->request.html,
                                        .mlbench = &run->request.mlbench};
    return measuring_start(&measuring);
}

/* Makes the run first, whose id the values get. */
static bool start_run(struct run *run, const char *name)
{
    struct mlbench_run *mlbench = &run->request.mlbench;
    char *title = make_title(run->request.arguments);
    bool is_started =
        (!mlbench->api || mlbench_run_create(mlbench, name, title)) && start_measuring(run, name, title);
    free(title);
    return is_started;
}

/* The command's run is what it has become, if there is one. */
static void set_state(struct run *run, const char *state)
{
    if (run->request.mlbench.id && mlbench_run_set_state(&run->request.mlbench, state))
        run->state = state;
}

/* Everything runs that measures the command. */
static bool start(struct run *run)
{
    const char *name = run->name = name_command(run->request.arguments[0]);
    run->event_fd = wr_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (run->event_fd < 0) {
        command_fail("no descriptor: %s", strerror(errno));
        return false;
    }
    if (tally_register(name, wr_clock_wall_ns()) != 0) {
        command_fail("%s", weir_last_error());
        return false;
    }
    return start_run(run, name);
}

/* Returns 0, or the exit status. */
static int begin(struct run *run)
{
    receiver_open(&run->receiver);
    if (!job_fork(&run->job, run->request.arguments, run->receiver.tee))
        return EXIT_NOT_RUN;
    if (!start(run)) {
        job_cancel(&run->job);
        set_state(run, "failed");
        return EXIT_NOT_RUN;
    }
    run->start_ns = wr_clock_monotonic_ns();
    int problem = job_go(&run->job);
    tally_set_begun(wr_clock_wall_ns());
    if (!problem) /* its first value sets its run's state */
        return 0;
    set_state(run, "failed");
    command_fail("%s: %s", run->request.arguments[0], strerror(problem));
    weir_shutdown(delivery_timeout_ns() / WR_NS_PER_MS); /* the sources must not miss the pipe */
    return problem == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* ---- Running --------------------------------------------------------------------------------- */

static void await_end(struct run *run)
{
    int64_t shown_ns = wr_clock_monotonic_ns();
    struct pollfd fd = {run->job.signal_fd, POLLIN, 0};
    while (!job_take_signals(&run->job)) {
        poll(&fd, 1, run->request.has_progress ? PROGRESS_MS : -1);
        int64_t now_ns = wr_clock_monotonic_ns();
        if (!run->request.has_progress || now_ns - shown_ns < PROGRESS_MS * WR_NS_PER_MS)
            continue;
        tally_read(print_progress_of, run);
        shown_ns = now_ns;
    }
    run->end_ns = wr_clock_monotonic_ns();
    clear_progress(run);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

/* How the command has ended is a figure of it, as what it has used is. */
static void add_end(const struct run *run)
{
    int signal, status = job_end(&run->job, &signal);
    const char *name = signal ? "exit.signal" : "exit.code";
    char id[MLBENCH_ID_BYTES];
    const weir_label labels[] = {{TALLY_LABEL, run->name},
                                 {MLBENCH_RUN_LABEL, mlbench_run_put_id(&run->request.mlbench, id)}};
    const weir_metric_spec spec = {.size = sizeof spec,
                                   .instrument = WEIR_GAUGE,
                                   .help = signal ? "Number of the signal that has killed the process"
                                                  : "Exit status of the process"};
    weir_stream *stream = weir_get_stream("process");
    weir_declare(stream, name, &spec);
    weir_add_value_labeled(stream, name, signal ? signal : status, labels, run->request.mlbench.id ? 2 : 1);
}

/* Stops the sources, which read the rest, and delivers what is queued. */
static void *drain(void *argument)
{
    struct run *run = argument;
    const uint64_t one = 1;
    weir_shutdown(run->timeout_ns / WR_NS_PER_MS);
    atomic_store(&run->is_drained, true);
    (void)!write(run->event_fd, &one, sizeof one); /* it does not block */
    return NULL;
}

/* A signal ends the wait for destinations of the given configuration. */
static void deliver_rest(struct run *run)
{
    pthread_t thread;
    run->timeout_ns = delivery_timeout_ns();
    if (wr_thread_start(drain, run, &thread))
        pthread_detach(thread);
    else
        drain(run);
    struct pollfd fds[] = {{run->job.signal_fd, POLLIN, 0}, {run->event_fd, POLLIN, 0}};
    while (!atomic_load(&run->is_drained)) {
        poll(fds, WR_COUNT_OF(fds), -1);
        if (!job_take_end(&run->job) || atomic_load(&run->is_drained))
            continue;
        command_fail("ended by a signal: what is queued was not delivered");
        run->job.is_cut = true;
        break;
    }
}

/* After the values, which belong to a run that has not ended. */
static void set_end_state(struct run *run)
{
    run->state = NULL;
    set_state(run, WIFEXITED(run->job.status) && WEXITSTATUS(run->job.status) == 0 ? "finished" : "failed");
}

static int run_command(const struct command *command, int argc, char **argv)
{
    static struct run run;
    int result = read_arguments(command, &run.request, argc, argv);
    if (result != COMMAND_CONTINUE)
        return result;
    result = begin(&run);
    if (result != 0) {
        receiver_close(&run.receiver);
        fflush(NULL);
        _exit(result); /* without exit handlers: there is nothing to deliver */
    }
    await_end(&run);
    add_end(&run);
    deliver_rest(&run);
    job_reap(&run.job);
    set_end_state(&run);
    receiver_close(&run.receiver);
    if (!run.request.is_quiet)
        tally_read(print_table_of, &run);
    job_end_alike(&run.job);
}

const struct command command_run = {
    .name = "run",
    .arguments = "[-c FILE] [--every TIME] [--mlbench URL] [--progress] [--report FILE] [-q] [--] PROGRAM "
                 "[ARGUMENT ...]",
    .summary = "Runs a command, and shows what it has used, and a table of its metrics.",
    .help = "\n  -c, --config FILE  handlers and routes for what is measured and for the command's values\n"
            "      --every TIME   how often to measure, from 10ms to 1d; default: 1s\n"
            "      --mlbench URL  make a run of the MLBench server there, send all values to it, and mark it\n"
            "                     as finished or failed at the end\n"
            "      --progress     a line while the command runs, if standard error is a terminal\n"
            "      --report FILE  write a report at the end: a page (.html) or all figures and series\n"
            "                     (.json); may be given for both\n"
            "  -q, --quiet        no table at the end\n"
            "  -h, --help         this text\n\n"
            "The command runs as it would without weir: same terminal, same streams, same environment but for\n"
            "WEIR_TEE, which adds its values to the table and changes none of its own routes. Signals that\n"
            "weir run gets are passed on. The table is printed to standard error.\n"
            "Exit status: that of the command, by the same signal if one has killed it; 125: weir has failed,\n"
            "and the command did not run; 126: it cannot be executed; 127: it was not found.\n",
    .run = run_command,
    .runs_program = true,
};
