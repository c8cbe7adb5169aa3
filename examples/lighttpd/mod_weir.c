/* mod_weir: a module for lighttpd 1.4 that measures what the server does:
 *
 *     lighttpd.requests{method,status}    a counter
 *     lighttpd.request.duration           a histogram, from the whole head to the last byte of the response
 *     lighttpd.connections                a gauge
 *     lighttpd.heap.used                  asked for once a second, by a collector
 *
 * Where they go is decided by WEIR_CONFIG. See README.md for how to build and load it. */
#include "first.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base.h"
#include "http_kv.h"
#include "plugin.h"

#include <weir/weir.h>

/* lighttpd's own are -1 for what it does not know; those that come later share a counter. */
enum { METHODS = 16, STATUSES = 600 };

/* lighttpd serves all requests on one thread, which is the only one to use this. */
typedef struct {
    PLUGIN_DATA;
    weir_stream *stream;
    weir_metric *durations, *connections;
    weir_metric *requests[METHODS][STATUSES];
} plugin_data;

/* A label set is looked up once: its handle then costs what one without labels does. */
static weir_metric *get_counter(plugin_data *data, int method, int status)
{
    unsigned row = (unsigned)method < METHODS - 1 ? (unsigned)method : METHODS - 1;
    unsigned column = (unsigned)status < STATUSES ? (unsigned)status : 0;
    weir_metric **counter = &data->requests[row][column];
    if (!*counter) {
        const buffer *name = row < METHODS - 1 ? http_method_buf((http_method_t)row) : NULL;
        char code[16];
        snprintf(code, sizeof code, "%u", column);
        const weir_label labels[] = {{"method", name ? name->ptr : "other"}, {"status", code}};
        *counter = weir_get_counter(weir_get_stream_labeled("lighttpd", labels, 2), "requests");
    }
    return *counter;
}

/* On a thread of weir's. */
static void measure_heap(weir_stream *stream, void *unused)
{
    (void)unused;
    weir_add_int(stream, "heap.used", (int64_t)mallinfo2().uordblks);
}

static uintptr_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uintptr_t)now.tv_sec * 1000000000u + (uintptr_t)now.tv_nsec;
}

INIT_FUNC(mod_weir_init)
{
    return ck_calloc(1, sizeof(plugin_data));
}

FREE_FUNC(mod_weir_free)
{
    (void)p_d;
    weir_shutdown(1000);
}

/* In each worker, after its fork. A counter that exists before its first increment is scraped as 0, so that
 * increase() has all of them. */
SERVER_FUNC(mod_weir_worker_init)
{
    plugin_data *data = p_d;
    (void)srv;
    data->stream = weir_get_stream("lighttpd");
    data->durations = weir_get_histogram(data->stream, "request.duration", NULL, 0);
    data->connections = weir_get_gauge(data->stream, "connections");
    weir_describe(data->stream, "request.duration", "s",
                  "From a request's whole head to the last byte of its response");
    weir_describe(data->stream, "requests", NULL, "Requests that were answered");
    weir_describe(data->stream, "heap.used", "By", "Memory that malloc has given out");
    weir_get_gauge(data->stream, "heap.used");
    weir_metric_add(data->connections, 0); /* a level is not known before it is set */
    get_counter(data, HTTP_METHOD_GET, 200);
    weir_add_collector(data->stream, measure_heap, NULL, 1000);
    weir_start();
    return HANDLER_GO_ON;
}

REQUEST_FUNC(mod_weir_begin)
{
    const plugin_data *data = p_d;
    r->plugin_ctx[data->id] = (void *)now_ns();
    return HANDLER_GO_ON;
}

REQUEST_FUNC(mod_weir_done)
{
    plugin_data *data = p_d;
    uintptr_t begun_ns = (uintptr_t)r->plugin_ctx[data->id];
    weir_metric_add(get_counter(data, r->http_method, r->http_status), 1);
    if (begun_ns)
        weir_metric_add(data->durations, (double)(now_ns() - begun_ns) / 1e9);
    return HANDLER_GO_ON;
}

REQUEST_FUNC(mod_weir_reset)
{
    const plugin_data *data = p_d;
    r->plugin_ctx[data->id] = NULL;
    return HANDLER_GO_ON;
}

CONNECTION_FUNC(mod_weir_accept)
{
    const plugin_data *data = p_d;
    (void)con;
    weir_metric_change(data->connections, 1);
    return HANDLER_GO_ON;
}

CONNECTION_FUNC(mod_weir_close)
{
    const plugin_data *data = p_d;
    (void)con;
    weir_metric_change(data->connections, -1);
    return HANDLER_GO_ON;
}

int mod_weir_plugin_init(plugin *p);

int mod_weir_plugin_init(plugin *p)
{
    p->version = LIGHTTPD_VERSION_ID;
    p->name = "weir";
    p->init = mod_weir_init;
    p->cleanup = mod_weir_free;
    p->worker_init = mod_weir_worker_init;
    p->handle_uri_raw = mod_weir_begin;
    p->handle_request_done = mod_weir_done;
    p->handle_request_reset = mod_weir_reset;
    p->handle_connection_accept = mod_weir_accept;
    p->handle_connection_close = mod_weir_close;
    return 0;
}
