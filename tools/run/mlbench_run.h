/* mlbench_run: the command as a run of an MLBench server: made before it starts, finished or failed at its end.
 *
 * Requests are made by the libcurl of the handler type http, which also sends the values; so only those who use
 * this load it. */
#ifndef WEIR_TOOLS_MLBENCH_RUN_H
#define WEIR_TOOLS_MLBENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* The label of all values of the run. */
#define MLBENCH_RUN_LABEL "run_id"

/* All zeros: there is no run. */
struct mlbench_run {
    char *api; /* the URL of the API, with a slash at the end */
    int64_t id;
};

enum { MLBENCH_ID_BYTES = 24 };

/* Writes the run's id into `text`, of MLBENCH_ID_BYTES, and returns that. */
const char *mlbench_run_put_id(const struct mlbench_run *run, char *text);

/* Sets the URL of the API: `url`, or that with /api/. Returns false if it is not a URL. */
bool mlbench_run_set_url(struct mlbench_run *run, const char *url);

/* Makes the run. title: the command and its arguments. Returns false after printing why. */
bool mlbench_run_create(struct mlbench_run *run, const char *name, const char *title);

/* Sets its state: "finished", "failed". Returns false after printing why. */
bool mlbench_run_set_state(const struct mlbench_run *run, const char *state);

/* Where its values are posted, many in a request, as lines of JSON. Owned by the caller; NULL: out of memory.
 */
char *mlbench_run_values_url(const struct mlbench_run *run);

#endif
