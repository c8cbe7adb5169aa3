/* What the report handler keeps of values, and what it writes. */
#include <math.h>

#include "text/buffer.h"

#include "../../../plugins/report/page_text.h"
#include "../../../plugins/report/report_json.h"
#include "../../../plugins/report/report_page.h"
#include "../format/batch_fixture.h"
#include "keeper_fixture.h"

static struct report_settings settings = {.keeper = &fixture_keeper,
                                          .node = "n",
                                          .machine = "system",
                                          .reports_most = 10,
                                          .series_most = 16,
                                          .nodes_most = 2};
static struct run_report report;
static struct wr_buffer out;

static void finish(void)
{
    if (report.settings)
        run_report_fini(&report);
    wr_buffer_fini(&out);
    cr_assert_eq(fixture_kept, 0);
}

TestSuite(run_report, .fini = finish);

static enum report_result put_at(double time_s, uint32_t series, double value)
{
    if (!report.settings)
        run_report_init(&report, &settings);
    clear_batch();
    add_double(series, value)->time_ns = (int64_t)(time_s * 1e9);
    return run_report_put(&report, fixture_batch(), &fixture.samples[0]);
}

/* ---- The machine ----------------------------------------------------------------------------- */

static const weir_label root[] = {{"mountpoint", "/"}}, home[] = {{"mountpoint", "/home"}};
static const weir_label reads[] = {{"direction", "read"}}, writes[] = {{"direction", "write"}};
static const weir_label lo_out[] = {{"direction", "transmit"}, {"scope", "loopback"}};
static const weir_label lo_in[] = {{"direction", "receive"}, {"scope", "loopback"}};
static const weir_label out_out[] = {{"direction", "transmit"}, {"scope", "external"}};
static const weir_label out_in[] = {{"direction", "receive"}, {"scope", "external"}};

static const struct {
    const char *name;
    const weir_label *labels;
    size_t label_count;
    double value;
} parts[] = {
    {"cpu.utilization", NULL, 0, 0.12345},
    {"cpu.utilization.min", NULL, 0, 0.01234},
    {"cpu.utilization.max", NULL, 0, 0.98761},
    {"cpu.logical.count", NULL, 0, 4},
    {"memory.total", NULL, 0, 8e9},
    {"memory.available", NULL, 0, 6e9},
    {"filesystem.utilization", home, 1, 0.9},
    {"filesystem.utilization", root, 1, 0.50049},
    {"disk.io.since_boot", reads, 1, 1 << 20},
    {"disk.io.since_boot", writes, 1, 3 << 19},
    {"network.io.since_boot", lo_out, 2, 1 << 21},
    {"network.io.since_boot", lo_in, 2, 1 << 22},
    {"network.io.since_boot", out_out, 2, 1 << 23},
    {"network.io.since_boot", out_in, 2, 1 << 24},
};
enum { PARTS = sizeof parts / sizeof *parts };

static void add_parts(void)
{
    for (size_t i = 0; i < PARTS; i++)
        add_series("system", parts[i].name, parts[i].labels, parts[i].label_count);
}

static void put_sampling(double time_s, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        cr_assert_eq(put_at(time_s, (uint32_t)i, parts[i].value), REPORT_PUT);
}

Test(run_report, a_sampling_becomes_a_report_in_the_units_of_perf_py)
{
    static const double expected[NODE_KEYS] = {12.345, 1.2, 98.8, 25, 50, 1, 1.5, 2, 4, 8, 16, 1000.25};
    add_parts();
    put_sampling(1000.25, 0, PARTS);
    const struct collector *reports = &report.nodes[0]->machine.reports;
    cr_assert_eq(reports->count, 1, "as soon as it is complete");
    for (size_t i = 0; i < NODE_KEYS; i++)
        cr_assert_float_eq(collector_row(reports, 0)[i], expected[i], 1e-12, "%s", node_key_names[i]);
    cr_assert_eq(report.nodes[0]->machine.cpus, 4);
}

Test(run_report, the_reports_are_written_as_python_writes_them)
{
    add_parts();
    put_sampling(1000.25, 0, PARTS);
    report_json_put_reports(&out, &report);
    cr_assert_str_eq(wr_buffer_text(&out), "{\n    \"n\": [\n        {\n"
                                           "            \"cpu_pct_per_cpu_avg\": 12.345,\n"
                                           "            \"cpu_pct_per_cpu_min\": 1.2,\n"
                                           "            \"cpu_pct_per_cpu_max\": 98.8,\n"
                                           "            \"mem_percent\": 25.0,\n"
                                           "            \"disk_usage_percent\": 50.0,\n"
                                           "            \"disk_io_read_mb\": 1.0,\n"
                                           "            \"disk_io_write_mb\": 1.5,\n"
                                           "            \"net_io_lo_sent_mb\": 2.0,\n"
                                           "            \"net_io_lo_recv_mb\": 4.0,\n"
                                           "            \"net_io_ext_sent_mb\": 8.0,\n"
                                           "            \"net_io_ext_recv_mb\": 16.0,\n"
                                           "            \"timestamp\": 1000.25\n"
                                           "        }\n    ]\n}");
}

