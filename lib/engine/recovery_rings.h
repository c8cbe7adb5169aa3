/* recovery_rings: moves what is in the rings and cells of a journal to segments of the same journal, in one
 * committed round. Of cells there is a summary for each series.
 *
 * Uses the current routes, and the lanes' next sample identities; series ids stay those of the journal. If this
 * process dies before the commit, nothing has changed: the next one that opens the journal deletes the new
 * files. [dispatcher's round] */
#ifndef WR_RECOVERY_RINGS_H
#define WR_RECOVERY_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "journal/journal_reader.h"
#include "dispatch/router.h"

/* Series ids of this process, by those of the journal. */
struct wr_recovery_rings_ids {
    const uint32_t *items; /* plus 1; 0: invalid */
    uint32_t count;
};

/* A flag of samples in segments made here: the route's filter and sampling have been applied, but not its new
 * names and labels. It is none of WEIR_SAMPLE_*. */
enum { WR_RECOVERY_TO_MAP = 1u << 8 };

/* Values that were not moved. */
struct wr_recovery_rings_result {
    uint64_t unrouted; /* their groups have no route */
    uint64_t corrupt;
};

/* Appends the new segments to the reader's. Returns 0, or errno with nothing changed. */
int wr_recovery_rings_make(struct wr_journal_reader *reader, struct wr_router *router,
                           const struct wr_registry *registry, const struct wr_recovery_rings_ids *ids,
                           struct wr_recovery_rings_result *result);

#endif
