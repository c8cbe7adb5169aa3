/* retry: how long to wait before another try: exponential back-off with jitter. Plain arithmetic, no clock. */
#ifndef WR_BACKOFF_H
#define WR_BACKOFF_H

#include <stdint.h>

struct wr_backoff {
    int64_t min_ns, max_ns;
    unsigned failures; /* since the last success */
    uint64_t random;   /* the generator's state, not 0 */
};

void wr_backoff_init(struct wr_backoff *retry, int64_t min_ns, int64_t max_ns, uint64_t seed);

/* The pause after one more failure: min * 2^failures, at most max, of which the last half is drawn by lot so
 * that many programs do not come back at once. A destination's own wish (asked_ns, 0: none) counts when it is
 * longer, with up to an eighth on top, again so that not all come at once; where it is beyond max, the pause is
 * max, less up to an eighth. */
int64_t wr_backoff_fail(struct wr_backoff *retry, int64_t asked_ns);

/* The next failure starts at min again. */
void wr_backoff_succeed(struct wr_backoff *retry);

#endif
