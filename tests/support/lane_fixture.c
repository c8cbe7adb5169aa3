#include "lane_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"
#include "lane/lane_stats.h"

enum { SEGMENT_ROOM = 256, QUEUE_SAMPLES = 100 };

void fixture_init(struct lane_fixture *fixture)
{
    *fixture = (struct lane_fixture){.now_ns = 1000 * WR_NS_PER_S};
    fixture->settings = (struct wr_lane_settings){
        .queue_bytes = QUEUE_SAMPLES * FIXTURE_SAMPLE_BYTES,
        .overflow = WR_OVERFLOW_BLOCK,
        .block_timeout_ns = WR_NS_PER_S,
        .batch = 5000,
        .batch_bytes = 1024 * 1024,
        .retry_min_ns = 500 * WR_NS_PER_MS,
        .retry_max_ns = 30 * WR_NS_PER_S,
    };
    wr_log_init(&fixture->log, "debug");
    wr_log_set_sink(&fixture->log, logbook_write, &fixture->book);
    fixture->lane = wr_lane_new("push", &fixture->log, &fixture->wakeup, NULL);
    cr_assert(fixture->lane);
    fixture->lane->worker.state = WR_THREAD_AWAKE;
    fixture_apply(fixture);
}

void fixture_fini(struct lane_fixture *fixture)
{
    wr_lane_drop_all(fixture->lane, WEIR_DROPPED_SHUTDOWN);
    wr_lane_free_unused(fixture->lane);
    wr_segment_drop(fixture->segment);
    wr_segment_pool_trim(&fixture->pool);
    for (struct wr_log_sink *sink = atomic_load(&fixture->log.sinks), *next; sink; sink = next) {
        next = sink->next;
        free(sink);
    }
}

void fixture_apply(struct lane_fixture *fixture)
{
    wr_lane_set(fixture->lane, &fixture->settings, fixture->now_ns);
}

weir_handler_stats fixture_stats(const struct lane_fixture *fixture)
{
    weir_handler_stats stats;
    wr_lane_stats_get(&stats, fixture->lane, fixture->now_ns);
    cr_assert(ledger_is_balanced(&stats), "%zu offered, %zu delivered, %zu dropped, %zu queued",
              (size_t)stats.offered, (size_t)stats.delivered, (size_t)ledger_dropped(&stats),
              (size_t)stats.queued);
    return stats;
}

/* ---- The dispatcher -------------------------------------------------------------------------- */

static weir_sample *append_one(struct lane_fixture *fixture)
{
    struct wr_segment *segment = fixture->segment;
    weir_sample *sample = &segment->samples[segment->count++];
    *sample = (weir_sample){.value.f64 = fixture->number++};
    return sample;
}

/* Samples of a full segment must have been offered before. */
static void make_room(struct lane_fixture *fixture, uint32_t samples)
{
    if (fixture->segment && fixture->segment->room - fixture->segment->count >= samples)
        return;
    cr_assert(!fixture->segment || fixture->segment->count == fixture->offered);
    wr_segment_drop(fixture->segment);
    fixture->segment = wr_segment_new(&fixture->pool, samples > SEGMENT_ROOM ? samples : SEGMENT_ROOM);
    fixture->offered = 0;
    cr_assert(fixture->segment);
}

void fixture_append(struct lane_fixture *fixture, uint32_t samples, uint16_t flags, const char *note)
{
    make_room(fixture, samples);
    for (uint32_t i = 0; i < samples; i++) {
        weir_sample *sample = append_one(fixture);
        sample->flags = (uint16_t)(flags | (i + 1 < samples ? WEIR_SAMPLE_MORE : 0));
        if (i == 0 && note)
            sample->note = wr_segment_add_note(fixture->segment, note, strlen(note));
    }
}

void fixture_append_kind(struct lane_fixture *fixture, uint16_t kind)
{
    make_room(fixture, 1);
    append_one(fixture)->kind = kind;
    fixture->segment->other_kinds |= kind > WEIR_KIND_INT;
}

bool fixture_offer_appended(struct lane_fixture *fixture, struct wr_ticket ticket)
{
    struct wr_offer offer = {
        .segment = fixture->segment,
        .first = fixture->offered,
        .count = fixture->segment->count - fixture->offered,
        .slot = fixture->slot,
        .ticket = ticket,
    };
    for (uint32_t i = offer.first; i < fixture->segment->count; i++)
        offer.no_wait |= (fixture->segment->samples[i].flags & WR_RING_NO_WAIT) != 0;
    fixture->offered = fixture->segment->count;
    offer.keep = fixture->keeps;
    enum wr_waiting waiting = wr_lane_offer(fixture->lane, &offer, fixture->now_ns);
    fixture_stats(fixture);
    return waiting == WR_ALL_WAIT;
}

bool fixture_offer(struct lane_fixture *fixture, uint32_t samples)
{
    make_room(fixture, samples);
    for (uint32_t i = 0; i < samples; i++)
        fixture_append(fixture, 1, 0, NULL);
    return fixture_offer_appended(fixture, (struct wr_ticket){0});
}

bool fixture_offer_event(struct lane_fixture *fixture, uint32_t samples)
{
    fixture_append(fixture, samples, 0, NULL);
    return fixture_offer_appended(fixture, (struct wr_ticket){0});
}

bool fixture_offer_sync(struct lane_fixture *fixture, struct wr_ticket ticket)
{
    fixture_append(fixture, 1, 0, NULL);
    return fixture_offer_appended(fixture, ticket);
}

