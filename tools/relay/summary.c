#include "summary.h"

#include <inttypes.h>
#include <stdio.h>

#include <weir/weir.h>

#include "common/command.h"
#include "common/delivery.h"
#include "common/source_state.h"
#include "engine/engine.h"
#include "os/log.h"
#include "runtime/runtime.h"
#include "status/report.h"
#include "text/buffer.h"

static void put_source(struct wr_buffer *out, const weir_source_stats *stats)
{
    command_put_text(out, stats->name);
    wr_buffer_put_format(out, ": %s, ", source_state_name(stats->state));
    if (stats->lines || stats->bad_lines)
        wr_buffer_put_format(out, "%" PRIu64 " lines (%" PRIu64 " invalid), ", stats->lines, stats->bad_lines);
    wr_buffer_put_format(out, "%" PRIu64 " values added, %" PRIu64 " refused\n", stats->added, stats->refused);
}

static void put_sources(struct wr_buffer *out)
{
    weir_source_stats stats;
    for (size_t i = 0; weir_get_source_stats(i, &stats, sizeof stats) == 0; i++)
        put_source(out, &stats);
}

static bool is_complete(const weir_handler_stats *stats)
{
    uint64_t lost = stats->queued + stats->summing;
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        lost += stats->dropped[i];
    return !lost;
}

/* Returns whether all of them are complete. */
static bool put_handlers(struct wr_buffer *out, bool incomplete_only)
{
    weir_handler_stats stats;
    const char *name;
    bool all_complete = true;
    for (size_t i = 0; (name = weir_get_handler_name(i)); i++) {
        weir_get_handler_stats(name, &stats, sizeof stats);
        if (!incomplete_only || !is_complete(&stats))
            delivery_put(out, name, &stats);
        all_complete &= is_complete(&stats);
    }
    return all_complete;
}

static void print(struct wr_buffer *out)
{
    const char *text = wr_buffer_text(out);
    if (!text && out->failed)
        command_out_of_memory();
    if (text)
        fputs(text, stderr);
    wr_buffer_fini(out);
}

void summary_print(void)
{
    struct wr_buffer out = {0};
    put_sources(&out);
    put_handlers(&out, false);
    print(&out);
}

/* ---- At the end ------------------------------------------------------------------------------ */

static bool check_sources(void)
{
    weir_source_stats stats;
    bool good = true;
    for (size_t i = 0; weir_get_source_stats(i, &stats, sizeof stats) == 0; i++) {
        if (stats.state != WEIR_SOURCE_BROKEN)
            continue;
        command_fail("the source \"%s\" has failed", stats.name);
        good = false;
    }
    return good;
}

static bool check_process(void)
{
    weir_stats stats;
    struct wr_engine *engine = wr_runtime_engine(wr_runtime_get());
    weir_get_stats(&stats, sizeof stats);
    uint64_t late = stats.refused[WEIR_REFUSED_CLOSED];
    if (stats.unrouted && !wr_log_wants(engine->log, WEIR_LOG_INFO)) /* at that level the ledger contains it */
        wr_report_unrouted(engine, WEIR_LOG_WARNING);
    if (late)
        command_fail("%" PRIu64 " values were read too late to be added", late);
    return !late;
}

bool summary_check(void)
{
    struct wr_buffer out = {0};
    bool is_delivered = put_handlers(&out, true);
    if (!is_delivered)
        command_fail("values were dropped or not delivered:");
    print(&out);
    return check_process() & check_sources() & is_delivered;
}
