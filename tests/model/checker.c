#include "checker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../support/ledger.h"
#include "actor.h"
#include "plan.h"
#include "scripted.h"
#include "sums.h"

/* ---- At any time ----------------------------------------------------------------------------- */

static weir_stats read_process(void)
{
    weir_stats stats;
    if (weir_get_stats(&stats, sizeof stats) != 0)
        world_fail("weir_get_stats: %s", weir_last_error());
    if (stats.added != stats.taken + stats.in_rings)
        world_fail("added %" PRIu64 " is not taken %" PRIu64 " and in rings %" PRIu64, stats.added, stats.taken,
                   stats.in_rings);
    return stats;
}

/* Returns false if no configuration has contained the handler so far. */
static bool read_handler(int handler, weir_handler_stats *stats)
{
    char text[LEDGER_ROOM];
    const char *name = world_handlers[handler];
    if (weir_get_handler_stats(name, stats, sizeof *stats) != 0)
        return false;
    if (!ledger_is_balanced(stats))
        world_fail("%s does not balance: %s", name, ledger_format(stats, text));
    if (stats->faults)
        world_fail("%s: %" PRIu64 " results are counted as faults", name, stats->faults);
    return true;
}

/* The batch of a handler that was removed counts as dropped, whatever the handler returns. */
static uint64_t removed(const weir_handler_stats *stats)
{
    return stats->dropped[WEIR_DROPPED_REMOVED];
}

