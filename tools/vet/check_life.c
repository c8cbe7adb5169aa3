/* Checks of the order of calls, and of the outcomes of emit, flush and wake. */

#include <stdio.h>
#include <string.h>

#include "descriptors.h"
#include "text/error.h"
#include "format/format.h"
#include "probe.h"
#include "subject.h"

/* ---- Life cycles ----------------------------------------------------------------------------- */

static void open_and_close(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    vet_probe_close(probe);
    vet_probe_must_open(probe);
    vet_probe_flush(probe, 100);
    vet_probe_close(probe);
}

static void live_twice(struct vet_probe *probe)
{
    vet_probe_live(probe);
    vet_probe_live(probe);
}

void vet_check_life(const struct vet_subject *subject)
{
    struct vet_probe probe;
    vet_probe_create(&probe, subject, NULL);
    vet_probe_destroy(&probe);
    vet_probe_run(subject, open_and_close);
    vet_probe_run(subject, live_twice);
    vet_pass("created and destroyed; opened and closed without a batch; delivering, closed, opened again, "
             "delivering");
}

/* ---- Batches --------------------------------------------------------------------------------- */

static uint32_t largest_delivered;

static void deliver_sizes(struct vet_probe *probe)
{
    static const uint32_t counts[] = {1, 2, 7, 100, 1000, 5000};
    weir_outcome outcome;
    vet_probe_must_open(probe);
    const weir_batch *none = vet_batches_make(&(struct vet_recipe){.count = 0, .kinds = probe->type->kinds});
    vet_probe_emit(probe, none, &outcome);
    vet_batches_end(none);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && (i < 3 || vet_has_time()); i++) {
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = counts[i], .event = 1, .seed = i});
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = counts[i], .seed = i});
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = counts[i], .event = counts[i], .seed = i});
        largest_delivered = counts[i];
    }
    vet_probe_close(probe);
}

void vet_check_batches(const struct vet_subject *subject)
{
    vet_probe_run(subject, deliver_sizes);
    vet_pass("0, 1 and up to %u samples%s, in events of 1, of a few, and of all; each outcome is valid",
             largest_delivered, largest_delivered < 5000 ? ", because it is slow" : "");
}

static void deliver_flavour(struct vet_probe *probe, enum vet_flavour flavour)
{
    vet_probe_must_open(probe);
    for (uint64_t seed = 0; seed < 10 && (seed < 2 || vet_has_time()); seed++)
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 200, .flavour = flavour, .seed = seed});
    vet_probe_flush(probe, 1000);
    vet_probe_close(probe);
}

static void deliver_names(struct vet_probe *probe)
{
    deliver_flavour(probe, VET_NAMES);
}

static void deliver_series(struct vet_probe *probe)
{
    deliver_flavour(probe, VET_SERIES);
}

/* Handlers keep things by series, in arrays that are too small or grow with the largest id. A type without
 * formats gets larger ids: weir's own encoders have such arrays. */
void vet_check_series(const struct vet_subject *subject)
{
    uint32_t largest = vet_subject_type(subject)->is.formats ? 1000000 : 20000000;
    vet_batches_spread(largest);
    vet_probe_run(subject, deliver_series);
    vet_pass("series ids up to %u, with gaps", largest);
}

static void deliver_numbers(struct vet_probe *probe)
{
    deliver_flavour(probe, VET_NUMBERS);
}

void vet_check_names(const struct vet_subject *subject)
{
    vet_probe_run(subject, deliver_names);
    vet_pass(
        "names, labels, units and metadata with quotes, blanks and UTF-8; 64 labels, values of 1023 bytes, "
        "long metadata");
}

void vet_check_numbers(const struct vet_subject *subject)
{
    vet_probe_run(subject, deliver_numbers);
    vet_pass("NaN, infinities, extremes, times before 1970 and in the far future");
}

/* ---- Formats --------------------------------------------------------------------------------- */

static bool has_own_format(const struct vet_subject *subject)
{
    return subject->options && strstr(subject->options, "\"format\"");
}

/* Returns false for a format that has required options; it is skipped. */
static bool try_format(const struct vet_subject *subject, const struct wr_format *format)
{
    struct wr_error error = {0};
    struct vet_probe probe;
    struct wr_instance *instance = vet_subject_instance(subject, format->name, &error);
    wr_instance_free(instance);
    if (!instance)
        return false;
    vet_probe_create(&probe, subject, format->name);
    vet_probe_on_worker(vet_probe_live, &probe);
    vet_probe_destroy(&probe);
    return true;
}

void vet_check_formats(const struct vet_subject *subject)
{
    char names[200] = "";
    const struct wr_format *format;
    uint32_t takes = vet_subject_type(subject)->is.formats;
    if (!takes)
        vet_pass("it has none");
    if (has_own_format(subject))
        vet_pass("only the one in --options");
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        if (format->shape & takes && try_format(subject, format))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "",
                     format->name);
    vet_pass("%s", names);
}

/* ---- Flush, wake, stop ----------------------------------------------------------------------- */

/* On a busy machine a process may be delayed; a call that ignores its timeout takes much longer, and does so
 * each time. */
