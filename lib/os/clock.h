/* clock: the three clocks: monotonic for durations and deadlines, wall for time stamps, and the processor's
 * time-stamp counter, which costs the caller half of what either does. timeline.h turns its ticks into wall
 * time. */
#ifndef WR_CLOCK_H
#define WR_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

int64_t wr_clock_monotonic_ns(void);
int64_t wr_clock_wall_ns(void);

/* The monotonic time in so many milliseconds; WR_NEVER when they are negative, or more than a clock can hold.
 */
int64_t wr_clock_deadline_ns(int64_t timeout_ms);

/* Whether the processor has a counter that runs at one speed on all cores, whatever they do, and the kernel has
 * nothing against it. */
bool wr_clock_has_ticks(void);

/* The counter; 0 where there is none. */
static inline uint64_t wr_clock_ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

/* Tells the processor that this is a loop that waits. */
static inline void wr_clock_relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
