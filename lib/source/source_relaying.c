#include "source/source_relaying.h"

#include "journal/fronts.h"
#include "lane/lane.h"
#include "runtime/block.h"
#include "runtime/runtime.h"
#include "source/levels.h"
#include "source/source_blocks.h"
#include "source/source_host.h"
#include "source/sources.h"

static struct wr_levels *lock(const weir_host *host)
{
    struct wr_levels *levels = wr_sources_levels(wr_source_from_host(host)->runtime);
    wr_lock_enter(&levels->lock);
    return levels;
}

static struct wr_levels_sender *enter(const weir_host *host, const char *id)
{
    struct wr_levels *levels = lock(host);
    struct wr_levels_sender *sender = wr_levels_enter(levels, id);
    wr_lock_leave(&levels->lock);
    return sender;
}

static void leave(const weir_host *host, struct wr_levels_sender *sender)
{
    struct wr_levels *levels = lock(host);
    wr_levels_leave(levels, sender);
    wr_lock_leave(&levels->lock);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static bool merges(const struct wr_source *source)
{
    return atomic_load_explicit(&source->runtime->registry.merges, memory_order_relaxed);
}

static void merge(struct wr_levels *levels, struct wr_levels_sender *sender, weir_block_sample *sample)
{
    struct weir_metric *metric = wr_block_metric(sample);
    if (atomic_load_explicit(&metric->instrument, memory_order_acquire) != WEIR_GAUGE)
        return;
    double level = sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
    double merged = wr_levels_merge(levels, sender, metric, level);
    if (merged == level || merged != merged) /* an integer stays one; NaN is none of this */
        return;
    sample->kind = WEIR_KIND_DOUBLE;
    sample->value.f64 = merged;
}

/* The lock is held until all is added: else a block of another source might come between, and the level that
 * was worked out first be the one that stays. */
static int add(const weir_host *host, struct wr_levels_sender *sender, weir_block_sample *samples,
               const weir_block *block, uint64_t *refused)
{
    if (!merges(wr_source_from_host(host)))
        return wr_source_blocks_service()->add(host, block, refused);
    struct wr_levels *levels = lock(host);
    for (size_t i = 0; i < block->count; i++)
        merge(levels, sender, &samples[i]);
    int result = wr_source_blocks_service()->add(host, block, refused);
    wr_lock_leave(&levels->lock);
    return result;
}

static void publish(const weir_host *host)
{
    struct weir_metric *metric;
    double level;
    if (!merges(wr_source_from_host(host)))
        return;
    struct wr_levels *levels = lock(host);
    while ((metric = wr_levels_next(levels, &level)) &&
           wr_source_host_add_number(wr_source_from_host(host), metric, WEIR_DOUBLE(level)) != WEIR_ADD_FULL)
        wr_levels_published(levels);
    wr_lock_leave(&levels->lock);
}

/* ---- Acknowledging --------------------------------------------------------------------------- */

/* A handler that had `aggregate` until a reload counts, too. */
static bool is_late(const weir_host *host)
{
    struct wr_engine *engine = wr_runtime_engine(wr_source_from_host(host)->runtime);
    const struct wr_lane *lane = wr_engine_lanes(engine);
    while (lane && !wr_lane_summer(lane))
        lane = wr_lane_next(lane);
    return lane && !wr_fronts_are_kept(&engine->fronts);
}

static const struct wr_relaying service = {sizeof service, enter, add, leave, publish, is_late};

const struct wr_relaying *wr_source_relaying_service(const struct wr_source *source)
{
    return wr_sources_levels(source->runtime) ? &service : NULL;
}
