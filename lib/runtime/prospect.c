#include "runtime/prospect.h"

#include "os/clock.h"
#include "text/common.h"
#include "os/futex.h"

enum { UNKNOWN_MS = 100, JOURNAL_MS = 1000 };

void wr_prospect_wait(const struct wr_prospect *prospect, _Atomic uint32_t *word, uint32_t begun)
{
    int64_t start_ns = wr_clock_monotonic_ns(), now_ns = start_ns;
    while (atomic_load(word) == begun) {
        uint32_t is = atomic_load(&prospect->is);
        int64_t patience_ms = is == WR_PROSPECT_JOURNAL ? JOURNAL_MS : UNKNOWN_MS;
        if (is == WR_PROSPECT_NO_JOURNAL || now_ns - start_ns >= patience_ms * WR_NS_PER_MS)
            return;
        wr_futex_wait(word, begun, WR_NS_PER_MS);
        now_ns = wr_clock_monotonic_ns();
    }
}
