/* query: the parameters of a request to the query API: which there are, and what they mean. */
#ifndef WEIR_PLUGINS_COLLECTOR_QUERY_H
#define WEIR_PLUGINS_COLLECTOR_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUERY_PARAMETERS = 24, QUERY_PROBLEM = 512, QUERY_IDS = 100 };

struct query_parameter {
    const char *name, *value; /* borrowed */
};

/* All zeros but `allowed` and `now_ns`: empty. */
struct query {
    const char *allowed; /* the names of parameters, separated by blanks */
    int64_t now_ns;      /* wall clock */
    struct query_parameter all[QUERY_PARAMETERS];
    size_t count;
    char problem[QUERY_PROBLEM]; /* what is wrong with the parameters; "": nothing so far */
};

/* All functions that return bool return false with `problem` set. A parameter that is not there leaves what the
 * result points to as it is, and returns true. */

/* Adds a parameter; both texts end in NUL behind their lengths, and stay valid. Refuses unknown names, names
 * that are there already (but "label"), and texts that are not valid UTF-8 or have a NUL. */
bool query_add(struct query *query, const char *name, size_t name_length, const char *value, size_t length);

/* The first value of that name; NULL: there is none. */
const char *query_get(const struct query *query, const char *name);

bool query_fail(struct query *query, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The parameter must be there. */
bool query_need(struct query *query, const char *name);

/* Nanoseconds since 1970, UTC: of seconds with up to nine decimals, "now", or an age like "-15m". */
bool query_time(struct query *query, const char *name, int64_t *time_ns);

bool query_integer(struct query *query, const char *name, int64_t least, int64_t most, int64_t *number);
bool query_bool(struct query *query, const char *name, bool *flag);

/* Positive numbers separated by commas, each once. */
bool query_ids(struct query *query, const char *name, int64_t ids[QUERY_IDS], size_t *count);

/* A place in a list of values, the newest first: a time, and how many of the values with that time (in
 * microseconds) come before it: TIME or TIME/NUMBER. */
bool query_place(struct query *query, const char *name, int64_t *time_ns, int64_t *skipped);

#endif
