#include "handler/upstream.h"

#include <string.h>

#include "os/clock.h"
#include "os/lock.h"
#include "text/common.h"

enum { REMEMBERED_S = 10 };

static struct {
    struct wr_lock lock; /* protects the rest */
    struct {
        uint8_t id[WEIR_UPSTREAM_ID];
        int64_t seen_ns;
    } processes[WEIR_UPSTREAM_MOST];
    size_t count;
    unsigned depth; /* 0: this process receives nothing */
    int64_t depth_ns;
} upstream;

/* Caller holds the lock. */
static void forget_old(int64_t now_ns)
{
    const int64_t before_ns = now_ns - REMEMBERED_S * WR_NS_PER_S;
    for (size_t i = 0; i < upstream.count;)
        if (upstream.processes[i].seen_ns < before_ns)
            upstream.processes[i] = upstream.processes[--upstream.count];
        else
            i++;
    if (upstream.depth_ns < before_ns)
        upstream.depth = 0;
}

static void see(const uint8_t *id, int64_t now_ns)
{
    size_t i = 0;
    while (i < upstream.count && memcmp(upstream.processes[i].id, id, WEIR_UPSTREAM_ID) != 0)
        i++;
    if (i == WEIR_UPSTREAM_MOST)
        return;
    memcpy(upstream.processes[i].id, id, WEIR_UPSTREAM_ID);
    upstream.processes[i].seen_ns = now_ns;
    upstream.count += i == upstream.count;
}

/* A depth that falls is taken over when the higher one is too old. */
static void add(const weir_host *host, const uint8_t *ids, size_t count, unsigned depth)
{
    (void)host;
    int64_t now_ns = wr_clock_monotonic_ns();
    wr_lock_enter(&upstream.lock);
    forget_old(now_ns);
    for (size_t i = 0; i < count; i++)
        see(ids + i * WEIR_UPSTREAM_ID, now_ns);
    if (depth >= upstream.depth) {
        upstream.depth = depth;
        upstream.depth_ns = now_ns;
    }
    wr_lock_leave(&upstream.lock);
}

static size_t get(const weir_host *host, uint8_t *ids, size_t room, unsigned *depth)
{
    (void)host;
    wr_lock_enter(&upstream.lock);
    forget_old(wr_clock_monotonic_ns());
    size_t count = upstream.count < room ? upstream.count : room;
    for (size_t i = 0; i < count; i++)
        memcpy(ids + i * WEIR_UPSTREAM_ID, upstream.processes[i].id, WEIR_UPSTREAM_ID);
    *depth = upstream.depth;
    wr_lock_leave(&upstream.lock);
    return count;
}

static const weir_upstream service = {sizeof service, add, get};

const weir_upstream *wr_upstream_service(void)
{
    return &service;
}

void wr_upstream_after_fork(void)
{
    wr_lock_reset(&upstream.lock);
    upstream.count = 0;
    upstream.depth = 0;
}
