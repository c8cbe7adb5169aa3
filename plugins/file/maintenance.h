/* maintenance: sees to the old files: deletes what is more than `keep`, compresses the others. By the handler's
 * timer, between two batches, at most half of the time. */
#ifndef FILE_MAINTENANCE_H
#define FILE_MAINTENANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "compress.h"
#include "settings.h"

struct maintenance {
    const weir_host *host;
    const struct settings *settings;
    struct compress compress;
    int64_t due_ms;       /* when there is something to do; INT64_MAX: nothing */
    bool untrimmed;       /* there may be more old files than are kept */
    int64_t after_us;     /* the age of the last file that was compressed in this round, */
    char after[PATH_MAX]; /* and its path */
    bool failed, said;    /* a file could not be compressed, or deleted */
};

void wr_maintenance_init(struct maintenance *maintenance, const weir_host *host,
                         const struct settings *settings);

/* There may be new old files. */
void wr_maintenance_begin(struct maintenance *maintenance);

/* Does what is due, or a part of it; `current`: the path in use. */
void wr_maintenance_go_on(struct maintenance *maintenance, const char *current);

/* The handler is closed: deletes what has to be deleted, and leaves the rest to whoever opens it next. */
void wr_maintenance_stop(struct maintenance *maintenance, const char *current);

/* [fork] */
void wr_maintenance_abandon(const struct maintenance *maintenance);

#endif
