#include "runtime/event.h"

#include <string.h>

#include "text/error.h"
#include "registry/name.h"
#include "producer/ring.h"

/* Writes the text into the slots behind the sample, slot by slot, since it may wrap around the ring's end. */
static void write_text(struct wr_ring *ring, uint64_t position, const char *text, uint32_t length)
{
    for (uint32_t done = 0; done < length; position++) {
        uint32_t part = length - done < sizeof(weir_sample) ? length - done : (uint32_t)sizeof(weir_sample);
        memcpy(wr_ring_slot(ring, position), text + done, part);
        done += part;
    }
}

static struct weir_metric *look_up(struct weir_stream *stream, const struct wr_event *event, size_t i)
{
    return wr_intake_find(stream, event->values[i].name, event->cumulative ? WEIR_SAMPLE_CUMULATIVE : 0);
}

/* An event whose names are resolved. */
struct named_event {
    const struct wr_event *is;
    const struct weir_metric *first; /* of its first value */
    uint32_t length;                 /* of its metadata */
};

/* Returns false if a name is bad; event->first is the refusing series then. */
static bool check_names(struct weir_stream *stream, struct named_event *event)
{
    for (size_t i = event->is->count; i-- > 0;) {
        event->first = look_up(stream, event->is, i);
        if (event->first->stream->refusal)
            return false;
    }
    return true;
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
        *wr_ring_slot(ring, position + i) = (weir_sample){
            .series = metric->series,
            .kind = event->is->values[i].value.kind,
            .flags = (uint16_t)(metric->flags | call->flags | (event->length ? WR_RING_TEXT : 0) |
                                (i + 1 < count ? WEIR_SAMPLE_MORE : 0)),
            .time_ns = time_ns,
            .value.i64 = event->is->values[i].value.is.i64,
            .note = event->length,
        };
    }
    write_text(ring, position + count, event->is->metadata, event->length);
}

static int add_event(struct weir_stream *stream, const struct named_event *event)
{
    struct wr_intake_call call = {.group = stream->group,
                                  .samples = event->is->count,
                                  .slots = event->is->count + wr_ring_text_slots(event->length)};
    int error;
    if (!wr_intake_enter(&call, &error))
        return error;
    error = wr_intake_prepare(&call);
    if (error || call.unrouted) {
        wr_intake_leave(&call);
        return error;
    }
    write_event(&call, stream, event);
    return wr_intake_finish(&call, wr_ring_position(&call.producer->ring) + call.slots);
}

int wr_event_add(struct weir_stream *stream, const struct wr_event *event)
{
    enum { LONGEST = (WR_INTAKE_LARGEST - 1) * sizeof(weir_sample) };
    struct named_event named = {event, NULL, 0};
    if (!check_names(stream, &named))
        return wr_intake_refuse_named(named.first->stream, event->count);
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

int wr_event_add_sample(struct weir_stream *stream, const weir_sample_spec *spec)
{
    const struct wr_event_value named = {spec->name, {WEIR_KIND_DOUBLE, {.f64 = spec->value}}};
    const struct wr_event event = {
        .values = &named,
        .count = 1,
        .time_ns = spec->time_ns ? &spec->time_ns : NULL,
        .cumulative = spec->cumulative,
        .metadata = spec->metadata,
    };
    return wr_event_add(stream, &event);
}
