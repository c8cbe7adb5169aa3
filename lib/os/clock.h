/* clock: the monotonic clock for durations and deadlines, the wall clock for timestamps, and the processor's
 * time-stamp counter, which takes half the time to read. timeline.h converts its ticks to wall time. */
#ifndef WR_CLOCK_H
#define WR_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

int64_t wr_clock_monotonic_ns(void);
int64_t wr_clock_wall_ns(void);

/* The monotonic time timeout_ms from now. WR_NEVER if timeout_ms is negative, or the result would overflow. */
int64_t wr_clock_deadline_ns(int64_t timeout_ms);

/* The monotonic time shortly before the next multiple of an interval by the wall clock, where intervals of
 * handlers end: what is added then is in the one that ends. now_ns: the present monotonic time. If it is that
 * soon already, the time is an interval later. */
int64_t wr_clock_before_end_ns(int64_t now_ns, int64_t interval_ns);

/* Whether the processor has a counter with the same constant rate on all cores, and the kernel considers it
 * reliable. */
bool wr_clock_has_ticks(void);

/* Reads the counter; 0 if there is none. */
static inline uint64_t wr_clock_ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

/* A hint to the processor, for busy-waiting loops. */
static inline void wr_clock_relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