enum { SLACK_MS = 2000, TRIES = 3 };

static bool is_late(int64_t timeout_ms, int64_t elapsed_ms)
{
    return timeout_ms >= 0 && elapsed_ms > timeout_ms + SLACK_MS;
}

static int64_t time_flush(struct vet_probe *probe, int64_t timeout_ms)
{
    int64_t begin_ms = vet_now_ms();
    if (vet_probe_flush(probe, timeout_ms) == WEIR_OUTCOME_DROP)
        vet_fail("flush returns DROP; there is no batch to drop");
    return vet_now_ms() - begin_ms;
}

/* Flushes a batch, and then nothing, until both are within the timeout. */
static void flush_within(struct vet_probe *probe, int64_t timeout_ms)
{
    int64_t elapsed_ms = 0;
    for (uint64_t i = 0; i < TRIES; i++) {
        if (!probe->open)
            vet_probe_must_open(probe);
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 50, .seed = i});
        elapsed_ms = time_flush(probe, timeout_ms);
        int64_t empty_ms = time_flush(probe, timeout_ms);
        if (empty_ms > elapsed_ms)
            elapsed_ms = empty_ms;
        if (!is_late(timeout_ms, elapsed_ms))
            return;
    }
    vet_fail("flush with a timeout of %lld ms returns after %lld ms", (long long)timeout_ms,
             (long long)elapsed_ms);
}

static void flush_often(struct vet_probe *probe)
{
    static const int64_t timeouts_ms[] = {0, 1, 100, -1};
    vet_probe_must_open(probe);
    time_flush(probe, 0);
    for (size_t i = 0; i < sizeof timeouts_ms / sizeof *timeouts_ms; i++)
        flush_within(probe, timeouts_ms[i]);
    vet_probe_close(probe);
}

void vet_check_flush(const struct vet_subject *subject)
{
    if (!vet_subject_type(subject)->is.flush)
        vet_pass("it has none: emit does not buffer");
    vet_probe_run(subject, flush_often);
    vet_pass("it returns within its timeout, also of 0 ms, and with nothing to flush");
}

static void wake_often(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    for (int i = 0; i < 4; i++) {
        vet_probe_wake(probe, i % 2 ? WEIR_WAKE_RELOAD : WEIR_WAKE_TIMER);
        if (!probe->open)
            vet_probe_must_open(probe);
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 10});
    }
    vet_probe_close(probe);
}

void vet_check_wake(const struct vet_subject *subject)
{
    if (!vet_subject_type(subject)->is.wake)
        vet_pass("it has none, and requests no timer");
    vet_probe_run(subject, wake_often);
    vet_pass("timers and reloads, before and after batches");
}

static int64_t time_probe(vet_probe_call *call, void *ctx, int64_t timeout_ms)
{
    int64_t begin_ms = vet_now_ms();
    call(ctx, timeout_ms);
    return vet_now_ms() - begin_ms;
}

void vet_check_probe_within(vet_probe_call *call, void *ctx, int64_t timeout_ms)
{
    int descriptors = vet_descriptors_count();
    int64_t elapsed_ms = time_probe(call, ctx, timeout_ms);
    for (int i = 1; i < TRIES && is_late(timeout_ms, elapsed_ms); i++)
        elapsed_ms = time_probe(call, ctx, timeout_ms);
    if (is_late(timeout_ms, elapsed_ms))
        vet_fail("probe with a timeout of %lld ms returns after %lld ms", (long long)timeout_ms,
                 (long long)elapsed_ms);
    vet_descriptors_check(descriptors, 3, "probe leaves a descriptor open");
}

static void probe_once(void *ctx, int64_t timeout_ms)
{
    vet_probe_probe(ctx, timeout_ms);
}

static void probe_and_live(struct vet_probe *probe)
{
    vet_check_probe_within(probe_once, probe, 2000);
    vet_check_probe_within(probe_once, probe, 0);
    vet_probe_live(probe);
    vet_check_probe_within(probe_once, probe, 2000);
}

void vet_check_probe(const struct vet_subject *subject)
{
    if (!vet_subject_type(subject)->is.probe)
        vet_pass("it has none: open and close are called instead");
    vet_probe_run(subject, probe_and_live);
    vet_pass("it returns within its timeout, and leaves no descriptor open");
}

/* With a stop requested from the start, each waiting call must return at once. */
static void stop_at_once(struct vet_probe *probe)
{
    atomic_store(&vet_page->stop_deadline_ms, vet_now_ms() + vet_page->deadline_ms / 2);
    atomic_store(&vet_page->stop, 1);
    if (!vet_probe_open(probe) && !vet_probe_open(probe))
        vet_pass("open returns when a stop is requested: %.200s", probe->reason);
    vet_probe_deliver(probe, (struct vet_recipe){.count = 1000});
    vet_probe_flush(probe, 100);
    vet_probe_close(probe);
}

void vet_check_stop(const struct vet_subject *subject)
{
    vet_probe_run(subject, stop_at_once);
    vet_pass("with a stop requested, open, emit, flush and close return");
}
