#include "record.h"

#include <stdint.h>
#include <string.h>

#include "names.h"
#include "registry/family.h"
#include "registry/labels_walk.h"
#include "registry/stream.h"
#include "runtime/event.h"
#include "runtime/intake.h"
#include "runtime/runtime.h"

/* ---- Streams --------------------------------------------------------------------------------- */

const char *record_group(const struct record_defaults *defaults, const struct wr_parse_record *record)
{
    return record->group ? record->group : defaults->group;
}

weir_stream *record_stream(const struct record_defaults *defaults, const struct wr_parse_record *record)
{
    weir_label labels[2 * WR_PARSER_LABELS];
    size_t count = record->label_count;
    if (count)
        memcpy(labels, record->labels, count * sizeof *labels);
    for (size_t i = 0; i < defaults->label_count; i++)
        if (!wr_labels_find(record->labels, record->label_count, defaults->labels[i].key))
            labels[count++] = defaults->labels[i];
    return weir_get_stream_labeled(record_group(defaults, record), labels, count);
}

/* ---- Kinds ----------------------------------------------------------------------------------- */

static bool is_beyond_doubles(int64_t value)
{
    const int64_t last_double = INT64_C(1) << 53;
    return value > last_double || value < -last_double;
}

void record_settle_kinds(const char *group, weir_typed_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weir_typed_value *value = &values[i];
        if (value->number.kind == WEIR_KIND_DOUBLE)
            names_mark(group, value->name, NAMES_HAS_FRACTION);
        else if (!is_beyond_doubles(value->number.is.i64) || names_has(group, value->name, NAMES_HAS_FRACTION))
            *value = (weir_typed_value){value->name, WEIR_DOUBLE((double)value->number.is.i64)};
    }
}

/* ---- Adding ---------------------------------------------------------------------------------- */

size_t record_bytes(const struct wr_parse_record *record)
{
    return record->count * sizeof(weir_sample) + (record->metadata ? strlen(record->metadata) : 0);
}

void record_declare(weir_stream *stream, const struct wr_parse_record *record, const char *name)
{
    const weir_metric_spec spec = {.size = sizeof spec, .instrument = record->instrument};
    bool is_described = record->unit || record->help;
    if ((!record->instrument && !is_described) || names_has(stream->group->name, name, NAMES_IS_DECLARED))
        return;
    if (record->instrument)
        weir_declare(stream, name, &spec);
    if (is_described)
        weir_describe(stream, name, record->unit, record->help);
    names_mark(stream->group->name, name, NAMES_IS_DECLARED);
}

/* Whether the event was not accepted. The other errors are about its delivery, which the handlers' counts
 * show. */
static bool is_refusal(int result)
{
    switch (result) {
    case WEIR_ERR_ARGUMENT:
    case WEIR_ERR_NAME:
    case WEIR_ERR_MEMORY:
    case WEIR_ERR_LIMIT:
    case WEIR_ERR_CLOSED:
    case WEIR_ERR_BUSY:
    case WEIR_ERR_TOO_LARGE: return true;
    default: return false;
    }
}

static int add_event(weir_stream *stream, const struct wr_parse_record *record)
{
    static weir_typed_value values[WR_PARSER_VALUES];
    memcpy(values, record->values, record->count * sizeof *values);
    record_settle_kinds(stream->group->name, values, record->count);
    const struct wr_event event = {
        .values = values,
        .count = record->count,
        .time_ns = record->has_time ? &record->time_ns : NULL,
        .cumulative = record->cumulative,
        .metadata = record->metadata,
    };
    return wr_event_add(stream, &event);
}

static int change_gauge(weir_stream *stream, const weir_typed_value *value)
{
    double difference =
        value->number.kind == WEIR_KIND_INT ? (double)value->number.is.i64 : value->number.is.f64;
    return weir_metric_change(weir_get_gauge(stream, value->name), difference);
}

/* Whether a name is one of something else: as a source refuses such a record. */
static bool is_something_else(const weir_stream *stream, const struct wr_parse_record *record)
{
    struct wr_error error;
    if (!record->instrument || record->cumulative)
        return false;
    for (size_t i = 0; i < record->count; i++) {
        if (!wr_family_refuses(&wr_runtime_get()->registry, stream->group, record->values[i].name,
                               record->instrument, &error))
            continue;
        wr_intake_refuse(WEIR_REFUSED_ARGUMENT, record->count, error.text);
        return true;
    }
    return false;
}

const char *record_add(weir_stream *stream, const struct wr_parse_record *record)
{
    if (record->member)
        return "a set: its members are not counted here";
    if (stream->refusal || is_something_else(stream, record))
        return weir_last_error();
    for (size_t i = 0; i < record->count; i++)
        record_declare(stream, record, record->values[i].name);
    int result = record->is_change ? change_gauge(stream, record->values) : add_event(stream, record);
    return is_refusal(result) ? weir_last_error() : NULL;
}
