#include "service_summary.h"

#include <inttypes.h>
#include <stdio.h>

#include <weir/weir.h>

#include "command.h"
#include "delivery.h"
#include "engine/engine.h"
#include "lane/losses.h"
#include "runtime/runtime.h"
#include "status/status_json.h"
#include "status/status_page.h"
#include "text/buffer.h"

static void put_source(struct wr_buffer *out, const weir_source_stats *stats)
{
    command_put_text(out, stats->name);
    wr_buffer_put_format(out, ": %s, ", wr_status_json_source_state(stats->state));
    if (stats->lines || stats->bad_lines)
        wr_buffer_put_format(out, "%" PRIu64 " lines (%" PRIu64 " invalid), ", stats->lines, stats->bad_lines);
    wr_buffer_put_format(out, "%" PRIu64 " values added, %" PRIu64 " refused\n", stats->added, stats->refused);
}

static void put_sources(struct wr_buffer *out)
{
    weir_source_stats stats;
    for (size_t i = 0; command_read_source(i, &stats); i++)
        put_source(out, &stats);
}

static bool is_complete(const weir_handler_stats *stats)
{
    return !stats->queued && !stats->summing && !wr_losses_sum(stats->dropped);
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

void service_summary_print(void)
{
    struct wr_buffer out = {0};
    put_sources(&out);
    put_handlers(&out, false);
    command_print_buffer(&out, stderr);
}

/* ---- At the end ------------------------------------------------------------------------------ */

static bool check_sources(void)
{
    weir_source_stats stats;
    bool good = true;
    for (size_t i = 0; command_read_source(i, &stats); i++) {
        if (stats.state != WEIR_SOURCE_BROKEN)
            continue;
        command_fail("the source \"%s\" has failed", stats.name);
        good = false;
    }
    return good;
}

/* Whether no source has refused or lost anything. */
static bool check_refusals(void)
{
    struct wr_source_hooks *hooks = atomic_load(&wr_runtime_get()->source_hooks);
    static struct wr_status_source source; /* kilobytes */
    bool good = true;
    for (size_t i = 0; hooks && hooks->read_status(hooks, i, &source); i++) {
        if (!source.bad_lines && !source.refused && !source.lost)
            continue;
        command_fail("the source \"%s\": %" PRIu64 " lines were not understood, %" PRIu64
                     " values refused, %" PRIu64 " lost",
                     source.name, source.bad_lines, source.refused, source.lost);
        good = false;
    }
    return good;
}

static bool check_process(void)
{
    weir_stats stats;
    delivery_warn_of_unrouted();
    weir_get_stats(&stats, sizeof stats);
    uint64_t late = stats.refused[WEIR_REFUSED_CLOSED];
    if (late)
        command_fail("%" PRIu64 " values were read too late to be added", late);
    return !late;
}

bool service_summary_check(bool strict)
{
    struct wr_buffer out = {0};
    bool is_delivered = put_handlers(&out, true);
    if (!is_delivered)
        command_fail("values were dropped or not delivered:");
    command_print_buffer(&out, stderr);
    return check_process() & check_sources() & (!strict || check_refusals()) & is_delivered;
}
