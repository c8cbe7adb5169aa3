#include "runtime/event.h"

#include <math.h>
#include <string.h>

#include "text/error.h"
#include "registry/name.h"
#include "producer/ring.h"
#include "producer/instrument.h"

static struct weir_metric *look_up(struct weir_stream *stream, const struct wr_event *event, size_t i)
{
    struct weir_metric *metric = event->metrics ? event->metrics[i] : NULL;
    uint16_t flags = event->cumulative ? WEIR_SAMPLE_CUMULATIVE : 0;
    return metric ? metric
                  : wr_intake_find(stream, event->values[i].name, flags, event->labels, event->label_count);
}

/* An event whose names are resolved. */
struct named_event {
    const struct wr_event *is;
    const struct weir_metric *first; /* of its first value */
    uint32_t length;                 /* of its metadata */
};

/* Why a value cannot be added to the level of its series, or NULL. */
static const char *check_change(const struct weir_metric *metric, uint8_t instrument, weir_number value)
{
    if (instrument != WEIR_GAUGE)
        return "a change of a level, but the name is declared as something else than a gauge";
    double level = 0;
    wr_instrument_read_level(metric, &level);
    return isfinite(level + wr_value_double(value)) ? NULL : WR_INSTRUMENT_NOT_FINITE;
}

/* Returns 0, or the error to return: a name is bad, or a value is not one of its instrument. */
static int check_values(struct weir_stream *stream, struct named_event *event)
{
    for (size_t i = event->is->count; i-- > 0;) {
        weir_number value = event->is->values[i].number;
        event->first = look_up(stream, event->is, i);
        uint8_t instrument = atomic_load_explicit(&event->first->instrument, memory_order_acquire);
        if (instrument == WR_INSTRUMENT_REFUSES)
            return wr_intake_refuse_named(event->first->stream, event->is->count);
        if (!wr_instrument_accepts(instrument, value))
            return wr_intake_refuse_value(event->first, value, event->is->count);
        const char *fault = event->is->changes ? check_change(event->first, instrument, value) : NULL;
        if (fault)
            return wr_intake_refuse(WEIR_REFUSED_ARGUMENT, event->is->count, fault);
    }
    return 0;
}

/* If another thread has made the change impossible meanwhile, the level stays. */
static void change_level(const struct wr_event *event, size_t i)
{
    double change = wr_value_double(event->values[i].number);
    event->changes[i].number.kind = WEIR_KIND_DOUBLE;
    wr_instrument_change_level(wr_instrument_level(event->metrics[i]), change,
                               &event->changes[i].number.is.f64);
}

/* Records the levels of gauges. Only when the event can no longer be refused. */
static void set_levels(struct weir_stream *stream, const struct named_event *event)
{
    for (size_t i = 0; event->is->changes && i < event->is->count; i++)
        change_level(event->is, i);
    if (event->is->changes)
        return;
    for (size_t i = 0; i < event->is->count; i++) {
        const struct weir_metric *metric = i ? look_up(stream, event->is, i) : event->first;
        if (atomic_load_explicit(&metric->instrument, memory_order_acquire) == WEIR_GAUGE)
            wr_instrument_set_level(metric, wr_value_double(event->is->values[i].number));
    }
}

static void write_event(struct wr_intake_call *call, struct weir_stream *stream,
                        const struct named_event *event)
{
    struct wr_ring *ring = &call->producer->ring;
    uint64_t position = wr_ring_position(ring);
    size_t count = event->is->count;
    int64_t time_ns = event->is->time_ns ? *event->is->time_ns : wr_intake_time(call);
    for (size_t i = 0; i < count; i++) {
        const struct weir_metric *metric = i ? look_up(stream, event->is, i) : event->first;
        weir_number value = event->is->values[i].number;
        *wr_ring_slot(ring, position + i) = (weir_sample){
            .series = metric->series,
            .kind = (uint16_t)value.kind,
            .flags = (uint16_t)(metric->flags | call->flags | (event->length ? WR_RING_TEXT : 0) |
                                (i + 1 < count ? WEIR_SAMPLE_MORE : 0)),
            .time_ns = time_ns,
            .value.i64 = value.is.i64,
            .note = event->length,
        };
    }
    wr_ring_put_text(ring, position + count, event->is->metadata, event->length);
}

static int add_event(struct weir_stream *stream, const struct named_event *event)
{
    struct wr_intake_call call = {.group = stream->group,
                                  .samples = event->is->count,
                                  .slots = event->is->count + wr_ring_text_slots(event->length),
                                  .never_waits = event->is->never_waits};
    int error;
    if (!wr_intake_enter(&call, &error))
        return error;
    error = wr_intake_prepare(&call);
    if (!error)
        set_levels(stream, event);
    if (error || call.unrouted) {
        wr_intake_leave(&call);
        return error;
    }
    write_event(&call, stream, event);
    return wr_intake_finish(&call, wr_ring_position(&call.producer->ring) + call.slots);
}

static int add_checked(struct weir_stream *stream, const struct wr_event *event)
{
    enum { LONGEST = (WR_INTAKE_LARGEST - 1) * sizeof(weir_sample) };
    struct named_event named = {event, NULL, 0};
    int refused = check_values(stream, &named);
    if (refused)
        return refused;
    size_t length = event->metadata ? strnlen(event->metadata, LONGEST + 1) : 0;
    if (length > LONGEST)
        return wr_intake_refuse(WEIR_REFUSED_TOO_LARGE, event->count,
                                "the metadata is longer than 32736 bytes");
    struct wr_error error;
    if (length && !wr_name_check_text(event->metadata, LONGEST, "metadata", &error))
        return wr_intake_refuse(WEIR_REFUSED_NAME, event->count, error.text);
    named.length = (uint32_t)length;
    return add_event(stream, &named);
}

int wr_event_add(struct weir_stream *stream, const struct wr_event *event)
{
    if (!event->label_count)
        return add_checked(stream, event);
    struct wr_reading reading = wr_intake_begin_reading();
    int result = add_checked(stream, event);
    wr_intake_end_reading(&reading);
    return result;
}

int wr_event_add_sample(struct weir_stream *stream, const weir_sample_spec *spec)
{
    const weir_typed_value value = {spec->name, spec->kind == WEIR_KIND_INT ? WEIR_INT(spec->integer)
                                                                            : WEIR_DOUBLE(spec->value)};
    const struct wr_event event = {
        .values = &value,
        .count = 1,
        .labels = spec->labels,
        .label_count = spec->label_count,
        .time_ns = spec->time_ns ? &spec->time_ns : NULL,
        .cumulative = spec->cumulative,
        .metadata = spec->metadata,
    };
    return wr_event_add(stream, &event);
}
