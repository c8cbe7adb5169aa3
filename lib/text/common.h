/* common: the few words that every file of the core may use. */
#ifndef WR_COMMON_H
#define WR_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WR_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define WR_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define WR_ALWAYS_INLINE static inline __attribute__((always_inline))
#define WR_NEVER_INLINE __attribute__((noinline))

/* What two threads write must not share a line; 64 bytes on every machine weir is built for. */
#define WR_LINE 64
#define WR_ALIGNED_LINE _Alignas(WR_LINE)

#define WR_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* For structs whose size the other side tells: whether it has the field at all. */
#define WR_HAS_FIELD(type, size, field) ((size) >= offsetof(type, field) + sizeof(((type *)0)->field))

#define WR_NS_PER_S INT64_C(1000000000)
#define WR_NS_PER_MS INT64_C(1000000)
#define WR_NS_PER_US INT64_C(1000)

/* A deadline that never comes. */
#define WR_NEVER INT64_MAX

__extension__ typedef __int128 wr_int128;
__extension__ typedef unsigned __int128 wr_uint128;

#endif
