#include <criterion/criterion.h>

#include "os/clock.h"
#include "text/common.h"

/* The wall clock is read between two times, so the end lies between two as well. */
static void expect_end(int64_t interval_ns, int64_t lead_ns)
{
    int64_t now_ns = wr_clock_monotonic_ns(), before_ns = wr_clock_wall_ns();
    int64_t in_ns = wr_clock_before_end_ns(now_ns, interval_ns) - now_ns + lead_ns;
    int64_t latest_ns = wr_clock_wall_ns() + in_ns;
    cr_assert_geq(latest_ns - latest_ns % interval_ns, before_ns + in_ns, "%lld", (long long)interval_ns);
    cr_assert(in_ns >= 2 * lead_ns && in_ns < interval_ns + 2 * lead_ns, "%lld", (long long)in_ns);
}

Test(clock, intervals_end_shortly_before_multiples_of_their_length)
{
    for (int i = 0; i < 1000; i++) {
        expect_end(WR_NS_PER_MS, WR_NS_PER_MS / 16);
        expect_end(WR_NS_PER_S, WR_NS_PER_S / 16);
        expect_end(WR_NS_PER_S * 10, WR_NS_PER_MS * 100);
        expect_end(WR_NS_PER_S * 86400, WR_NS_PER_MS * 100);
    }
}
