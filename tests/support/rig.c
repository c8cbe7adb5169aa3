#include "rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"
#include "tally.h"

enum { SEGMENT_ROOM = 256, QUEUE_SAMPLES = 100 };

void rig_init(struct rig *rig)
{
    *rig = (struct rig){.now_ns = 1000 * WR_NS_PER_S};
    rig->settings = (struct wr_lane_settings){
        .queue_bytes = QUEUE_SAMPLES * RIG_SAMPLE_BYTES,
        .overflow = WR_OVERFLOW_BLOCK,
        .block_timeout_ns = WR_NS_PER_S,
        .batch = 5000,
        .batch_bytes = 1024 * 1024,
        .retry_min_ns = 500 * WR_NS_PER_MS,
        .retry_max_ns = 30 * WR_NS_PER_S,
    };
    wr_log_init(&rig->log, "debug");
    wr_log_set_sink(&rig->log, logbook_write, &rig->book);
    rig->lane = wr_lane_new("push", &rig->log, &rig->bell, NULL);
    cr_assert(rig->lane);
    rig->lane->worker = WR_WORKER_RUNNING;
    rig_apply(rig);
}

void rig_fini(struct rig *rig)
{
    wr_lane_drop_all(rig->lane, WEIR_DROPPED_SHUTDOWN);
    wr_lane_free_unused(rig->lane);
    wr_segment_drop(rig->segment);
    wr_segment_pool_trim(&rig->pool);
    for (struct wr_log_sink *sink = atomic_load(&rig->log.sinks), *next; sink; sink = next) {
        next = sink->next;
        free(sink);
    }
}

void rig_apply(struct rig *rig)
{
    wr_lane_set(rig->lane, &rig->settings, rig->now_ns);
}

weir_handler_stats rig_stats(const struct rig *rig)
{
    weir_handler_stats stats;
    wr_tally_take(&stats, rig->lane, rig->now_ns);
    cr_assert(ledger_is_balanced(&stats), "%zu offered, %zu delivered, %zu dropped, %zu queued",
              (size_t)stats.offered, (size_t)stats.delivered, (size_t)ledger_dropped(&stats),
              (size_t)stats.queued);
    return stats;
}

/* ---- The dispatcher -------------------------------------------------------------------------- */

static weir_sample *append_one(struct rig *rig)
{
    struct wr_segment *segment = rig->segment;
    weir_sample *sample = &segment->samples[segment->count++];
    *sample = (weir_sample){.value.f64 = rig->number++};
    return sample;
}

/* What was appended to a full segment must have been offered by then. */
static void make_room(struct rig *rig, uint32_t samples)
{
    if (rig->segment && rig->segment->room - rig->segment->count >= samples)
        return;
    cr_assert(!rig->segment || rig->segment->count == rig->offered);
    wr_segment_drop(rig->segment);
    rig->segment = wr_segment_new(&rig->pool, samples > SEGMENT_ROOM ? samples : SEGMENT_ROOM);
    rig->offered = 0;
    cr_assert(rig->segment);
}

void rig_append(struct rig *rig, uint32_t samples, uint16_t flags, const char *note)
{
    make_room(rig, samples);
    for (uint32_t i = 0; i < samples; i++) {
        weir_sample *sample = append_one(rig);
        sample->flags = (uint16_t)(flags | (i + 1 < samples ? WEIR_SAMPLE_MORE : 0));
        if (i == 0 && note)
            sample->note = wr_segment_add_note(rig->segment, note, strlen(note));
    }
}

void rig_append_kind(struct rig *rig, uint16_t kind)
{
    make_room(rig, 1);
    append_one(rig)->kind = kind;
}

bool rig_offer_appended(struct rig *rig, struct wr_ticket ticket)
{
    struct wr_offer offer = {
        .segment = rig->segment,
        .first = rig->offered,
        .count = rig->segment->count - rig->offered,
        .slot = rig->slot,
        .ticket = ticket,
    };
    for (uint32_t i = offer.first; i < rig->segment->count; i++)
        offer.no_wait |= (rig->segment->samples[i].flags & WR_RING_NO_WAIT) != 0;
    rig->offered = rig->segment->count;
    bool full = wr_lane_offer(rig->lane, &offer, rig->now_ns);
    rig_stats(rig);
    return full;
}

bool rig_offer(struct rig *rig, uint32_t samples)
{
    make_room(rig, samples);
    for (uint32_t i = 0; i < samples; i++)
        rig_append(rig, 1, 0, NULL);
    return rig_offer_appended(rig, (struct wr_ticket){0});
}

bool rig_offer_event(struct rig *rig, uint32_t samples)
{
    rig_append(rig, samples, 0, NULL);
    return rig_offer_appended(rig, (struct wr_ticket){0});
}

bool rig_offer_sync(struct rig *rig, struct wr_ticket ticket)
{
    rig_append(rig, 1, 0, NULL);
    return rig_offer_appended(rig, ticket);
}

