/* state: what the worker and the server's thread share. */
#ifndef PROMETHEUS_STATE_H
#define PROMETHEUS_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <weir/handler.h>

#include "../system.h"
#include "series_table.h"
#include "unscraped.h"

struct state {
    const weir_host *host;
    int64_t swept_ns; /* when entries were last looked through for those that have expired, without a page */
    int64_t expiry_ns;
    struct unscraped *family; /* processes that may share the address */
    pthread_mutex_t lock;     /* of the table; not held while text is made or anything is sent */
    struct series_table table;
    struct series_snapshot snapshot; /* this and what follows: of the server's thread */
    bool has_logged_clash;
};

static inline int64_t state_now_ns(void)
{
    return wr_system_clock_ns(CLOCK_MONOTONIC);
}

#endif
