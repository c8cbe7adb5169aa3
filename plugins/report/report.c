/* report: keeps what a run was like in bounded memory, and writes it to files at the end.
 *
 * run_report.c keeps it, report_json.c and report_page.c write it, report_file.c replaces the files. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/handler.h>

#include "../output.h"
#include "report_file.h"
#include "report_json.h"
#include "report_page.h"
#include "text/buffer.h"

struct options {
    const char *path, *figures, *details, *html;
    const char *mode, *node, *node_label, *machine, *title;
    weir_map machine_labels;
    int64_t reports, series, nodes, write_every_ns;
};

static const weir_option options_table[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_DESTINATION, NULL, NULL,
                    "the file for the reports of each node, in the form of perf.py", struct options, path),
    WEIR_OPTION_ROW("figures", PATH, 0, NULL, NULL, "the file for the 18 figures of each node, as JSON",
                    struct options, figures),
    WEIR_OPTION_ROW("details", PATH, 0, NULL, NULL, "the file for figures, reports and all series, as JSON",
                    struct options, details),
    WEIR_OPTION_ROW("html", PATH, 0, NULL, NULL, "the file for a page with charts", struct options, html),
    WEIR_OPTION_ROW("title", STRING, 0, NULL, NULL, "the heading of the page", struct options, title),
    WEIR_OPTION_ROW("mode", STRING, 0, "0644", NULL,
                    "the permissions of the files, in octal, regardless of the umask", struct options, mode),
    WEIR_OPTION_ROW("node", STRING, 0, NULL, NULL, "the name of this machine; without it its host name",
                    struct options, node),
    WEIR_OPTION_ROW("node_label", STRING, 0, NULL, NULL,
                    "a label whose value is the node's name, for values of several machines", struct options,
                    node_label),
    WEIR_OPTION_ROW("machine", STRING, 0, "system", NULL, "the group of the values of the source type system",
                    struct options, machine),
    WEIR_OPTION_ROW("machine_labels", MAP, 0, NULL, NULL, "labels that those values have", struct options,
                    machine_labels),
    WEIR_OPTION_ROW("reports", INT, 0, "1000", "2..1000000",
                    "how many reports of a node, and values of a series, to keep; an odd number is rounded up",
                    struct options, reports),
    WEIR_OPTION_ROW("series", INT, 0, "1000", "1..100000",
                    "how many series to keep; values of others are refused", struct options, series),
    WEIR_OPTION_ROW("nodes", INT, 0, "100", "1..10000", "how many nodes to keep; values of others are refused",
                    struct options, nodes),
    WEIR_OPTION_ROW("write_every", DURATION, 0, "0s", "0s..1d",
                    "write the files so often, too; 0s: at the end and when the program flushes",
                    struct options, write_every_ns),
    {0},
};

enum { HOST_ROOM = 256, FILES = 4 };

struct report {
    const weir_host *host;
    const struct options *options;
    mode_t mode;
    pid_t pid; /* of the process that has created it */
    char host_name[HOST_ROOM];
    struct report_settings settings;
    struct run_report run;
    bool was_open;
    bool has_news; /* since the files were written */
};

static double now_s(void)
{
    return (double)wr_system_clock_ns(CLOCK_REALTIME) / 1e9;
}

/* ---- Creating -------------------------------------------------------------------------------- */

struct file {
    const char *option, *path;
    void (*put)(struct wr_buffer *out, const struct report *report);
};

static void put_reports(struct wr_buffer *out, const struct report *report)
{
    report_json_put_reports(out, &report->run);
}

static void put_figures(struct wr_buffer *out, const struct report *report)
{
    report_json_put_figures(out, &report->run, now_s());
}

static void put_details(struct wr_buffer *out, const struct report *report)
{
    report_json_put_details(out, &report->run, now_s());
}

static void put_page(struct wr_buffer *out, const struct report *report)
{
    report_page_put(out, &report->run, report->options->title, now_s());
}

/* Returns how many there are. */
static size_t list_files(const struct options *options, struct file files[FILES])
{
    const struct file all[FILES] = {{"path", options->path, put_reports},
                                    {"figures", options->figures, put_figures},
                                    {"details", options->details, put_details},
                                    {"html", options->html, put_page}};
    size_t count = 0;
    for (size_t i = 0; i < FILES; i++)
        if (all[i].path)
            files[count++] = all[i];
    return count;
}

