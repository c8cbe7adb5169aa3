/* post: a request, from its headers to the response. */
#ifndef SOURCE_HTTP_POST_H
#define SOURCE_HTTP_POST_H

#include <microhttpd.h>

#include <weir/source.h>

#include "post_body.h"
#include "post_ids.h"
#include "../listening/tenants.h"

enum { POST_REASON_ROOM = 1200 };

/* The texts are constant, or valid as long as the request. */
struct post {
    struct post *next; /* in the queue */
    struct MHD_Connection *connection;
    struct tenant *tenant; /* NULL: anybody may send, and has */
    const char *parse;     /* NULL: the source's option */
    int64_t time_unit_ns;  /* 0: the source's option */
    bool is_influx;        /* answered as InfluxDB does */
    char id[POST_ID_ROOM]; /* "": none */
    struct post_body body;

    /* while it waits and is parsed */
    int64_t since_ms; /* since nothing of it was taken */
    weir_text *text;
    size_t parsed; /* bytes of the body */
    bool is_held;  /* there was no room for a record */
    bool is_finishing;

    uint64_t mark; /* while it waits for what the option "ack" names */

    /* the response */
    unsigned status; /* 0: not known yet */
    unsigned retry_seconds;
    bool is_repeated;
    uint64_t lines, added, refused;
    char reason[POST_REASON_ROOM]; /* "": none */
};

/* What the headers are checked against. */
struct post_rules {
    struct tenants *tenants; /* none: anybody may send */
    const weir_list *formats;
    uint64_t body_limit;
};

/* Reads the request line and the headers. Sets the status if the request is refused. */
void post_check(struct post *post, const struct post_rules *rules, const char *path, const char *method,
                bool *is_gzip);

/* Sets status and reason, unless they are set. */
void post_refuse(struct post *post, unsigned status, const char *format, ...) WEIR_PRINTF(3, 4);

/* Queues the response. is_early: before the body was read, so the connection ends. */
enum MHD_Result post_respond(const struct post *post, bool is_early);

#endif
