// prometheus: sets a gauge (way=gauge), increments a counter (way=counter), or observes values in a histogram
// (way=histogram). There are no events and no times:
// only the last value, or the sum, is kept.

#include <cstring>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "../support/measure.h"
#include "../support/values.h"

static prometheus::Registry registry;

struct target {
    bool is_counter, is_histogram;
    prometheus::Gauge *gauge;
    prometheus::Counter *counter;
    prometheus::Histogram *histogram;
};

static target metrics;

static void open_metrics(const struct task *task)
{
    metrics.is_counter = std::strcmp(task->way, "counter") == 0;
    metrics.is_histogram = std::strcmp(task->way, "histogram") == 0;
    metrics.gauge = &prometheus::BuildGauge().Name("latency").Register(registry).Add({{"group", "my_app"}});
    metrics.counter = &prometheus::BuildCounter().Name("sum").Register(registry).Add({{"group", "my_app"}});
    metrics.histogram = &prometheus::BuildHistogram()
                             .Name("distribution")
                             .Register(registry)
                             .Add({{"group", "my_app"}}, prometheus::Histogram::BucketBoundaries VALUES_BOUNDS);
}

static void *begin(const struct task *)
{
    return &metrics;
}

static void add(void *state, const double *values, size_t count)
{
    auto *to = static_cast<target *>(state);
    if (to->is_counter)
        for (size_t i = 0; i < count; i++)
            to->counter->Increment(values[i]);
    else if (to->is_histogram)
        for (size_t i = 0; i < count; i++)
            to->histogram->Observe(values[i]);
    else
        for (size_t i = 0; i < count; i++)
            to->gauge->Set(values[i]);
}

static void close_metrics(const struct task *)
{
}

int main(int argc, char **argv)
{
    subject prometheus = {};
    prometheus.open = open_metrics;
    prometheus.begin = begin;
    prometheus.add = add;
    prometheus.close = close_metrics;
    return measure(argc, argv, &prometheus);
}