static bool check_files(const weir_host *host, const struct options *options)
{
    struct file files[FILES];
    size_t count = list_files(options, files);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(files[i].path, files[k].path) == 0) {
                host->refuse(host, files[i].option, "\"%s\" is the file of %s, too; each needs its own",
                             files[i].path, files[k].option);
                return false;
            }
    if (count == 0)
        host->refuse(host, "",
                     "nothing is to be written; at least one is needed of path, figures, details, html");
    return count > 0;
}

static void set_settings(struct report *report, const struct options *options)
{
    if (gethostname(report->host_name, sizeof report->host_name - 1) != 0)
        strcpy(report->host_name, "localhost");
    report->settings = (struct report_settings){
        .node = options->node ? options->node : report->host_name,
        .node_label = options->node_label,
        .machine = options->machine,
        .machine_labels = &options->machine_labels,
        .reports_most = (size_t)options->reports,
        .series_most = (size_t)options->series,
        .nodes_most = (size_t)options->nodes,
    };
}

static void *report_create(const weir_host *host, const void *given)
{
    const struct options *options = given;
    mode_t mode;
    if (!check_files(host, options) || !wr_output_set_mode(host, options->mode, &mode))
        return NULL;
    struct report *report = wr_system_allocate(host, sizeof *report);
    if (!report)
        return NULL;
    report->host = host;
    report->options = options;
    report->mode = mode;
    report->pid = getpid();
    set_settings(report, options);
    report->settings.host = host;
    report->settings.keeper = host->service(host, WEIR_SERVICE_SERIES);
    run_report_init(&report->run, &report->settings);
    return report;
}

static void report_destroy(void *self)
{
    struct report *report = self;
    run_report_fini(&report->run);
    free(report);
}

/* ---- Forks ----------------------------------------------------------------------------------- */

/* A forked child has a report of its own, which would replace that of the parent. In the child, abandon writes
 * the list of the parent's handlers before the first thread is started; nothing writes it later. The texts are
 * those of the parent's options, which are never freed in the child. */
enum { INHERITED_MOST = 64 };
static struct {
    size_t count;
    pid_t parent;
    struct {
        const struct options *options;
        bool was_open; /* the parent has something to write */
    } handlers[INHERITED_MOST];
} inherited;

static void report_abandon(void *self)
{
    const struct report *report = self;
    inherited.parent = report->pid;
    if (inherited.count == INHERITED_MOST)
        return;
    inherited.handlers[inherited.count].options = report->options;
    inherited.handlers[inherited.count++].was_open = report->was_open;
}

static bool has_path(const struct options *options, const char *path)
{
    struct file files[FILES];
    size_t count = list_files(options, files);
    for (size_t i = 0; i < count; i++)
        if (strcmp(files[i].path, path) == 0)
            return true;
    return false;
}

/* Whether the file is that of the parent. A program that becomes a daemon forks once weir is configured, and
 * its parent ends without a report: then the file is this process's. */
