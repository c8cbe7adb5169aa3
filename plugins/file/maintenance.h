/* maintenance: deletes old files beyond `keep` and compresses the others. Runs on the handler's timer,
 * between batches, for at most half of the time. */
#ifndef FILE_MAINTENANCE_H
#define FILE_MAINTENANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "compress.h"
#include "settings.h"

struct maintenance {
    const weir_host *host;
    const struct settings *settings;
    struct compression compression;
    int64_t due_ms;           /* when to run next; INT64_MAX: nothing to do */
    bool untrimmed;           /* there may be more old files than `keep` */
    int64_t last_age_us;      /* the last file that was compressed in this pass: its age */
    char last_path[PATH_MAX]; /* and its path */
    bool failed, logged;      /* a file could not be compressed or deleted; that has been logged */
};

void wr_maintenance_init(struct maintenance *maintenance, const weir_host *host,
                         const struct settings *settings);

/* Starts a pass: there may be new old files. */
void wr_maintenance_begin(struct maintenance *maintenance);

/* Does some of the work if it is due; `current`: the path in use. */
void wr_maintenance_run(struct maintenance *maintenance, const char *current);

/* Called when the handler is closed: deletes excess files. Compression is left to the next process that
 * opens the file. */
void wr_maintenance_stop(struct maintenance *maintenance, const char *current);

/* [fork] */
void wr_maintenance_abandon(const struct maintenance *maintenance);

#endif