Test(run_report, a_sampling_without_processors_is_no_report)
{
    add_parts();
    put_sampling(1, 3, PARTS);
    put_sampling(2, 0, PARTS);
    cr_assert(run_report_end(&report));
    cr_assert_eq(report.nodes[0]->machine.reports.count, 1);
    cr_assert_eq(collector_row(&report.nodes[0]->machine.reports, 0)[NODE_TIME], 2);
}

Test(run_report, what_is_missing_of_a_sampling_is_null)
{
    add_parts();
    put_sampling(1, 0, 8);
    put_sampling(2, 0, 8);
    cr_assert_eq(report.nodes[0]->machine.reports.count, 1, "the next one has begun");
    cr_assert(run_report_end(&report));
    const struct collector *reports = &report.nodes[0]->machine.reports;
    cr_assert_eq(reports->count, 2);
    cr_assert(isnan(collector_row(reports, 1)[NODE_DISK_READ]));
    report_json_put_reports(&out, &report);
    cr_assert(strstr(wr_buffer_text(&out), "\"disk_io_read_mb\": null,\n"));
}

Test(run_report, of_each_processor_the_mean_counts)
{
    static const weir_label cpus[][1] = {{{"cpu", "0"}}, {{"cpu", "1"}}};
    add_series("system", "cpu.utilization", cpus[0], 1);
    add_series("system", "cpu.utilization", cpus[1], 1);
    for (int time = 1; time < 3; time++) {
        put_at(time, 0, 0.2);
        put_at(time, 1, 0.6);
    }
    cr_assert_float_eq(collector_row(&report.nodes[0]->machine.reports, 0)[NODE_CPU_AVERAGE], 40, 1e-9);
}

Test(run_report, memory_stays_bounded_over_100000_samplings)
{
    add_parts();
    for (int i = 0; i < 100000; i++)
        put_sampling(i, 0, 2);
    const struct collector *reports = &report.nodes[0]->machine.reports;
    cr_assert_leq(reports->count, 10);
    for (size_t i = 1; i < reports->count; i++)
        cr_assert_eq(collector_row(reports, i)[NODE_TIME] - collector_row(reports, i - 1)[NODE_TIME],
                     (double)reports->stride);
    cr_assert_leq(report.nodes[0]->rows[0]->points.count, 10);
    cr_assert_eq(report.nodes[0]->rows[0]->sketch.count, 100000);
}

/* ---- Figures --------------------------------------------------------------------------------- */

static void check_figure(const double *figures, const char *name, double expected)
{
    for (size_t i = 0; i < NODE_FIGURES; i++)
        if (strcmp(node_figure_table[i].name, name) == 0) {
            cr_assert(isnan(expected) ? isnan(figures[i]) : fabs(figures[i] - expected) < 1e-9, "%s: %g", name,
                      figures[i]);
            return;
        }
    cr_assert_fail("no figure %s", name);
}

Test(run_report, the_figures_are_those_of_perf_py)
{
    static const double rows[4][NODE_KEYS] = {
        {100, 100, 100, 10, 50, 1, 2, 3, 4, 5, 6, 1000},
        {80, 60, 100, 30, 51, 2, 3, 4, 5, 6, 7, 1001},
        {20, 0, 40, 20, 52, 3, 4, 5, 6, 7, 8, 1002},
        {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 1003},
    };
    double figures[NODE_FIGURES];
    node_figures_compute(rows[0], 4, 4600, 4, figures);
    check_figure(figures, "max_t_cpu_pct_per_cpu_avg", 100);
    check_figure(figures, "cpu_avg_utilization_pct", 200.0 / 3);
    check_figure(figures, "cpu_avg_utilization_at100_pct", 100.0 / 3);
    check_figure(figures, "cpu_avg_utilization_over80_pct", 200.0 / 3);
    check_figure(figures, "cpu_avg_utilization_over40_pct", 200.0 / 3);
    check_figure(figures, "cpu_avg_utilization_over20_pct", 100);
    check_figure(figures, "max_t_cpu_pct_per_cpu_min", 100);
    check_figure(figures, "max_t_cpu_pct_per_cpu_max", 100);
    check_figure(figures, "node_cpu_hours", 4);
    check_figure(figures, "node_unused_cpu_hours", 4.0 / 3);
    check_figure(figures, "max_t_mem_percent", 30);
    check_figure(figures, "max_t_disk_usage_percent", 52);
    check_figure(figures, "total_disk_io_read_mb", 3);
    check_figure(figures, "total_disk_io_write_mb", 4);
    check_figure(figures, "total_net_io_lo_sent_mb", 5);
    check_figure(figures, "total_net_io_lo_recv_mb", 6);
    check_figure(figures, "total_net_io_ext_sent_mb", 7);
    check_figure(figures, "total_net_io_ext_recv_mb", 8);
}

