#include "status/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "text/common.h"
#include "config/document.h"
#include "lane/lane_stats.h"
#include "lane/losses.h"
#include "status/ledger.h"
#include "os/fd.h"

/* ---- The process ----------------------------------------------------------------------------- */

/* Field 22 of /proc/PID/stat. Field 2, the program's name in brackets, may contain anything, blanks and
 * brackets too. */
uint64_t wr_snapshot_start_ticks(int64_t pid)
{
    enum { FIELDS_AFTER_NAME = 20 };
    char path[64] = "/proc/self/stat", text[1024];
    if (pid)
        snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    int file = wr_fd_open(path, O_RDONLY, 0);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *at = strrchr(text, ')');
    for (int i = 0; at && i < FIELDS_AFTER_NAME; i++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t wr_snapshot_pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

void wr_snapshot_init(struct wr_snapshot *snapshot)
{
    memset(snapshot, 0, sizeof *snapshot);
    snapshot->start_ticks = wr_snapshot_start_ticks(0);
    snapshot->pid_namespace = wr_snapshot_pid_namespace();
}

static int64_t find_up_ns(uint64_t start_ticks)
{
    struct timespec now;
    long per_second = sysconf(_SC_CLK_TCK);
    if (!start_ticks || per_second <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return -1;
    int64_t began_ns = (int64_t)start_ticks * (WR_NS_PER_S / per_second);
    return now.tv_sec * WR_NS_PER_S + now.tv_nsec - began_ns;
}

static double find_rate(const struct wr_snapshot *snapshot, uint64_t now, uint64_t before)
{
    int64_t passed_ns = snapshot->view.process.taken_ns - snapshot->before_ns;
    if (!snapshot->before_ns || passed_ns <= 0 || now < before)
        return -1;
    return (double)(now - before) * (double)WR_NS_PER_S / (double)passed_ns;
}

static void take_ledger(struct wr_snapshot *snapshot, struct wr_engine *engine)
{
    weir_stats stats;
    struct wr_status_process *process = &snapshot->view.process;
    wr_ledger_read(engine, &stats);
    process->added = stats.added;
    process->taken = stats.taken;
    process->in_rings = stats.in_rings;
    process->unrouted = stats.unrouted;
    memcpy(process->refused, stats.refused, sizeof process->refused);
    process->threads = stats.threads;
    process->series = stats.series;
    process->added_rate = find_rate(snapshot, stats.added, snapshot->added_before);
    snapshot->added_before = stats.added;
}

static const char *find_source(const struct wr_config *config)
{
    if (config->path)
        return config->path;
    if (config->document)
        return config->document->name;
    return config->call_count ? "weir_configure" : "none";
}

static void take_unmatched(struct wr_status_process *process, const struct wr_metric_rules *rules)
{
    const struct wr_metric_rule *rule;
    process->entries = rules->count;
    process->entries_unmatched = 0;
    memset(process->unmatched, 0, sizeof process->unmatched);
    for (size_t i = 0; (rule = wr_metric_rules_unmatched(rules, i)); i = (size_t)(rule - rules->items) + 1) {
        if (process->entries_unmatched < WR_STATUS_ENTRIES_MOST) {
            struct wr_status_entry *entry = &process->unmatched[process->entries_unmatched];
            snprintf(entry->group, sizeof entry->group, "%s", rule->group);
            snprintf(entry->name, sizeof entry->name, "%s", rule->pattern);
        }
        process->entries_unmatched++;
    }
}

static void take_config(struct wr_status_process *process, struct wr_engine *engine)
{
    struct wr_config *config = wr_engine_config(engine, &process->configurations);
    snprintf(process->config, sizeof process->config, "%s", find_source(config));
    take_unmatched(process, &config->metrics);
    wr_config_drop(config);
    process->configured_wall_ns = atomic_load(&engine->configured_ns);
}

static void take_process(struct wr_snapshot *snapshot, struct wr_engine *engine)
{
    struct wr_status_process *process = &snapshot->view.process;
    process->pid = getpid();
    process->pid_namespace = snapshot->pid_namespace;
    process->start_ticks = snapshot->start_ticks;
    process->taken_ns = wr_clock_monotonic_ns();
    process->taken_wall_ns = wr_clock_wall_ns();
    process->up_ns = find_up_ns(snapshot->start_ticks);
    process->snapshots++;
    snprintf(process->program, sizeof process->program, "%s", program_invocation_short_name);
    snprintf(process->weir, sizeof process->weir, "%s", WEIR_VERSION);
    take_config(process, engine);
    take_ledger(snapshot, engine);
}

/* ---- Sources --------------------------------------------------------------------------------- */

static void take_senders(struct wr_status_view *view, const struct wr_snapshot_sources *sources, size_t index)
{
    struct wr_status_sender *senders = view->senders + view->sender_count;
    size_t room = WR_STATUS_SENDERS_MOST - view->sender_count;
    size_t count = sources->read_senders(sources->ctx, index, senders, room);
    size_t taken = count < room ? count : room;
    for (size_t i = 0; i < taken; i++)
        senders[i].source = (int64_t)index;
    view->sender_count += taken;
    view->process.senders_more += count - taken;
}

static void take_sources(struct wr_status_view *view, const struct wr_snapshot_sources *sources)
{
    struct wr_status_source source;
    view->source_count = view->sender_count = 0;
    view->process.sources_more = view->process.senders_more = 0;
    for (size_t i = 0; sources->read && sources->read(sources->ctx, i, &source); i++) {
        if (i >= WR_STATUS_SOURCES_MOST) {
            view->process.sources_more++;
            continue;
        }
        view->sources[view->source_count++] = source;
        take_senders(view, sources, i);
    }
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static uint32_t find_flags(const struct wr_lane_status *status)
{
    return (status->stats.open ? WR_STATUS_OPEN : 0u) | (status->stats.failing ? WR_STATUS_FAILING : 0u) |
           (status->full ? WR_STATUS_FULL : 0u) | (status->stalled ? WR_STATUS_STALLED : 0u) |
           (status->end_reason != WR_LANE_LIVES ? WR_STATUS_ENDED : 0u);
}

static int64_t find_age_ns(int64_t since_ns, int64_t now_ns)
{
    return !since_ns ? -1 : since_ns < now_ns ? now_ns - since_ns : 0;
}

/* New lanes are prepended to the list, so the index of a lane changes. */
static struct wr_snapshot_before *find_before(struct wr_snapshot *snapshot, const struct wr_lane *lane)
{
    for (size_t i = 0; i < WR_STATUS_HANDLERS_MOST; i++) {
        struct wr_snapshot_before *before = &snapshot->before[i];
        if (!before->lane)
            before->lane = lane;
        if (before->lane == lane)
            return before;
    }
    return NULL;
}

static void take_rates(struct wr_snapshot *snapshot, struct wr_status_handler *handler,
                       const struct wr_lane *lane)
{
    uint64_t dropped = wr_losses_sum(handler->dropped);
    struct wr_snapshot_before *before = find_before(snapshot, lane);
    handler->offered_rate = handler->delivered_rate = handler->dropped_rate = -1;
    if (!before)
        return;
    handler->offered_rate = find_rate(snapshot, handler->offered, before->offered);
    handler->delivered_rate = find_rate(snapshot, handler->delivered, before->delivered);
    handler->dropped_rate = find_rate(snapshot, dropped, before->dropped);
    before->offered = handler->offered;
    before->delivered = handler->delivered;
    before->dropped = dropped;
}

static void take_handler(struct wr_status_handler *handler, struct wr_lane *lane, int64_t now_ns)
{
    struct wr_lane_status status;
    wr_lane_stats_get_status(&status, lane, now_ns);
    const weir_handler_stats *stats = &status.stats;
    *handler = (struct wr_status_handler){
        .flags = find_flags(&status),
        .ending = status.end_reason,
        .failing_ns = find_age_ns(status.failing_since_ns, now_ns),
        .busy_ns = find_age_ns(status.busy_since_ns, now_ns),
        .reason_ns = stats->last_error_ms < 0 ? -1 : stats->last_error_ms * WR_NS_PER_MS,
        .offered = stats->offered,
        .recovered = stats->recovered,
        .delivered = stats->delivered,
        .queued = stats->queued,
        .spooled = stats->spooled,
        .summing = stats->summing,
        .queue_bytes = stats->queue_bytes,
        .queue_bound = status.queue_bound,
        .spool_bytes = stats->spool_bytes,
        .spool_limit = stats->spool_limit,
        .queue_age_ns = stats->queue_age_ms * WR_NS_PER_MS,
        .retries = stats->retries,
        .faults = stats->faults,
    };
    memcpy(handler->dropped, stats->dropped, sizeof handler->dropped);
    snprintf(handler->name, sizeof handler->name, "%s", status.name);
    snprintf(handler->type, sizeof handler->type, "%s", status.type);
    snprintf(handler->reason, sizeof handler->reason, "%s", stats->last_error);
}

static void take_handlers(struct wr_snapshot *snapshot, struct wr_engine *engine)
{
    struct wr_status_view *view = &snapshot->view;
    int64_t now_ns = wr_clock_monotonic_ns();
    view->handler_count = 0;
    view->process.handlers_more = 0;
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = wr_lane_next(lane)) {
        if (view->handler_count == WR_STATUS_HANDLERS_MOST) {
            view->process.handlers_more++;
            continue;
        }
        struct wr_status_handler *handler = &view->handlers[view->handler_count++];
        take_handler(handler, lane, now_ns);
        take_rates(snapshot, handler, lane);
    }
}

/* ---- Unrouted groups ------------------------------------------------------------------------- */

/* Inserts into the list, which is sorted by descending values; the last one is removed if it is full. */
static void put_group(struct wr_status_view *view, const struct wr_ledger_unrouted *unrouted)
{
    size_t at = view->group_count;
    while (at && view->groups[at - 1].values < unrouted->values)
        at--;
    if (at == WR_STATUS_GROUPS_MOST)
        return;
    if (view->group_count < WR_STATUS_GROUPS_MOST)
        view->group_count++;
    memmove(&view->groups[at + 1], &view->groups[at], (view->group_count - at - 1) * sizeof view->groups[0]);
    view->groups[at].values = unrouted->values;
    snprintf(view->groups[at].name, sizeof view->groups[at].name, "%s", unrouted->group->name);
}

static void take_groups(struct wr_status_view *view, struct wr_engine *engine)
{
    size_t count;
    struct wr_ledger_unrouted *unrouted = wr_ledger_list_unrouted(engine, &count);
    memset(view->groups, 0, sizeof view->groups);
    view->group_count = 0;
    view->process.groups_unrouted = count;
    for (size_t i = 0; i < count; i++)
        put_group(view, &unrouted[i]);
    free(unrouted);
}

void wr_snapshot_take(struct wr_snapshot *snapshot, struct wr_engine *engine,
                      const struct wr_snapshot_sources *sources)
{
    take_process(snapshot, engine);
    take_sources(&snapshot->view, sources);
    take_handlers(snapshot, engine);
    take_groups(&snapshot->view, engine);
    snapshot->before_ns = snapshot->view.process.taken_ns;
}
