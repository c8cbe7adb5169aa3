#include "lane/spool_state.h"

#include <string.h>

#include "os/pages.h"
#include "text/common.h"

enum { SAVE_SHARE = 4, SAVE_MS_MOST = 250 };

bool wr_spool_state_set_place(struct wr_spool_state *spool_state, const char *place)
{
    if (place && spool_state->place && strcmp(place, spool_state->place) == 0)
        return true;
    wr_pages_put(spool_state->place);
    spool_state->place = place ? wr_pages_copy(place) : NULL;
    spool_state->put_at_ns = spool_state->search_at_ns = 0;
    return !place || spool_state->place;
}

void wr_spool_state_plan(struct wr_spool_state *spool_state, int64_t now_ns, int64_t deadline_ns)
{
    int64_t reserved_ns = deadline_ns > now_ns ? (deadline_ns - now_ns) / SAVE_SHARE : 0;
    if (reserved_ns > SAVE_MS_MOST * WR_NS_PER_MS)
        reserved_ns = SAVE_MS_MOST * WR_NS_PER_MS;
    spool_state->save_at_ns = deadline_ns == WR_NEVER ? WR_NEVER : deadline_ns - reserved_ns;
    spool_state->put_at_ns = 0;
}