Test(run_report, without_reports_no_figure_is_invented)
{
    double figures[NODE_FIGURES];
    node_figures_compute(NULL, 0, 4600, 4, figures);
    for (size_t i = 0; i < NODE_FIGURES; i++)
        cr_assert(isnan(figures[i]), "%s", node_figure_table[i].name);
}

/* ---- Series ---------------------------------------------------------------------------------- */

Test(run_report, series_beyond_the_limit_are_refused)
{
    settings.series_most = 2;
    for (uint32_t i = 0; i < 3; i++)
        add_series("g", "abc" + i, NULL, 0);
    cr_assert_eq(put_at(1, 0, 1), REPORT_PUT);
    cr_assert_eq(put_at(1, 1, 1), REPORT_PUT);
    cr_assert_eq(put_at(1, 2, 1), REPORT_SERIES_MOST);
    cr_assert_eq(put_at(1, 0, 1), REPORT_PUT);
}

Test(run_report, a_label_names_the_node)
{
    static const weir_label labels[][1] = {{{"host", "b"}}, {{"host", "a"}}, {{"host", "c"}}};
    settings.node_label = "host";
    for (size_t i = 0; i < 3; i++)
        add_series("g", "x", labels[i], 1);
    add_series("g", "x", NULL, 0);
    cr_assert_eq(put_at(1, 0, 1), REPORT_PUT);
    cr_assert_eq(put_at(1, 3, 1), REPORT_PUT);
    cr_assert_str_eq(report.nodes[1]->name, "n");
    cr_assert_eq(put_at(1, 1, 1), REPORT_NODES_MOST);
}

Test(run_report, running_totals_count_by_their_growth)
{
    fixture.series[add_series("g", "total", NULL, 0)].cumulative = true;
    static const double totals[] = {100, 103, 110, 4};
    for (size_t i = 0; i < 4; i++)
        put_at((double)i, 0, totals[i]);
    const struct metric_row *row = report.nodes[0]->rows[0];
    cr_assert_eq(row->sketch.count, 3);
    cr_assert_eq(wr_sketch_sum(&row->sketch), 14);
}

Test(run_report, values_that_are_not_finite_are_counted)
{
    add_series("g", "x", NULL, 0);
    put_at(1, 0, NAN);
    put_at(1, 0, INFINITY);
    put_at(1, 0, 7);
    const struct metric_row *row = report.nodes[0]->rows[0];
    cr_assert_eq(row->others, 2);
    cr_assert_eq(row->sketch.count, 1);
    cr_assert_eq(metric_row_mean(row), 7);
}

Test(run_report, rows_are_sorted)
{
    add_series("b", "x", NULL, 0);
    add_series("a", "y", root, 1);
    add_series("a", "y", NULL, 0);
    add_series("a", "x", NULL, 0);
    for (uint32_t i = 0; i < 4; i++)
        put_at(1, i, i);
    run_report_sort(&report);
    static const double order[] = {3, 2, 1, 0};
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(report.nodes[0]->rows[i]->last, order[i]);
}

/* ---- The page -------------------------------------------------------------------------------- */

Test(run_report, what_comes_from_outside_is_escaped_on_the_page)
{
    static const weir_label labels[] = {{"<k>", "\"'&\n<script>alert(1)</script>"}};
    settings.node = "</title><img src=x onerror=alert(2)>";
    fixture.series[add_series("<g>", "<b>", labels, 1)].unit = "<i>";
    put_at(1, 0, 1);
    put_at(2, 0, 2);
    report_page_put(&out, &report, "</title><script>", 1e9);
    const char *page = wr_buffer_text(&out);
    static const char *const unsafe[] = {"<script", "<img", "<g>", "<k>", "<i>", "<b>.", "onerror=alert(2)>"};
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        cr_assert_null(strstr(page, unsafe[i]), "%s", unsafe[i]);
    cr_assert(strstr(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    cr_assert(strstr(page, "Content-Security-Policy"));
}

static const char *written(double value)
{
    wr_buffer_clear(&out);
    page_put_number(&out, value);
    return wr_buffer_text(&out);
}

Test(run_report, numbers_of_the_page_are_short)
{
    cr_assert_str_eq(written(0), "0");
    cr_assert_str_eq(written(12), "12");
    cr_assert_str_eq(written(-1.23456), "-1.235");
    cr_assert_str_eq(written(0.001), "0.001");
    cr_assert_str_eq(written(123456.78), "123456.8");
    cr_assert_str_eq(written(1.5e12), "1.5e12");
    cr_assert_str_eq(written(-2.5e-9), "-2.5e-9");
    cr_assert_str_eq(written(5e-324), "4.941e-324");
    cr_assert_str_eq(written(1.7976931348623157e308), "1.798e308");
    cr_assert_str_eq(written(NAN), "\u2013");
}

Test(run_report, amounts_of_bytes_have_a_unit)
{
    page_put_amount(&out, 3 << 20, "By");
    cr_assert_str_eq(wr_buffer_text(&out), "3 MiB");
}
