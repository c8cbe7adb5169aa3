#include "run_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/command.h"
#include "common/figures.h"
#include "mlbench_run.h"
#include "tally.h"
#include "text/buffer.h"
#include "text/common.h"

enum {
    LABEL_COLUMNS = 16, /* "  page faults   " */
    NUMBER_COLUMNS = 10,
    NARROW_COLUMNS = 76,
    NARROWEST_COLUMNS = 56,
    NAME_LEAST = 8,
    BARS_MOST = 24,
    BARS_LEAST = 8,
    METRICS_MOST = 100
};

/* ---- Parts ----------------------------------------------------------------------------------- */

static void put_bold(struct wr_buffer *out, const struct figures_screen *screen, const char *text)
{
    wr_buffer_put_format(out, screen->has_colours ? "\033[1m%s\033[0m" : "%s", text);
}

static void put_label(struct wr_buffer *out, const char *label)
{
    wr_buffer_put_text(out, "  ");
    figures_put_cell(out, label, LABEL_COLUMNS - 2);
}

static void put_bytes(struct wr_buffer *out, double bytes, const char *what)
{
    figures_put_bytes(out, bytes);
    wr_buffer_put_text(out, what);
}

static void put_count(struct wr_buffer *out, double count, const char *what)
{
    figures_put_count(out, count);
    wr_buffer_put_text(out, what);
}

/* ---- What the command has used --------------------------------------------------------------- */

