/* recovery_rings: what was left in the rings of a journal becomes segments of the same journal, in one step.
 *
 * The routes are those in force now; ids of series stay those of the journal. Until the step is committed
 * nothing has happened: what was made for it is deleted by whoever opens the journal next. [dispatcher's round]
 */
#ifndef WR_RECOVERY_RINGS_H
#define WR_RECOVERY_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "journal/journal_reader.h"
#include "dispatch/router.h"

/* What a journal's ids are in this process. */
struct wr_recovery_rings_ids {
    const uint32_t *items; /* plus 1; 0: it means nothing */
    uint32_t count;
};

/* What became of the samples in rings. */
struct wr_recovery_rings_result {
    uint64_t unrouted; /* nobody listens to them now */
    uint64_t corrupt;
};

/* 0; or errno, and nothing has happened. The new segments are the reader's, behind the others. */
int wr_recovery_rings_make(struct wr_journal_reader *reader, struct wr_router *router,
                           const struct wr_registry *registry, const struct wr_recovery_rings_ids *ids,
                           struct wr_recovery_rings_result *result);

#endif
