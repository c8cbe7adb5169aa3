/* status: the process and its store: /api/v1/status for people, /readyz for machines. */
#ifndef WEIR_PLUGINS_COLLECTOR_STATUS_H
#define WEIR_PLUGINS_COLLECTOR_STATUS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/source.h>

#include "request.h"

/* What is in the store; of a moment, since counting may take long. */
struct store_figures {
    int64_t taken_ms, took_ms;
    int64_t values, series;
    int64_t first_ns, last_ns; /* 0: there are no values */
};

struct status {
    const weir_host *host;
    const weir_status *service;
    sqlite3 *db;         /* NULL: it is not open */
    const char *problem; /* why it is not */
    const char *path;    /* of the store */
    int64_t busy_ms;     /* the time-out of `db` */
    struct store_figures figures;
};

/* GET /healthz, /readyz, /api/v1/status */
bool status_handle(struct status *status, struct request *request);

/* The object of the service status; the caller frees it. NULL: there is none, or out of memory. */
struct json_object *status_read(const struct status *status);

/* The problems as a text, for those who have to know when they change. The caller frees it. NULL: out of
 * memory.
 */
char *status_problems(const struct status *status);

#endif
