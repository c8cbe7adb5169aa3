/* common: macros and constants for all files of the core. */
#ifndef WR_COMMON_H
#define WR_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WR_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define WR_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define WR_ALWAYS_INLINE static inline __attribute__((always_inline))
#define WR_NEVER_INLINE __attribute__((noinline))

/* The size of a cache line on all supported machines. Data written by different threads must not share one. */
#define WR_LINE 64
#define WR_ALIGNED_LINE _Alignas(WR_LINE)

#define WR_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Whether a struct whose size was given by its creator contains the field. */
#define WR_HAS_FIELD(type, size, field) ((size) >= offsetof(type, field) + sizeof(((type *)0)->field))

#define WR_NS_PER_S INT64_C(1000000000)
#define WR_NS_PER_MS INT64_C(1000000)
#define WR_NS_PER_US INT64_C(1000)

/* A deadline that is never reached. */
#define WR_NEVER INT64_MAX

static inline bool wr_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* first_letter: 'a' or 'A'. Returns -1 if it is no hexadecimal digit with letters of this case. */
static inline int wr_hex_digit(char c, char first_letter)
{
    if (wr_is_digit(c))
        return c - '0';
    return c >= first_letter && c < first_letter + 6 ? c - first_letter + 10 : -1;
}

__extension__ typedef __int128 wr_int128;
__extension__ typedef unsigned __int128 wr_uint128;

#endif
