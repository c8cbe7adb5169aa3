/* api_call: one request to the query API, for the functions that respond to it. */
#ifndef WEIR_PLUGINS_COLLECTOR_API_CALL_H
#define WEIR_PLUGINS_COLLECTOR_API_CALL_H

#include "api.h"
#include "query.h"
#include "text/buffer.h"

struct api_call {
    struct api *api;
    struct reader *reader;
    struct request *request;
    struct query query;
    int64_t run;          /* of a path with one */
    struct wr_buffer out; /* the response */
};

/* What is known of a series without its values. Texts belong to it. */
struct series_info {
    int64_t id;
    char *group, *name, *labels, *unit, *help; /* labels: JSON; NULL: no unit, no help */
    bool is_cumulative;
    int instrument; /* enum weir_instrument */
};

/* Each responds to one path, within a transaction, by appending JSON to `out`. Returns false if it cannot: the
 * request then has its reply, or the query a problem. */
typedef bool api_answer(struct api_call *call);
api_answer api_groups, api_series, api_labels, api_range, api_events, api_top, api_markers, api_runs,
    api_run_metrics, api_live;

/* Replies to what a code of SQLite means; SQLITE_OK: returns true. */
bool api_check(struct api_call *call, int code);

/* Prepares a statement and binds numbers ('i', int64_t) and texts ('s', const char *; NULL is NULL). Replies if
 * it fails: NULL. */
sqlite3_stmt *api_prepare(struct api_call *call, const char *text, const char *types, ...);

/* Finalises such a statement after its last step. Returns false after it has replied. */
bool api_finish(struct api_call *call, sqlite3_stmt *statement);

/* Reads what is known of series: of columns id, group_name, name, labels, cumulative, instrument, unit, help.
 */
#define API_SERIES_COLUMNS "id, group_name, name, labels, cumulative, instrument, unit, help"

/* A condition on series: ?1 a group, ?2 whether groups inside it are meant, too. */
#define API_GROUP_CONDITION "(group_name = ?1 OR (?2 AND substr(group_name, 1, length(?1) + 1) = ?1 || '.'))"
bool api_read_info(sqlite3_stmt *row, struct series_info *info);
void api_free_info(struct series_info *info);

/* Appends it as a JSON object, without the closing brace. */
void api_put_info(struct wr_buffer *out, const struct series_info *info);

/* Finds one; replies with 404 if there is none. */
bool api_find_info(struct api_call *call, int64_t id, struct series_info *info);

#endif
