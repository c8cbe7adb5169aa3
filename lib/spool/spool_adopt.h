/* spool_search: finds what processes that are dead have left behind, and adopts it. */
#ifndef WR_SPOOL_ADOPT_H
#define WR_SPOOL_ADOPT_H

#include <stdbool.h>
#include <stdint.h>

#include "spool/spool_index.h"

struct wr_error;

/* What a search came upon. */
struct wr_spool_found {
    uint64_t samples;
    bool more; /* there may be others */
    uint32_t
        other_version; /* files of this format were left as they are, and this is the first time; 0: none */
    bool kept_bad;     /* a damaged file was kept */
};

/* Puts the files of all boxes of the handler in the place that have lost their process on the index, the oldest
 * box first. false: the error tells why it cannot be looked; that there is no such place is none. */
bool wr_spool_adopt_find(struct wr_spool_index *index, const char *place, const char *handler,
                         struct wr_spool_found *found, struct wr_error *error);

#endif
