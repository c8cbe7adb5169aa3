#include "os/clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "text/common.h"
#include "os/fd.h"

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

enum { LEAD_MS_MOST = 100 };

int64_t wr_clock_before_end_ns(int64_t now_ns, int64_t interval_ns)
{
    int64_t lead_ns = interval_ns / 16;
    int64_t end_in_ns = interval_ns - wr_clock_wall_ns() % interval_ns;
    if (lead_ns > LEAD_MS_MOST * WR_NS_PER_MS)
        lead_ns = LEAD_MS_MOST * WR_NS_PER_MS;
    if (end_in_ns < 2 * lead_ns)
        end_in_ns += interval_ns;
    return now_ns + end_in_ns - lead_ns;
}

#if defined(__x86_64__)
/* The kernel removes "tsc" from this list once it finds that counters of two processors differ or stop. A list
 * that cannot be read is no evidence against the counter. */
static bool is_trusted_by_kernel(void)
{
    char list[256];
    int file = wr_fd_open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY, 0);
    if (file < 0)
        return true;
    ssize_t length = read(file, list, sizeof list - 1);
    close(file);
    if (length <= 0)
        return true;
    list[length] = '\0';
    return strstr(list, "tsc") != NULL;
}
#endif

bool wr_clock_has_ticks(void)
{
#if defined(__x86_64__)
    /* Intel SDM vol. 3, "Invariant TSC": CPUID.80000007H:EDX[8] */
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & 1u << 8) && is_trusted_by_kernel();
#else
    return false;
#endif
}