/* Handlers record samples before they return, so the ledger never counts more than their records. */
void checker_check_now(void)
{
    read_process();
    for (int i = 0; i < WORLD_HANDLERS; i++) {
        const struct world_log *log = &world->logs[world_self][i];
        weir_handler_stats stats;
        uint64_t before = atomic_load(&log->values_before);
        if (!read_handler(i, &stats))
            continue;
        uint64_t settled = stats.delivered + stats.dropped[WEIR_DROPPED_REJECTED];
        if (settled > atomic_load(&log->values))
            world_fail("%s has settled %" PRIu64 ", and the ledger says %" PRIu64, world_handlers[i],
                       atomic_load(&log->values), settled);
        if (settled + removed(&stats) < before && !atomic_load(&world->ends[world_self].in_a_hurry))
            world_fail("%s has settled %" PRIu64 ", and the ledger says %" PRIu64, world_handlers[i], before,
                       settled);
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* The samples of one actor and the handlers that received them. */
struct row {
    const struct world_actor *actor;
    uint32_t id, count;
    /* the first and last configuration that can have routed each sample */
    uint32_t lo[WORLD_SAMPLES], hi[WORLD_SAMPLES];
    uint8_t seen[WORLD_SAMPLES]; /* the handlers that received it */
};

/* What is required of rows. */
struct terms {
    uint32_t process;
    bool whole;  /* every handler of a route must have received the sample */
    bool others; /* samples received by other processes count too */
    bool killed; /* a sample of an unfinished call may be missing; the rest may be routed by the last
                    configuration */
};

static void mark_received(struct row *row, const struct world_log *log, int handler, uint32_t repeats_from)
{
    uint8_t bit = (uint8_t)(1 << handler);
    for (uint32_t i = 0, count = atomic_load(&log->count); i < count; i++) {
        const struct world_entry *entry = &log->entries[i];
        if (entry->actor != row->id)
            continue;
        if (row->actor->samples[entry->number].fate == WORLD_REFUSED)
            world_fail("%s received sample %u of actor %u, which was refused", world_handlers[handler],
                       entry->number, row->id);
        if (row->seen[entry->number] & bit && entry->number < repeats_from)
            world_fail("%s received sample %u of actor %u twice", world_handlers[handler], entry->number,
                       row->id);
        row->seen[entry->number] |= bit;
    }
}

/* The actor's first number in the last batch of a handler: samples from there on may be repeated, if the
 * process did not wait for the result. */
static uint32_t find_last_batch(const struct row *row, const struct world_log *log, bool in_a_hurry)
{
    for (uint32_t i = atomic_load(&log->last_batch); in_a_hurry && i < atomic_load(&log->count); i++)
        if (log->entries[i].actor == row->id)
            return log->entries[i].number;
    return UINT32_MAX;
}

static void mark_all_received(struct row *row, const struct terms *terms)
{
    bool in_a_hurry = atomic_load(&world->ends[terms->process].in_a_hurry);
    memset(row->seen, 0, sizeof row->seen);
    for (int i = 0; i < WORLD_PLAIN_HANDLERS; i++) {
        const struct world_log *log = &world->logs[terms->process][i];
        mark_received(row, log, i, UINT32_MAX);
        for (uint32_t k = 0; terms->others && k < WORLD_PROCESSES; k++)
            if (k != terms->process)
                mark_received(row, &world->logs[k][i], i, find_last_batch(row, log, in_a_hurry));
    }
}

/* ---- Configurations -------------------------------------------------------------------------- */

/* Whether that configuration can have routed the sample. */
static bool matches_config(const struct row *row, uint32_t number, uint32_t config, const struct terms *terms)
{
    const struct world_sample *sample = &row->actor->samples[number];
    uint8_t seen = row->seen[number], route = plan_configs[config].routes[sample->group];
    if (seen & ~route)
        return false;
    bool may_lack = !terms->whole || (sample->fate == WORLD_TRIED && !seen);
    return may_lack || !(route & ~seen & ~plan_withheld(sample));
}

/* Samples without a route are not kept for the last process: they do not determine the order of
 * configurations. */
static bool is_excluded(const struct row *row, uint32_t number, const struct terms *terms)
{
    const struct world_sample *sample = &row->actor->samples[number];
    if (sample->fate == WORLD_REFUSED)
        return true;
    for (uint32_t k = sample->lo; terms->killed && !row->seen[number] && k <= sample->hi; k++)
        if (!plan_configs[k].routes[sample->group])
            return true;
    return false;
}

static uint32_t max_config(const struct world_sample *sample, const struct terms *terms)
{
    return terms->killed ? PLAN_LAST : sample->hi;
}

static _Noreturn void fail_row(const struct row *row, uint32_t number, uint32_t lo, uint32_t hi)
{
    const struct world_sample *sample = &row->actor->samples[number];
    world_fail(
        "sample %u of actor %u, in group %s, %u of %u in its event, was received by the handlers %x (bits): no "
        "configuration from %u to %u has this route (%x, %x)",
        number, row->id, world_groups[sample->group], sample->place, sample->length, row->seen[number], lo, hi,
        plan_configs[lo].routes[sample->group], plan_configs[hi].routes[sample->group]);
}

/* The configurations of an actor's samples never go back. This narrows the possible configurations of each
 * sample from both ends; if none is left, a sample was lost, received too often, or routed by two
 * configurations. */
static void find_configurations(struct row *row, const struct terms *terms)
{
    uint32_t least = 0, most = PLAN_LAST;
    for (uint32_t i = 0; i < row->count; i++) {
        const struct world_sample *sample = &row->actor->samples[i];
        if (is_excluded(row, i, terms))
            continue;
        least = sample->lo > least ? sample->lo : least;
        while (!matches_config(row, i, least, terms))
            if (++least > max_config(sample, terms))
                fail_row(row, i, sample->lo, max_config(sample, terms));
        row->lo[i] = least;
    }
    for (uint32_t i = row->count; i-- > 0;) {
        const struct world_sample *sample = &row->actor->samples[i];
        if (is_excluded(row, i, terms))
            continue;
        most = max_config(sample, terms) < most ? max_config(sample, terms) : most;
        while (!matches_config(row, i, most, terms))
            if (most-- == row->lo[i])
                fail_row(row, i, row->lo[i], max_config(sample, terms));
        row->hi[i] = most;
    }
}

static void check_events(const struct row *row)
{
    for (uint32_t i = 1; i < row->count; i++)
        if (row->actor->samples[i].place && row->seen[i] != row->seen[i - 1])
            world_fail(
                "samples %u and %u of actor %u are of one event, but were received by the handlers %x and %x",
                i - 1, i, row->id, row->seen[i - 1], row->seen[i]);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static void add_sample(struct sums *sums, const struct row *row, uint32_t number, const struct terms *terms)
{
    const struct world_sample *sample = &row->actor->samples[number];
    uint8_t certain = UINT8_MAX, possible = 0;
    bool never_unrouted = true, always_unrouted = true;
    for (uint32_t k = row->lo[number]; k <= row->hi[number]; k++) {
        if (!matches_config(row, number, k, terms))
            continue;
        uint8_t route = plan_configs[k].routes[sample->group];
        certain &= route;
        possible |= route;
        never_unrouted &= route != 0;
        always_unrouted &= route == 0;
    }
    for (int i = 0; i < WORLD_HANDLERS; i++) {
        sums->least_offered[i] += certain >> i & 1;
        sums->most_offered[i] += possible >> i & 1;
    }
    sums->added++;
    sums->least_unrouted += always_unrouted;
    sums->most_unrouted += !never_unrouted;
}

/* Checks all samples that the process has added. */
static struct sums check_rows(const struct terms *terms)
{
    struct sums sums = {0};
    struct row *row = malloc(sizeof *row);
    for (uint32_t i = 0; row && i < WORLD_ACTORS; i++) {
        row->actor = &world->actors[i];
        row->id = i;
        row->count = atomic_load(&row->actor->count);
        if (!row->count || row->actor->samples[0].process != terms->process)
            continue;
        mark_all_received(row, terms);
        find_configurations(row, terms);
        check_events(row);
        for (uint32_t k = 0; k < row->count; k++)
            if (row->actor->samples[k].fate == WORLD_TAKEN)
                add_sample(&sums, row, k, terms);
    }
    free(row);
    return sums;
}

/* ---- The end of a process -------------------------------------------------------------------- */

static void expect_between(const char *what, int handler, uint64_t is, uint64_t least, uint64_t most)
{
    if (is < least || is > most)
        world_fail("%s: %s is %" PRIu64 ", not %" PRIu64 " to %" PRIu64,
                   handler < 0 ? "the process" : world_handlers[handler], what, is, least, most);
}

/* Compares with the handler's record, without its last batch if the process did not wait for the result. */
static void check_settled(int handler, const weir_handler_stats *stats, bool in_a_hurry)
{
    const struct world_log *log = &world->logs[world_self][handler];
    uint64_t settled[3] = {0}, unsure[3] = {0};
    for (int i = WORLD_DELIVERED; i <= WORLD_REJECTED; i++) {
        settled[i] = atomic_load(&log->settled[i]);
        unsure[i] = in_a_hurry ? atomic_load(&log->settled_last[i]) : 0;
    }
    for (int i = WORLD_DELIVERED; i <= WORLD_REJECTED; i++)
        unsure[i] += removed(stats) < settled[i] - unsure[i] ? removed(stats) : settled[i] - unsure[i];
    expect_between("delivered", handler, stats->delivered, settled[WORLD_DELIVERED] - unsure[WORLD_DELIVERED],
                   settled[WORLD_DELIVERED]);
    expect_between("rejected", handler, stats->dropped[WEIR_DROPPED_REJECTED],
                   settled[WORLD_REJECTED] - unsure[WORLD_REJECTED], settled[WORLD_REJECTED]);
}

/* Only reasons for which the life has given cause may be counted. */
static void check_reasons(int handler, const weir_handler_stats *stats, bool in_a_hurry)
{
    const uint64_t *dropped = stats->dropped;
    bool kept = plan_terms.spool || plan_terms.journal;
    expect_between("unrepresentable", handler, dropped[WEIR_DROPPED_UNREPRESENTABLE], 0,
                   plan_terms.picky && handler == WORLD_PLAIN_HANDLERS - 1 ? UINT64_MAX : 0);
    for (int i = 0; i < WEIR_DROPPED_MAX; i++) {
        if (i == WEIR_DROPPED_REJECTED || i == WEIR_DROPPED_UNREPRESENTABLE)
            continue;
        bool cause = i == WEIR_DROPPED_FULL || i == WEIR_DROPPED_REMOVED ||
                     (i == WEIR_DROPPED_FAILED && (!kept || world_self != 0));
        cause = cause && !plan_terms.lossless;
        /* saving to a spool has a timeout too, which a busy machine may exceed */
        cause |= i == WEIR_DROPPED_SHUTDOWN && in_a_hurry && !(plan_terms.journal && plan_terms.lossless);
        cause |= i == WEIR_DROPPED_FORK_UNSAFE && world_self != 0;
        if (!cause && dropped[i])
            world_fail("%s: %" PRIu64 " were dropped for reason %d without a cause", world_handlers[handler],
                       dropped[i], i);
    }
    expect_between("queued", handler, stats->queued, 0, 0);
    expect_between("summing", handler, stats->summing, 0, 0);
    expect_between("spooled", handler, stats->spooled, 0, kept ? UINT64_MAX : 0);
}

bool checker_is_whole(const weir_handler_stats *stats)
{
    uint64_t refused = stats->dropped[WEIR_DROPPED_REJECTED] + stats->dropped[WEIR_DROPPED_UNREPRESENTABLE];
    return ledger_dropped(stats) == refused && stats->spooled == 0;
}

static void check_result(int result)
{
    const struct world_end *end = &world->ends[world_self];
    uint64_t spooled = 0;
    for (int i = 0; i < WORLD_HANDLERS; i++)
        spooled += end->handlers[i].spooled;
    if (result != 0 && result != WEIR_ERR_DROPPED && result != WEIR_ERR_SPOOLED)
        world_fail("weir_shutdown returned %s", weir_strerror(result));
    if ((result == 0 && spooled) || (result == WEIR_ERR_SPOOLED && !spooled))
        world_fail("weir_shutdown returned %d, but %" PRIu64 " are spooled", result, spooled);
}

static void check_sums(const struct sums *sums)
{
    weir_stats stats = read_process();
    struct world_end *end = &world->ends[world_self];
    expect_between("added", -1, stats.added, sums->added, sums->added);
    expect_between("in rings", -1, stats.in_rings, 0, 0);
    expect_between("unrouted", -1, stats.unrouted, sums->least_unrouted, sums->most_unrouted);
    for (int i = 0; i < WEIR_REFUSED_MAX; i++)
        expect_between("refused", -1, stats.refused[i], atomic_load(&actor_refused[i]),
                       atomic_load(&actor_refused[i]));
    for (int i = 0; i < WORLD_HANDLERS; i++)
        expect_between("offered", i, end->handlers[i].offered, sums->least_offered[i], sums->most_offered[i]);
}

int checker_shut_down(int64_t timeout_ms)
{
    atomic_store(&world->ends[world_self].leaves, true);
    return weir_shutdown(timeout_ms);
}

void checker_check_process(int result)
{
    struct world_end *end = &world->ends[world_self];
    bool in_a_hurry = atomic_load(&end->in_a_hurry);
    struct terms terms = {.process = world_self, .whole = true};
    scripted_stop_recording();
    for (int i = 0; i < WORLD_HANDLERS; i++) {
        weir_handler_stats *stats = &end->handlers[i];
        if (!read_handler(i, stats)) {
            *stats = (weir_handler_stats){0};
            continue;
        }
        check_settled(i, stats, in_a_hurry);
        check_reasons(i, stats, in_a_hurry);
        if (i < WORLD_PLAIN_HANDLERS)
            terms.whole = terms.whole && checker_is_whole(stats);
    }
    check_result(result);
    struct sums sums = check_rows(&terms);
    sums_add_values(&sums);
    check_sums(&sums);
    sums_check_process();
    atomic_store(&end->done, true);
}

/* ---- The end of all -------------------------------------------------------------------------- */

/* Losses are counted by the processes that were not killed. */
static bool was_anything_lost(void)
{
    for (int i = 0; i < WORLD_PROCESSES * WORLD_PLAIN_HANDLERS; i++) {
        const struct world_end *end = &world->ends[i / WORLD_PLAIN_HANDLERS];
        weir_handler_stats stats = end->handlers[i % WORLD_PLAIN_HANDLERS];
        stats.spooled = 0;
        if (!checker_is_whole(&stats))
            return true;
    }
    return false;
}

void checker_check_life(uint32_t process)
{
    bool killed = !atomic_load(&world->ends[process].done);
    const struct terms terms = {
        .process = process, .whole = !was_anything_lost(), .others = true, .killed = killed};
    check_rows(&terms);
}
