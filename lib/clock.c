#include "clock.h"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "common.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return now.tv_sec * WR_NS_PER_S + now.tv_nsec;
}

int64_t wr_clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t wr_clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t wr_clock_deadline_ns(int64_t timeout_ms)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    return timeout_ms < 0 || timeout_ms > (WR_NEVER - now_ns) / WR_NS_PER_MS
               ? WR_NEVER
               : now_ns + timeout_ms * WR_NS_PER_MS;
}

bool wr_clock_has_ticks(void)
{
#if defined(__x86_64__)
    /* Intel SDM vol. 3, "Invariant TSC": CPUID.80000007H:EDX[8] */
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & 1u << 8);
#else
    return false;
#endif
}