bool fixture_check(struct lane_fixture *fixture, int64_t *next_ns)
{
    int64_t ignored = WR_NEVER;
    enum wr_waiting waiting = wr_lane_check(fixture->lane, fixture->now_ns, next_ns ? next_ns : &ignored);
    fixture_stats(fixture);
    return waiting == WR_ALL_WAIT;
}

/* ---- The worker and its handler -------------------------------------------------------------- */

struct wr_lane_next_step fixture_step(struct lane_fixture *fixture)
{
    wr_lock_enter(&fixture->lane->lock);
    struct wr_lane_next_step step = wr_lane_next_decide(fixture->lane, fixture->now_ns);
    wr_lane_unlock(fixture->lane);
    fixture_stats(fixture);
    return step;
}

enum wr_lane_next_kind fixture_next(struct lane_fixture *fixture)
{
    return fixture_step(fixture).kind;
}

static size_t put_range(char *text, size_t room, size_t length, const struct wr_range *range)
{
    for (uint32_t i = 0; i < range->count && length < room; i++)
        length += (size_t)snprintf(text + length, room - length, "%s%.0f", length ? " " : "",
                                   range->segment->samples[range->first + i].value.f64);
    return length;
}

const char *fixture_flight(const struct lane_fixture *fixture)
{
    static char text[4000];
    text[0] = '\0';
    if (fixture->lane->ledger.flight.range.segment)
        put_range(text, sizeof text, 0, &fixture->lane->ledger.flight.range);
    return text;
}

const char *fixture_queue(const struct lane_fixture *fixture)
{
    static char text[4000];
    const struct wr_queue *queue = &fixture->lane->ledger.queue;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < queue->count; i++)
        length = put_range(text, sizeof text, length, wr_queue_at(queue, i));
    return text;
}

/* Releases the lock, which logs the messages. */
static void finish_call(struct lane_fixture *fixture)
{
    wr_lane_unlock(fixture->lane);
    fixture_stats(fixture);
}

void fixture_finish_open(struct lane_fixture *fixture, int code, const char *reason)
{
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    outcome.code = code;
    snprintf(outcome.reason, sizeof outcome.reason, "%s", reason ? reason : "");
    wr_lock_enter(&fixture->lane->lock);
    wr_outcome_apply_open(fixture->lane, &outcome, fixture->now_ns);
    finish_call(fixture);
}

static uint32_t count_omitted(const void *ctx, uint32_t samples)
{
    const uint32_t *omitted = ctx;
    return *omitted < samples ? *omitted : samples;
}

void fixture_finish_emit_with(struct lane_fixture *fixture, weir_outcome outcome, uint32_t omitted)
{
    struct wr_lane_omissions omissions = {count_omitted, &omitted};
    cr_assert(fixture->lane->ledger.flight.range.segment, "nothing is in flight");
    wr_lock_enter(&fixture->lane->lock);
    wr_outcome_apply_emit(fixture->lane, &outcome, omitted ? &omissions : NULL, fixture->now_ns);
    finish_call(fixture);
}

void fixture_finish_emit(struct lane_fixture *fixture, int code, uint32_t done, uint32_t rejected)
{
    weir_outcome outcome = {.size = sizeof outcome, .code = code, .done = done, .rejected = rejected};
    fixture_finish_emit_with(fixture, outcome, 0);
}

void fixture_finish_flush(struct lane_fixture *fixture, int code)
{
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    outcome.code = code;
    wr_lock_enter(&fixture->lane->lock);
    wr_outcome_apply_flush(fixture->lane, &outcome, fixture->lane->flush_wanted, fixture->now_ns);
    finish_call(fixture);
}

void fixture_finish_wake(struct lane_fixture *fixture, int why, int code)
{
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    outcome.code = code;
    wr_lock_enter(&fixture->lane->lock);
    if (why == WEIR_WAKE_TIMER)
        fixture->lane->wake_at_ns = 0;
    wr_outcome_apply_wake(fixture->lane, &outcome, why, fixture->now_ns);
    finish_call(fixture);
}

void fixture_close(struct lane_fixture *fixture)
{
    wr_lock_enter(&fixture->lane->lock);
    wr_outcome_apply_close(fixture->lane);
    finish_call(fixture);
}

uint32_t fixture_deliver_all(struct lane_fixture *fixture)
{
    uint32_t batches = 0;
    for (;;) {
        switch (fixture_next(fixture)) {
        case WR_LANE_NEXT_OPEN: fixture_finish_open(fixture, WEIR_OUTCOME_OK, NULL); break;
        case WR_LANE_NEXT_EMIT:
            fixture_finish_emit(fixture, WEIR_OUTCOME_OK, fixture->lane->ledger.flight.range.count, 0);
            batches++;
            break;
        case WR_LANE_NEXT_FLUSH: fixture_finish_flush(fixture, WEIR_OUTCOME_OK); break;
        case WR_LANE_NEXT_CLOSE: fixture_close(fixture); break;
        default: return batches;
        }
    }
}

/* ---- Tickets --------------------------------------------------------------------------------- */

int fixture_read_ticket(struct wr_ticket ticket)
{
    int result;
    return wr_ticket_wait(ticket, 0, &result) ? result : FIXTURE_PENDING;
}

struct wr_ticket fixture_take_ticket(struct wr_ticket_state *desk)
{
    struct wr_ticket ticket = wr_ticket_take(desk);
    wr_ticket_expect(ticket, 1);
    return ticket;
}
