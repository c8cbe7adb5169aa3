/* prospect: whether the configuration that is just being put in force for the first time has a journal. What is
 * added meanwhile by other threads would not be in it, although their calls were answered 0: they wait for
 * that. */
#ifndef WR_PROSPECT_H
#define WR_PROSPECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum wr_prospect_kind { WR_PROSPECT_UNKNOWN, WR_PROSPECT_NO_JOURNAL, WR_PROSPECT_JOURNAL };

/* All zeros: it is not known yet. */
struct wr_prospect {
    _Atomic uint32_t is; /* enum wr_prospect_kind */
};

static inline void wr_prospect_forget(struct wr_prospect *prospect)
{
    atomic_store(&prospect->is, WR_PROSPECT_UNKNOWN);
}

static inline void wr_prospect_see(struct wr_prospect *prospect, bool journal)
{
    atomic_store(&prospect->is, journal ? WR_PROSPECT_JOURNAL : WR_PROSPECT_NO_JOURNAL);
}

/* Waits while *word is `begun`, as long as that may lead to a journal, and a second at most. */
void wr_prospect_wait(const struct wr_prospect *prospect, _Atomic uint32_t *word, uint32_t begun);

#endif
