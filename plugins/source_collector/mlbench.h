/* mlbench: MLBench's REST API: runs, pods and their metrics, in the tables of the store. */
#ifndef WEIR_PLUGINS_COLLECTOR_MLBENCH_H
#define WEIR_PLUGINS_COLLECTOR_MLBENCH_H

#include <sqlite3.h>
#include <stdbool.h>

#include "request.h"

struct mlbench {
    sqlite3 *db;
    int64_t limit_ns;  /* how long a request that reads may take, for messages */
    bool creates_runs; /* a metric of an unknown run creates it */
};

/* Whether it handles the path of a request: below /api/runs and /api/metrics, and /api/pods. */
bool mlbench_knows(const struct request *request);

/* Handles such a request. The database must be open. */
void mlbench_handle(const struct mlbench *mlbench, struct request *request);

/* ---- For its parts --------------------------------------------------------------------------- */

struct mlbench_call {
    const struct mlbench *mlbench;
    struct request *request;
};

/* Whether a text is a number of a row. */
bool mlbench_parse_id(const char *text, sqlite3_int64 *id);

/* Prepares a statement; the texts and numbers are bound in order: 'i' sqlite3_int64, 's' const char *, 'n' NULL
 * if the text is NULL. Texts must stay valid until it is finalised. Replies to the request if it fails: NULL.
 */
sqlite3_stmt *mlbench_prepare(const struct mlbench_call *call, const char *text, const char *types, ...);

/* Runs such a statement to its end, and finalises it; NULL is allowed. Returns false after it has replied to
 * the request. */
bool mlbench_finish(const struct mlbench_call *call, sqlite3_stmt *statement);

/* The most bytes of a reply with values, about: it is built in memory. */
enum { MLBENCH_REPLY_MOST = 64 << 20 };

/* Adds what a value takes of it. Returns false after it has replied to the request that it is too much. */
bool mlbench_reserve(struct request *request, size_t *bytes, sqlite3_stmt *row);

/* Finalises a statement that was stepped until it returned no row, or a part of its rows; NULL is allowed.
 * Returns false after it has replied to the request. */
bool mlbench_end(const struct mlbench_call *call, sqlite3_stmt *statement);

/* Begins or ends a transaction. */
bool mlbench_run(const struct mlbench_call *call, const char *text);

void mlbench_handle_runs(const struct mlbench_call *call, const char *id);
void mlbench_handle_metrics(const struct mlbench_call *call, const char *owner);
void mlbench_add_metrics(const struct mlbench_call *call);

#endif
