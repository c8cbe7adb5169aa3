#include "os/timeline.h"

#include <stdlib.h>

#include "os/clock.h"
#include "text/common.h"

enum {
    /* 0.1 to 0.4 ms: long enough for the error of a pair, about 20 ns, not to matter */
    SHORTEST_LINE_TICKS = 400000,
    GOOD_PAIR_TICKS = 2000,
    TRIES = 4
};

/* Reads the counter before and after the wall clock. The pair with the closest readings is the best; a large
 * distance reveals an interruption. */
static struct wr_timeline_pair take_pair(void)
{
    struct wr_timeline_pair best = {0, 0};
    uint64_t best_distance = UINT64_MAX;
    for (int i = 0; i < TRIES && best_distance > GOOD_PAIR_TICKS; i++) {
        uint64_t before = wr_clock_ticks();
        int64_t wall_ns = wr_clock_wall_ns();
        uint64_t distance = wr_clock_ticks() - before;
        if (distance < best_distance) {
            best_distance = distance;
            best = (struct wr_timeline_pair){before + distance / 2, wall_ns};
        }
    }
    return best;
}

void wr_timeline_start(struct wr_timeline *timeline)
{
    struct wr_timeline_pair pair = take_pair();
    *timeline = (struct wr_timeline){.from = pair, .latest = pair};
}

/* A slewed clock runs at most a tenth faster or slower. A larger difference, or time running backwards, is a
 * step of the clock, or a counter that was reset. */
static bool is_step(const struct wr_timeline *timeline, struct wr_timeline_pair pair)
{
    int64_t passed_ns = pair.wall_ns - timeline->latest.wall_ns;
    if (passed_ns <= 0 || pair.ticks <= timeline->latest.ticks)
        return true;
    if (!timeline->speed)
        return false;
    int64_t expected_ns = wr_timeline_wall_ns(timeline, pair.ticks) - timeline->latest.wall_ns;
    return llabs(passed_ns - expected_ns) > WR_NS_PER_MS + expected_ns / 10;
}

void wr_timeline_add(struct wr_timeline *timeline, struct wr_timeline_pair pair)
{
    if (is_step(timeline, pair)) {
        timeline->from = timeline->latest = pair;
        return;
    }
    uint64_t ticks = pair.ticks - timeline->latest.ticks;
    timeline->speed =
        (uint64_t)(((wr_uint128)(uint64_t)(pair.wall_ns - timeline->latest.wall_ns) << 32) / ticks);
    timeline->from = timeline->latest;
    timeline->latest = pair;
}

void wr_timeline_mark(struct wr_timeline *timeline)
{
    uint64_t now = wr_clock_ticks();
    if (timeline->speed && now - timeline->latest.ticks < SHORTEST_LINE_TICKS)
        return;
    wr_timeline_add(timeline, take_pair());
}
