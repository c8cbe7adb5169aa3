#include "stash.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { SHARE_TO_SAVE = 4, LONGEST_TO_SAVE_MS = 250 };

bool wr_stash_set_place(struct wr_stash *stash, const char *place)
{
    if (place && stash->place && strcmp(place, stash->place) == 0)
        return true;
    free(stash->place);
    stash->place = place ? strdup(place) : NULL;
    stash->put_at_ns = stash->search_at_ns = 0;
    return !place || stash->place;
}

void wr_stash_fini(struct wr_stash *stash)
{
    wr_stash_forget_fetched(stash);
    free(stash->place);
    stash->place = NULL;
}

void wr_stash_plan(struct wr_stash *stash, int64_t now_ns, int64_t deadline_ns)
{
    int64_t aside_ns = deadline_ns > now_ns ? (deadline_ns - now_ns) / SHARE_TO_SAVE : 0;
    if (aside_ns > LONGEST_TO_SAVE_MS * WR_NS_PER_MS)
        aside_ns = LONGEST_TO_SAVE_MS * WR_NS_PER_MS;
    stash->save_at_ns = deadline_ns == WR_NEVER ? WR_NEVER : deadline_ns - aside_ns;
    stash->put_at_ns = 0;
}

void wr_stash_forget_fetched(struct wr_stash *stash)
{
    wr_segment_drop(stash->fetched.segment);
    stash->fetched = (struct wr_range){0};
    wr_labels_drop(stash->labels);
    stash->labels = NULL;
}
