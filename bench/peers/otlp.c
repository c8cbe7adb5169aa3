/* otlp: sends values to an OpenTelemetry receiver without a metrics library: clock_gettime, the messages of
 * protobuf-c, and a request with libcurl for every 5,000 values, over one connection.
 *
 * file is the URL. */

#include <stdlib.h>
#include <time.h>

#include "../support/measure.h"
#include "../support/posting.h"
#include "bench/peers/otlp.pb-c.h"

static struct client {
    Otlp__Point points[POSTING_BATCH], *all[POSTING_BATCH];
    size_t count, room;
    uint8_t *bytes;
} client;

static void open_client(const struct task *task)
{
    if (task->threads != 1)
        measure_fail("threads must be 1");
    for (size_t i = 0; i < POSTING_BATCH; i++) {
        otlp__point__init(&client.points[i]);
        client.all[i] = &client.points[i];
    }
    posting_open(task->file, "application/x-protobuf");
}

static void *begin(const struct task *task)
{
    (void)task;
    return &client;
}

static void send_request(const Otlp__Request *request)
{
    size_t length = otlp__request__get_packed_size(request);
    if (length > client.room) {
        free(client.bytes);
        client.bytes = malloc(length);
        client.room = length;
    }
    if (!client.bytes)
        measure_fail("out of memory");
    otlp__request__pack(request, client.bytes);
    posting_send(client.bytes, length);
    client.count = 0;
}

static void send_points(void)
{
    Otlp__Gauge gauge = OTLP__GAUGE__INIT;
    Otlp__Metric metric = OTLP__METRIC__INIT, *metrics[] = {&metric};
    Otlp__Scope scope = OTLP__SCOPE__INIT;
    Otlp__ScopeMetrics scoped = OTLP__SCOPE_METRICS__INIT, *scopes[] = {&scoped};
    Otlp__AnyValue name = OTLP__ANY_VALUE__INIT;
    Otlp__KeyValue service = OTLP__KEY_VALUE__INIT, *attributes[] = {&service};
    Otlp__Resource resource = OTLP__RESOURCE__INIT;
    Otlp__ResourceMetrics resourced = OTLP__RESOURCE_METRICS__INIT, *resources[] = {&resourced};
    Otlp__Request request = OTLP__REQUEST__INIT;
    gauge.n_data_points = client.count;
    gauge.data_points = client.all;
    metric.name = (char *)(size_t) "my_app.latency";
    metric.gauge = &gauge;
    scope.name = (char *)(size_t) "my_app";
    scoped.scope = &scope;
    scoped.n_metrics = 1;
    scoped.metrics = metrics;
    name.string_value = (char *)(size_t) "bench";
    service.key = (char *)(size_t) "service.name";
    service.value = &name;
    resource.n_attributes = 1;
    resource.attributes = attributes;
    resourced.resource = &resource;
    resourced.n_scope_metrics = 1;
    resourced.scope_metrics = scopes;
    request.n_resource_metrics = 1;
    request.resource_metrics = resources;
    send_request(&request);
}

static void add(void *state, const double *values, size_t count)
{
    struct client *to = state;
    for (size_t i = 0; i < count; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        to->points[to->count].time_unix_nano = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        to->points[to->count].as_double = values[i];
        if (++to->count == POSTING_BATCH)
            send_points();
    }
}

static void close_client(const struct task *task)
{
    (void)task;
    if (client.count)
        send_points();
    posting_close();
    free(client.bytes);
}

int main(int argc, char **argv)
{
    static const struct subject subject = {
        .open = open_client, .begin = begin, .add = add, .close = close_client};
    return measure(argc, argv, &subject);
}
