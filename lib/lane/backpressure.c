#include "lane/backpressure.h"

#include "text/common.h"

/* Whether producers wait, unless the lane is stalled. */
static bool waits(const struct wr_backpressure *pressure)
{
    return pressure->overflow == WR_OVERFLOW_BLOCK || pressure->spooling;
}

enum wr_waiting wr_backpressure_who_waits(const struct wr_backpressure *pressure)
{
    if (pressure->state == WR_BACKPRESSURE_FULL)
        return WR_ALL_WAIT;
    return pressure->pressed ? WR_SOURCES_WAIT : WR_NOBODY_WAITS;
}

void wr_backpressure_calm(struct wr_backpressure *pressure)
{
    pressure->state = WR_BACKPRESSURE_CALM;
    pressure->pressed = false;
}

void wr_backpressure_set_spooling(struct wr_backpressure *pressure, bool spooling, uint64_t bytes,
                                  int64_t now_ns)
{
    pressure->spooling = spooling;
    if (!waits(pressure))
        pressure->state = WR_BACKPRESSURE_CALM;
    wr_backpressure_rise(pressure, bytes, now_ns);
}

bool wr_backpressure_drops_oldest(const struct wr_backpressure *pressure)
{
    bool stalled = pressure->state == WR_BACKPRESSURE_STALLED;
    return pressure->overflow == WR_OVERFLOW_DROP_OLDEST && (!pressure->spooling || stalled);
}

void wr_backpressure_rise(struct wr_backpressure *pressure, uint64_t bytes, int64_t now_ns)
{
    if (bytes < pressure->bound)
        return;
    pressure->pressed = true;
    if (!waits(pressure) || pressure->state != WR_BACKPRESSURE_CALM)
        return;
    pressure->state = WR_BACKPRESSURE_FULL;
    pressure->progress_ns = now_ns;
}

static bool is_half_empty(const struct wr_backpressure *pressure, uint64_t bytes)
{
    return bytes <= pressure->bound / 2;
}

void wr_backpressure_fall(struct wr_backpressure *pressure, uint64_t bytes, int64_t now_ns)
{
    pressure->progress_ns = now_ns;
    if (is_half_empty(pressure, bytes))
        wr_backpressure_calm(pressure);
    else if (pressure->state == WR_BACKPRESSURE_STALLED)
        pressure->state = WR_BACKPRESSURE_FULL;
}

void wr_backpressure_ease(struct wr_backpressure *pressure, uint64_t bytes)
{
    if (pressure->state != WR_BACKPRESSURE_STALLED && is_half_empty(pressure, bytes))
        wr_backpressure_calm(pressure);
}

void wr_backpressure_check(struct wr_backpressure *pressure, int64_t now_ns)
{
    if (now_ns >= wr_backpressure_deadline(pressure))
        pressure->state = WR_BACKPRESSURE_STALLED;
}

int64_t wr_backpressure_deadline(const struct wr_backpressure *pressure)
{
    if (pressure->state != WR_BACKPRESSURE_FULL)
        return WR_NEVER;
    return pressure->timeout_ns > WR_NEVER - pressure->progress_ns
               ? WR_NEVER
               : pressure->progress_ns + pressure->timeout_ns;
}

uint64_t wr_backpressure_room(const struct wr_backpressure *pressure, uint64_t bytes)
{
    bool accepts_all = pressure->overflow == WR_OVERFLOW_DROP_OLDEST ||
                       (waits(pressure) && pressure->state != WR_BACKPRESSURE_STALLED);
    if (accepts_all)
        return UINT64_MAX;
    return bytes < pressure->bound ? pressure->bound - bytes : 0;
}