bool rig_check(struct rig *rig, int64_t *next_ns)
{
    int64_t ignored = WR_NEVER;
    bool full = wr_lane_check(rig->lane, rig->now_ns, next_ns ? next_ns : &ignored);
    rig_stats(rig);
    return full;
}

/* ---- The worker and its handler -------------------------------------------------------------- */

struct wr_step rig_step(struct rig *rig)
{
    wr_lock_enter(&rig->lane->lock);
    struct wr_step step = wr_step_next(rig->lane, rig->now_ns);
    wr_lane_leave(rig->lane);
    rig_stats(rig);
    return step;
}

enum wr_step_kind rig_next(struct rig *rig)
{
    return rig_step(rig).kind;
}

static size_t put_range(char *text, size_t room, size_t length, const struct wr_range *range)
{
    for (uint32_t i = 0; i < range->count && length < room; i++)
        length += (size_t)snprintf(text + length, room - length, "%s%.0f", length ? " " : "",
                                   range->segment->samples[range->first + i].value.f64);
    return length;
}

const char *rig_flight(const struct rig *rig)
{
    static char text[4000];
    text[0] = '\0';
    if (rig->lane->flight.range.segment)
        put_range(text, sizeof text, 0, &rig->lane->flight.range);
    return text;
}

const char *rig_queue(const struct rig *rig)
{
    static char text[4000];
    const struct wr_queue *queue = &rig->lane->queue;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < queue->count; i++)
        length = put_range(text, sizeof text, length, &queue->ranges[(queue->first + i) % queue->room]);
    return text;
}

/* The worker comes back from the handler, and leaves the lock to say what there is to say. */
static void come_back(struct rig *rig)
{
    wr_lane_leave(rig->lane);
    rig_stats(rig);
}

void rig_answer_open(struct rig *rig, int code, const char *reason)
{
    weir_outcome outcome;
    wr_outcome_init(&outcome, 0);
    outcome.code = code;
    snprintf(outcome.reason, sizeof outcome.reason, "%s", reason ? reason : "");
    wr_lock_enter(&rig->lane->lock);
    wr_outcome_of_open(rig->lane, &outcome, rig->now_ns);
    come_back(rig);
}

static uint32_t count_omitted(const void *ctx, uint32_t samples)
{
    const uint32_t *omitted = ctx;
    return *omitted < samples ? *omitted : samples;
}

void rig_answer_fully(struct rig *rig, weir_outcome outcome, uint32_t omitted)
{
    struct wr_outcome_omissions omissions = {count_omitted, &omitted};
    cr_assert(rig->lane->flight.range.segment, "there is nothing in flight to answer for");
    wr_lock_enter(&rig->lane->lock);
    wr_outcome_of_emit(rig->lane, &outcome, omitted ? &omissions : NULL, rig->now_ns);
    come_back(rig);
}

void rig_answer(struct rig *rig, int code, uint32_t done, uint32_t rejected)
{
    weir_outcome outcome = {.size = sizeof outcome, .code = code, .done = done, .rejected = rejected};
    rig_answer_fully(rig, outcome, 0);
}

void rig_answer_flush(struct rig *rig, int code)
{
    weir_outcome outcome;
    wr_outcome_init(&outcome, 0);
    outcome.code = code;
    wr_lock_enter(&rig->lane->lock);
    wr_outcome_of_flush(rig->lane, &outcome, rig->lane->flush_wanted, rig->now_ns);
    come_back(rig);
}

void rig_answer_wake(struct rig *rig, int why, int code)
{
    weir_outcome outcome;
    wr_outcome_init(&outcome, 0);
    outcome.code = code;
    wr_lock_enter(&rig->lane->lock);
    if (why == WEIR_WAKE_TIMER)
        rig->lane->wake_at_ns = 0;
    wr_outcome_of_wake(rig->lane, &outcome, why, rig->now_ns);
    come_back(rig);
}

void rig_close(struct rig *rig)
{
    wr_lock_enter(&rig->lane->lock);
    wr_outcome_of_close(rig->lane);
    come_back(rig);
}

uint32_t rig_deliver_all(struct rig *rig)
{
    uint32_t batches = 0;
    for (;;) {
        switch (rig_next(rig)) {
        case WR_STEP_OPEN: rig_answer_open(rig, WEIR_OUTCOME_OK, NULL); break;
        case WR_STEP_EMIT:
            rig_answer(rig, WEIR_OUTCOME_OK, rig->lane->flight.range.count, 0);
            batches++;
            break;
        case WR_STEP_FLUSH: rig_answer_flush(rig, WEIR_OUTCOME_OK); break;
        case WR_STEP_CLOSE: rig_close(rig); break;
        default: return batches;
        }
    }
}

/* ---- Tickets --------------------------------------------------------------------------------- */

int rig_read_ticket(struct wr_ticket ticket)
{
    int answer;
    return wr_ticket_wait(ticket, 0, &answer) ? answer : RIG_NO_ANSWER;
}

struct wr_ticket rig_take_ticket(struct wr_ticket_desk *desk)
{
    struct wr_ticket ticket = wr_ticket_take(desk);
    wr_ticket_expect(ticket, 1);
    return ticket;
}
