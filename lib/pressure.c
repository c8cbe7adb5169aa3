#include "pressure.h"

#include "common.h"

void wr_pressure_rise(struct wr_pressure *pressure, uint64_t bytes, int64_t now_ns)
{
    if (pressure->overflow != WR_OVERFLOW_BLOCK || pressure->state != WR_PRESSURE_CALM ||
        bytes < pressure->bound)
        return;
    pressure->state = WR_PRESSURE_FULL;
    pressure->moved_ns = now_ns;
}

void wr_pressure_fall(struct wr_pressure *pressure, uint64_t bytes, int64_t now_ns)
{
    pressure->moved_ns = now_ns;
    if (pressure->state == WR_PRESSURE_CALM)
        return;
    pressure->state = bytes <= pressure->bound / 2 ? WR_PRESSURE_CALM : WR_PRESSURE_FULL;
}

void wr_pressure_check(struct wr_pressure *pressure, int64_t now_ns)
{
    if (now_ns >= wr_pressure_deadline(pressure))
        pressure->state = WR_PRESSURE_STALLED;
}

int64_t wr_pressure_deadline(const struct wr_pressure *pressure)
{
    if (pressure->state != WR_PRESSURE_FULL)
        return WR_NEVER;
    return pressure->timeout_ns > WR_NEVER - pressure->moved_ns ? WR_NEVER
                                                                : pressure->moved_ns + pressure->timeout_ns;
}

uint64_t wr_pressure_room(const struct wr_pressure *pressure, uint64_t bytes)
{
    bool takes_all = pressure->overflow == WR_OVERFLOW_DROP_OLDEST ||
                     (pressure->overflow == WR_OVERFLOW_BLOCK && pressure->state != WR_PRESSURE_STALLED);
    if (takes_all)
        return UINT64_MAX;
    return bytes < pressure->bound ? pressure->bound - bytes : 0;
}
