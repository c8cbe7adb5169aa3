#include "lane/glance.h"

#include <stdio.h>
#include <string.h>

#include "handler/instance.h"
#include "lane/tally.h"

static int find_ending(const struct wr_lane *lane)
{
    return lane->no_thread ? WEIR_DROPPED_NO_THREAD : lane->ending;
}

static const char *find_type(const struct wr_lane *lane)
{
    const struct wr_instance *instance = lane->instance ? lane->instance : lane->successor;
    return instance ? instance->type->is.name : "";
}

static void fill(struct wr_glance *glance, const struct wr_lane *lane, int64_t now_ns)
{
    *glance = (struct wr_glance){
        .name = lane->name,
        .queue_bound = lane->settings.queue_bytes,
        .ending = find_ending(lane),
        .full = lane->pressure.state == WR_BACKPRESSURE_FULL,
        .stalled = lane->pressure.state == WR_BACKPRESSURE_STALLED,
        .failing_since_ns = lane->failing ? lane->failing_since_ns : 0,
        .busy_since_ns = lane->busy_since_ns,
        .reason_ns = lane->reason_ns,
    };
    wr_tally_fill(&glance->stats, lane, now_ns);
    snprintf(glance->type, sizeof glance->type, "%s", find_type(lane));
    if (lane->reason_ns)
        memcpy(glance->reason, lane->reason, sizeof glance->reason);
}

void wr_glance_take(struct wr_glance *glance, struct wr_lane *lane, int64_t now_ns)
{
    sigset_t signals;
    wr_lane_enter_from_outside(lane, &signals);
    fill(glance, lane, now_ns);
    wr_lane_leave_to_outside(lane, &signals);
}
