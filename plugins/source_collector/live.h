/* live: clients that listen for values as they come: server-sent events. Their connections sleep; a few times a
 * second, while there are any, the rows that are new are given to each. What a client does not take in time is
 * lost to it, values before anything else, the oldest first, and it is told so. */
#ifndef WEIR_PLUGINS_COLLECTOR_LIVE_H
#define WEIR_PLUGINS_COLLECTOR_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listener;
struct reader;
struct request;

/* All zeros: nobody listens. */
struct live {
    struct listener *first;
    size_t count;
    int64_t run_ms;    /* when it ran last: monotonic */
    int64_t series_id; /* the largest id of a series that was looked at */
    char *problems;    /* as they were told last; NULL: never */
};

/* What a client wants: some series, or a group. */
struct live_wish {
    const int64_t *ids;
    size_t count;
    const char *group;    /* NULL: the ids */
    bool is_inside;       /* the groups inside it, too */
    int64_t known_series; /* the largest id of a series that is there */
    int64_t after;        /* the id of the tail's row that it had last; 0: from now on */
};

/* Replies with an endless response. The reader is within a transaction. Returns false if out of memory, or with
 * too many listeners: LIVE_MOST. */
enum { LIVE_MOST = 64 };
bool live_listen(struct live *live, struct reader *reader, struct request *request,
                 const struct live_wish *wish);

void live_run(struct live *live, struct reader *reader, int64_t limit_ns);
int64_t live_wait_ms(const struct live *live, int64_t most_ms);

/* The file is another one. */
void live_forget(struct live *live);

void live_tell_problems(struct live *live, const char *json);

/* Ends all responses; the server must run or stop then. */
void live_stop(struct live *live);
void live_fini(struct live *live);

#endif
