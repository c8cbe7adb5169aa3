/* ticks: reads the processor's cycle counter, the cheapest clock. */
#ifndef BENCH_TICKS_H
#define BENCH_TICKS_H

#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>

static inline uint64_t ticks_read(void)
{
    return __rdtsc();
}
#elif defined(__aarch64__)
static inline uint64_t ticks_read(void)
{
    uint64_t ticks;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#else
#include <time.h>

static inline uint64_t ticks_read(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
#endif

#endif
