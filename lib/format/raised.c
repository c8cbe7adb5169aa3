#include "format/raised.h"

#include <stdlib.h>
#include <string.h>

void wr_raised_fini(struct wr_raised *raised)
{
    free(raised->times);
    *raised = (struct wr_raised){0};
}

/* How many are in front of a sequence. */
static uint32_t count_before(const struct wr_raised *raised, uint64_t sequence)
{
    uint32_t low = 0, high = raised->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (raised->times[middle].sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void wr_raised_forget(struct wr_raised *raised, uint64_t sequence)
{
    if (!raised->count || raised->times[0].sequence >= sequence)
        return;
    uint32_t gone = count_before(raised, sequence);
    raised->count -= gone;
    memmove(raised->times, raised->times + gone, raised->count * sizeof *raised->times);
}

bool wr_raised_recall(const struct wr_raised *raised, uint64_t sequence, int64_t *time_ns)
{
    if (sequence >= raised->next)
        return false;
    uint32_t i = count_before(raised, sequence);
    if (i < raised->count && raised->times[i].sequence == sequence)
        *time_ns = raised->times[i].time_ns;
    return true;
}

bool wr_raised_add(struct wr_raised *raised, uint64_t sequence, int64_t time_ns)
{
    if (raised->count == raised->room) {
        uint32_t room = raised->room ? raised->room * 2 : 64;
        struct wr_raised_time *times = realloc(raised->times, room * sizeof *times);
        if (!times)
            return false;
        raised->times = times;
        raised->room = room;
    }
    raised->times[raised->count++] = (struct wr_raised_time){sequence, time_ns};
    return true;
}

void wr_raised_advance(struct wr_raised *raised, uint64_t sequence)
{
    if (sequence > raised->next)
        raised->next = sequence;
}