static bool is_inherited(const char *path, int *code)
{
    for (size_t i = 0; i < inherited.count; i++) {
        if (!has_path(inherited.handlers[i].options, path))
            continue;
        *code = inherited.handlers[i].was_open ? WEIR_OUTCOME_FAILED : WEIR_OUTCOME_REOPEN;
        return inherited.handlers[i].was_open || getppid() == inherited.parent;
    }
    return false;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static const char *explain(int problem)
{
    return problem == EEXIST ? "it is not a regular file, and would be replaced by one"
                             : wr_system_strerror(problem);
}

static void check_file(const struct file *file, weir_outcome *outcome)
{
    int problem = report_file_check(file->path);
    if (!problem)
        return;
    wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s %.150s: %s", file->option, file->path, explain(problem));
}

/* Nothing is kept that could not be written. */
static void check_all(const struct report *report, weir_outcome *outcome)
{
    struct file files[FILES];
    size_t count = list_files(report->options, files);
    for (size_t i = 0; i < count && outcome->code == WEIR_OUTCOME_OK; i++) {
        int code;
        check_file(&files[i], outcome);
        if (outcome->code != WEIR_OUTCOME_OK || !is_inherited(files[i].path, &code))
            continue;
        wr_system_fail(
            outcome, code,
            "%s %.120s: the parent process writes it; use ${PID} in the path to give each process its own",
            files[i].option, files[i].path);
    }
}

static void wake_later(const struct report *report)
{
    if (report->options->write_every_ns)
        report->host->wake_in(report->host, wr_output_to_ms(report->options->write_every_ns));
}

static void report_open(void *self, weir_outcome *outcome)
{
    struct report *report = self;
    check_all(report, outcome);
    if (outcome->code != WEIR_OUTCOME_OK)
        return;
    report->was_open = true;
    wake_later(report);
}

static void report_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    (void)timeout_ms;
    check_all(self, outcome);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int write_file(const struct report *report, const struct file *file)
{
    struct wr_buffer out = {0};
    file->put(&out, report);
    int problem = out.failed ? ENOMEM : report_file_write(file->path, report->mode, out.data, out.length);
    wr_buffer_fini(&out);
    return problem;
}

/* Sets the outcome if one of the files could not be written; the others are. */
static bool write_all(struct report *report, weir_outcome *outcome)
{
    struct file files[FILES];
    size_t count = list_files(report->options, files);
    bool is_written = true;
    if (!report->has_news)
        return true;
    run_report_sort(&report->run);
    for (size_t i = 0; i < count; i++) {
        int problem = write_file(report, &files[i]);
        if (problem && is_written)
            wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "write %s %.150s: %s", files[i].option, files[i].path,
                           explain(problem));
        is_written &= !problem;
    }
    report->has_news = !is_written;
    return is_written;
}

static void report_flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct report *report = self;
    (void)timeout_ms;
    write_all(report, outcome);
}

static void report_wake(void *self, int why, weir_outcome *outcome)
{
    struct report *report = self;
    (void)why;
    write_all(report, outcome);
    wake_later(report);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

static void set_reason(struct report *report, enum report_result result, const weir_series *series,
                       weir_outcome *outcome)
{
    const struct options *options = report->options;
    if (result == REPORT_NO_MEMORY)
        snprintf(outcome->reason, sizeof outcome->reason, "out of memory for %.80s.%.80s", series->group,
                 series->name);
    else if (result == REPORT_NODES_MOST)
        snprintf(outcome->reason, sizeof outcome->reason,
                 "%.60s.%.60s is of one node too many: \"nodes\" is %lld", series->group, series->name,
                 (long long)options->nodes);
    else
        snprintf(outcome->reason, sizeof outcome->reason,
                 "%.60s.%.60s is one series too many: \"series\" is %lld", series->group, series->name,
                 (long long)options->series);
}

static void report_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct report *report = self;
    for (uint32_t i = 0; i < batch->count; i++) {
        const weir_sample *sample = &batch->samples[i];
        enum report_result result = run_report_put(&report->run, batch, sample);
        if (result == REPORT_PUT)
            continue;
        if (outcome->rejected++ == 0)
            set_reason(report, result, weir_batch_series(batch, sample), outcome);
    }
    report->has_news = true;
}

/* The last chance to write: what fails here is lost. */
static void report_close(void *self)
{
    struct report *report = self;
    weir_outcome outcome;
    if (!run_report_end(&report->run))
        report->host->log(report->host, WEIR_LOG_WARNING,
                          "out of memory: the last report of a node is missing");
    report->has_news = true; /* the last report; and hours until now */
    if (!write_all(report, &outcome))
        report->host->log(report->host, WEIR_LOG_ERROR, "%s; the report is lost", outcome.reason);
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "report",
    .summary = "writes reports of machines and metrics as JSON and as a page",
    .options = options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .create = report_create,
    .open = report_open,
    .emit = report_emit,
    .flush = report_flush,
    .close = report_close,
    .destroy = report_destroy,
    .wake = report_wake,
    .abandon = report_abandon,
    .probe = report_probe,
    .flags = WEIR_TYPE_SHARES_NOTHING,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