static void put_status(struct wr_buffer *out, int status)
{
    if (WIFEXITED(status))
        wr_buffer_put_format(out, "exit status %d", WEXITSTATUS(status));
    else
        wr_buffer_put_format(out, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

static void put_heading(struct wr_buffer *out, const struct run_result *result,
                        const struct figures_screen *screen)
{
    struct wr_buffer words = {0}, heading = {0};
    for (char **argument = result->arguments; *argument && words.length < 4096; argument++) {
        wr_buffer_put_text(&words, argument == result->arguments ? "" : " ");
        command_put_text(&words, *argument);
    }
    size_t width = figures_width(words.data ? words.data : "", words.length);
    size_t most = (size_t)screen->columns / 2;
    figures_put_cut(&heading, words.data ? words.data : "", words.length, width < most ? width : most);
    wr_buffer_put_text(&heading, ": ");
    put_status(&heading, result->job->status);
    const char *text = wr_buffer_text(&heading);
    put_bold(out, screen, text ? text : "");
    wr_buffer_put_char(out, '\n');
    wr_buffer_fini(&words);
    wr_buffer_fini(&heading);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* The kernel's account of the command and of all processes that were waited for. */
static void put_cpu(struct wr_buffer *out, const struct run_result *result, const struct figures_screen *screen)
{
    const struct rusage *usage = &result->job->usage;
    double user_s = seconds(usage->ru_utime), system_s = seconds(usage->ru_stime);
    double duration_s = (double)result->duration_ns / 1e9, cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
    double share = duration_s > 0 ? (user_s + system_s) / duration_s : 0;
    put_label(out, "processor");
    wr_buffer_put_format(out, "%.2f s user, %.2f s system", user_s, system_s);
    if (screen->columns < NARROW_COLUMNS)
        wr_buffer_put_format(out, "; %.0f %%", share * 100);
    else if (cpus >= 1)
        wr_buffer_put_format(out, "; %.0f %% of one, %.0f %% of %.0f", share * 100, share / cpus * 100, cpus);
    wr_buffer_put_char(out, '\n');
}

/* The kernel knows the most that one process had; between two samplings it may have been more than was seen. */
static void put_memory(struct wr_buffer *out, const struct run_result *result,
                       const struct tally_measured *measured)
{
    double largest = (double)result->job->usage.ru_maxrss * 1024;
    put_label(out, "memory");
    put_bytes(out, measured->memory_most > largest ? measured->memory_most : largest, " at most");
    if (measured->memory_count > 0)
        put_bytes((wr_buffer_put_text(out, ", "), out), measured->memory_sum / measured->memory_count, " mean");
    wr_buffer_put_char(out, '\n');
}

static void put_disk(struct wr_buffer *out, const struct run_result *result,
                     const struct tally_measured *measured)
{
    const double sector = 512;
    bool is_seen = measured->has_disk;
    put_label(out, "disk");
    put_bytes(out, is_seen ? measured->read_bytes : (double)result->job->usage.ru_inblock * sector, " read, ");
    put_bytes(out, is_seen ? measured->written_bytes : (double)result->job->usage.ru_oublock * sector,
              " written\n");
}

static void put_network(struct wr_buffer *out, const struct tally_measured *measured,
                        const struct figures_screen *screen)
{
    if (!measured->has_network)
        return;
    put_label(out, "network");
    put_bytes(out, measured->received_bytes, " in, ");
    put_bytes(out, measured->sent_bytes, " out");
    if (screen->columns >= NARROW_COLUMNS)
        put_bytes((wr_buffer_put_text(out, ", "), out), measured->loop_bytes, " inside");
    wr_buffer_put_text(out, "; whole machine\n");
}

static void put_usage(struct wr_buffer *out, const struct run_result *result,
                      const struct tally_measured *measured, const struct figures_screen *screen)
{
    const struct rusage *usage = &result->job->usage;
    put_label(out, "duration");
    figures_put_duration(out, result->duration_ns);
    wr_buffer_put_char(out, '\n');
    put_cpu(out, result, screen);
    put_memory(out, result, measured);
    put_disk(out, result, measured);
    put_network(out, measured, screen);
    put_label(out, "switches");
    put_count(out, (double)usage->ru_nvcsw, " waiting, ");
    put_count(out, (double)usage->ru_nivcsw, " preempted\n");
    put_label(out, "page faults");
    put_count(out, (double)usage->ru_minflt, " minor, ");
    put_count(out, (double)usage->ru_majflt, " major\n");
    if (!result->mlbench->id)
        return;
    put_label(out, "run");
    wr_buffer_put_format(out, "%" PRId64 " of ", result->mlbench->id);
    command_put_text(out, result->mlbench->api);
    wr_buffer_put_format(out, ", %s\n", result->state ? result->state : "not marked as ended");
}

/* ---- Metrics --------------------------------------------------------------------------------- */

/* Which columns fit. */
struct layout {
    size_t name, bars;
    bool has_p50, has_p99;
};

/* has_run: all have the run's label. */
static void put_name(struct wr_buffer *out, const weir_series *series, bool has_run)
{
    command_put_text(out, series->group);
    wr_buffer_put_text(out, ".");
    command_put_text(out, series->name);
    const char *before = "{";
    for (size_t i = 0; i < series->label_count; i++) {
        if (has_run && strcmp(series->labels[i].key, MLBENCH_RUN_LABEL) == 0)
            continue;
        wr_buffer_put_text(out, before);
        command_put_text(out, series->labels[i].key);
        wr_buffer_put_text(out, "=");
        command_put_text(out, series->labels[i].value);
        before = ",";
    }
    wr_buffer_put_text(out, *before == ',' ? "}" : "");
    if (!series->unit || !*series->unit)
        return;
    wr_buffer_put_text(out, " (");
    command_put_text(out, series->unit);
    wr_buffer_put_text(out, ")");
}

static struct layout lay_out(const struct tally *tally, bool has_run, const struct figures_screen *screen)
{
    size_t columns = (size_t)screen->columns, longest = NAME_LEAST;
    for (size_t i = 0; i < tally->count && i < METRICS_MOST; i++) {
        struct wr_buffer name = {0};
        put_name(&name, tally->series[i]->series, has_run);
        size_t width = name.data ? figures_width(name.data, name.length) : 0;
        longest = width > longest ? width : longest;
        wr_buffer_fini(&name);
    }
    struct layout layout = {.has_p50 = columns >= NARROW_COLUMNS, .has_p99 = columns >= NARROWEST_COLUMNS};
    size_t numbers = (layout.has_p50 ? 5 : layout.has_p99 ? 4 : 3) * NUMBER_COLUMNS + 2;
    size_t left = columns > numbers + NAME_LEAST ? columns - numbers : NAME_LEAST;
    layout.name = longest < left ? longest : left;
    left -= layout.name;
    layout.bars = left >= BARS_LEAST + 3 ? (left - 3 < BARS_MOST ? left - 3 : BARS_MOST) : 0;
    return layout;
}

static void put_number(struct wr_buffer *out, double value, void (*put)(struct wr_buffer *out, double value))
{
    struct wr_buffer number = {0};
    put(&number, value);
    figures_put_right(out, &number, NUMBER_COLUMNS);
}

static void put_statistics(struct wr_buffer *out, const struct tally_series *series,
                           const struct layout *layout)
{
    const struct wr_sketch *sketch = &series->sketch;
    put_number(out, (double)(sketch->count + series->others), figures_put_count);
    if (!sketch->count) {
        wr_buffer_put_text(out, "  not finite");
        return;
    }
    put_number(out, wr_sketch_sum(sketch) / (double)sketch->count, figures_put_value);
    if (layout->has_p50)
        put_number(out, wr_sketch_quantile(sketch, 0.5), figures_put_value);
    if (layout->has_p99)
        put_number(out, wr_sketch_quantile(sketch, 0.99), figures_put_value);
    put_number(out, sketch->max, figures_put_value);
}

static void put_metric(struct wr_buffer *out, const struct tally_series *series, const struct layout *layout,
                       const struct run_result *result, const struct figures_screen *screen)
{
    struct wr_buffer name = {0};
    double means[BARS_MOST];
    put_name(&name, series->series, result->mlbench->id);
    wr_buffer_put_text(out, "  ");
    figures_put_cut(out, name.data ? name.data : "", name.length, layout->name);
    wr_buffer_fini(&name);
    put_statistics(out, series, layout);
    size_t shown = layout->bars ? bins_find_means(&series->bins, result->duration_ns, layout->bars, means) : 0;
    wr_buffer_put_text(out, shown ? "   " : "");
    figures_put_bars(out, means, shown, screen);
    figures_trim(out);
    wr_buffer_put_char(out, '\n');
}

static void put_columns(struct wr_buffer *out, const struct layout *layout, const struct figures_screen *screen)
{
    struct wr_buffer line = {0};
    wr_buffer_put_text(&line, "  ");
    figures_put_cell(&line, "metric", (int)layout->name);
    figures_put_cell(&line, "count", -NUMBER_COLUMNS);
    figures_put_cell(&line, "mean", -NUMBER_COLUMNS);
    if (layout->has_p50)
        figures_put_cell(&line, "p50", -NUMBER_COLUMNS);
    if (layout->has_p99)
        figures_put_cell(&line, "p99", -NUMBER_COLUMNS);
    figures_put_cell(&line, "max", -NUMBER_COLUMNS);
    const char *text = wr_buffer_text(&line);
    put_bold(out, screen, text ? text : "");
    wr_buffer_put_char(out, '\n');
    wr_buffer_fini(&line);
}

static int compare(const void *a, const void *b)
{
    const weir_series *one = (*(struct tally_series *const *)a)->series;
    const weir_series *other = (*(struct tally_series *const *)b)->series;
    int by_group = strcmp(one->group, other->group);
    int by_name = by_group ? by_group : strcmp(one->name, other->name);
    return by_name ? by_name : (one->id > other->id) - (one->id < other->id);
}

static void put_metrics(struct wr_buffer *out, const struct run_result *result, const struct tally *tally,
                        const struct figures_screen *screen)
{
    const struct layout layout = lay_out(tally, result->mlbench->id, screen);
    wr_buffer_put_char(out, '\n');
    put_columns(out, &layout, screen);
    for (size_t i = 0; i < tally->count && i < METRICS_MOST; i++)
        put_metric(out, tally->series[i], &layout, result, screen);
    if (tally->count > METRICS_MOST)
        put_count((wr_buffer_put_text(out, "  and "), out), (double)(tally->count - METRICS_MOST), " more\n");
}

/* What the table does not have. */
static void put_lost(struct wr_buffer *out, const struct measuring_lost *lost)
{
    if (lost->bad_lines)
        put_count((wr_buffer_put_text(out, "  "), out), (double)lost->bad_lines,
                  " lines of the command's values could not be read\n");
    if (lost->refused)
        put_count((wr_buffer_put_text(out, "  "), out), (double)lost->refused,
                  " of the command's values are not counted: too many series, or names that are not allowed\n");
    if (lost->unsent)
        put_count((wr_buffer_put_text(out, "  "), out), (double)lost->unsent,
                  " values did not reach the server of the run\n");
}

void run_table_put(struct wr_buffer *out, const struct run_result *result, const struct tally *tally,
                   const struct figures_screen *screen)
{
    put_heading(out, result, screen);
    put_usage(out, result, &tally->measured, screen);
    if (tally->count) {
        qsort(tally->series, tally->count, sizeof(struct tally_series *), compare);
        put_metrics(out, result, tally, screen);
    }
    put_lost(out, &result->lost);
}

/* ---- While it runs --------------------------------------------------------------------------- */

void run_table_put_progress(struct wr_buffer *out, int64_t duration_ns, const struct tally *tally,
                            const struct figures_screen *screen)
{
    struct wr_buffer line = {0};
    figures_put_duration(&line, duration_ns);
    wr_buffer_put_format(&line, "; processor %.1f s; memory ", tally->measured.cpu_s);
    put_bytes(&line, tally->measured.memory_now, "; ");
    put_count(&line, (double)tally->values, " values of ");
    put_count(&line, (double)tally->count, tally->count == 1 ? " metric" : " metrics");
    size_t width = figures_width(line.data ? line.data : "", line.length);
    size_t most = (size_t)screen->columns - 1;
    wr_buffer_put_text(out, screen->is_terminal ? "\r\033[K" : "");
    figures_put_cut(out, line.data ? line.data : "", line.length, width < most ? width : most);
    wr_buffer_put_text(out, screen->is_terminal ? "" : "\n");
    wr_buffer_fini(&line);
}
