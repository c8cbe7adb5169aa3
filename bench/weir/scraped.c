/* scraped: counters that the handler type prometheus shows. */

#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "../support/measure.h"
#include "../support/scraping.h"

static weir_metric **metrics;
static long metric_count;

/* Counter number i: its name, and its label set. */
static weir_metric *get_counter(long i)
{
    char name[32], route[32];
    snprintf(name, sizeof name, "requests_%ld", i % SCRAPING_NAMES);
    snprintf(route, sizeof route, "/route/%ld", i / SCRAPING_NAMES);
    const weir_label labels[] = {{"method", "GET"}, {"route", route}};
    return weir_get_counter(weir_get_stream_labeled("my_app", labels, 2), name);
}

static void open_endpoint(int port, long series)
{
    char options[128];
    snprintf(options, sizeof options, "{\"listen\":\"127.0.0.1:%d\",\"aggregate_series\":%ld}", port, series);
    metric_count = series;
    metrics = calloc((size_t)series, sizeof *metrics);
    for (long i = 0; metrics && i < series; i++)
        metrics[i] = get_counter(i);
    if (!metrics || weir_configure("*", "prometheus", options) || weir_start())
        measure_fail("%s", weir_last_error());
}

static void change(void)
{
    for (long i = 0; i < metric_count; i++)
        weir_metric_add(metrics[i], 1);
    if (weir_flush(-1))
        measure_fail("%s", weir_last_error());
}

int main(int argc, char **argv)
{
    static const struct scraping_subject subject = {open_endpoint, change};
    return scraping(argc, argv, &subject);
}
