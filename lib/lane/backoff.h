/* backoff: the time until the next attempt: exponential back-off with jitter. Arithmetic only, no clock. */
#ifndef WR_BACKOFF_H
#define WR_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "text/common.h"

struct wr_backoff {
    int64_t min_ns, max_ns;
    int64_t limit_ns;  /* of weir's own delay; a requested one may be longer */
    unsigned failures; /* since the last success */
    uint64_t random;   /* state of the generator; never 0 */
};

void wr_backoff_init(struct wr_backoff *backoff, int64_t min_ns, int64_t max_ns, uint64_t seed);

/* Counts a failure and returns the delay: min * 2^failures, at most max, with its second half random, so that
 * many programs do not retry at the same time. If the destination requests a longer delay (requested_ns; 0:
 * none), that plus up to an eighth is returned; if it requests more than max, max less up to an eighth. */
int64_t wr_backoff_fail(struct wr_backoff *backoff, int64_t requested_ns);

/* What an outcome requests, in nanoseconds: at least 0. */
static inline int64_t wr_backoff_requested_ns(int64_t retry_after_ms)
{
    int64_t requested_ns;
    bool is_huge = __builtin_mul_overflow(retry_after_ms, WR_NS_PER_MS, &requested_ns);
    return retry_after_ms <= 0 ? 0 : is_huge ? INT64_MAX : requested_ns;
}

/* From now on a delay is at most limit_ns, also if min is longer, unless the destination requests a longer one.
 */
void wr_backoff_limit(struct wr_backoff *backoff, int64_t limit_ns);

/* Resets the delay to min. */
void wr_backoff_succeed(struct wr_backoff *backoff);

#endif
