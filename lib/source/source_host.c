#include "source/source_host.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler/host_api.h"
#include "handler/numbers.h"
#include "handler/upstream.h"
#include "os/clock.h"
#include "producer/instrument.h"
#include "registry/family.h"
#include "registry/labels_walk.h"
#include "registry/reuse.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "runtime/event.h"
#include "runtime/intake.h"
#include "runtime/runtime.h"
#include "source/source_blocks.h"
#include "source/source_relaying.h"
#include "source/source_text.h"
#include "status/snapshot.h"
#include "status/status_json.h"
#include "text/array.h"
#include "text/buffer.h"
#include "text/error.h"

/* ---- Messages -------------------------------------------------------------------------------- */

static void host_log(const weir_host *host, int level, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wr_log_write(&wr_source_from_host(host)->runtime->log, level, "%s: %s", host->name, text);
}

static void host_refuse(const weir_host *host, const char *option, const char *format, ...)
{
    const struct wr_source *source = wr_source_from_host(host);
    va_list arguments;
    va_start(arguments, format);
    wr_host_api_refuse(host, source->refusal, source->node, option, format, arguments);
    va_end(arguments);
}

void wr_source_host_refuse(struct wr_source *source, enum wr_source_fault kind, uint64_t count,
                           const char *format, ...)
{
    char text[WR_ERROR_ROOM];
    atomic_fetch_add_explicit(kind == WR_SOURCE_FAULT_LINE ? &source->bad_lines : &source->refused, count,
                              memory_order_relaxed);
    bool is_asked = source->fault && !*source->fault;
    if (source->logged[kind] && !is_asked)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (is_asked)
        memcpy(source->fault, text, sizeof text);
    if (source->logged[kind])
        return;
    source->logged[kind] = true;
    wr_log_write(&source->runtime->log, WEIR_LOG_WARNING, "%s: %s; further ones are only counted",
                 source->host_table.name, text);
}

/* ---- Counters -------------------------------------------------------------------------------- */

/* Caller holds the lock. NULL: the type has as many as it may have. */
static _Atomic uint64_t *find_counter(struct wr_source *source, const char *name, bool is_core)
{
    uint32_t count = atomic_load_explicit(&source->counter_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        if (strncmp(source->counters[i].name, name, WR_SOURCE_COUNTER_ROOM - 1) == 0)
            return &source->counters[i].value;
    uint32_t *made = is_core ? &source->core_counters : &source->type_counters;
    if (*made == (is_core ? WR_SOURCE_CORE_COUNTERS : WR_SOURCE_TYPE_COUNTERS))
        return NULL;
    ++*made;
    snprintf(source->counters[count].name, WR_SOURCE_COUNTER_ROOM, "%s", name);
    atomic_store(&source->counter_count, count + 1); /* after the name */
    return &source->counters[count].value;
}

static void add_to_counter(struct wr_source *source, const char *name, uint64_t n, bool is_core)
{
    wr_lock_enter(&source->counters_lock);
    _Atomic uint64_t *value = find_counter(source, name, is_core);
    if (value)
        atomic_fetch_add_explicit(value, n, memory_order_relaxed);
    wr_lock_leave(&source->counters_lock);
}

static void host_count(const weir_host *host, const char *name, uint64_t n)
{
    add_to_counter(wr_source_from_host(host), name, n, false);
}

void wr_source_host_count(struct wr_source *source, enum wr_source_count what, uint64_t n)
{
    static const char *const names[WR_SOURCE_CORE_COUNTERS] = {
        [WR_SOURCE_COUNT_WAITS] = "waits",
        [WR_SOURCE_COUNT_REPEATS] = "repeats_left_out",
        [WR_SOURCE_COUNT_ORIGINS] = "origins_forgotten",
        [WR_SOURCE_COUNT_MEMBERS] = "set_members",
        [WR_SOURCE_COUNT_EXPIRED] = "series_expired",
    };
    add_to_counter(source, names[what], n, true);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static int to_ms(int64_t timeout_ns)
{
    int64_t ms = timeout_ns == WR_NEVER ? -1 : (timeout_ns + WR_NS_PER_MS - 1) / WR_NS_PER_MS;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* How long to wait, if not to the end of a wait: not at all if wake-ups may have been lost, and not for ever
 * if no descriptor is left to be woken by. */
static int limit_by_wake(struct wr_source *source, int limit_ms)
{
    enum { STEP_MS = 100 };
    if (wr_wake_pair_renew(&source->wake))
        return 0;
    return source->wake.read.fd < 0 && (limit_ms < 0 || limit_ms > STEP_MS) ? STEP_MS : limit_ms;
}

bool wr_source_host_pause(struct wr_source *source, int64_t deadline_ns)
{
    for (;;) {
        int64_t left_ns = deadline_ns == WR_NEVER ? WR_NEVER : deadline_ns - wr_clock_monotonic_ns();
        int limit_ms = limit_by_wake(source, to_ms(left_ns));
        struct pollfd wake = {source->wake.read.fd, POLLIN, 0};
        if (atomic_load(&source->stopping))
            return false;
        if (left_ns <= 0 || (source->is_backing_off && atomic_load(&source->hurried)))
            return true;
        if (poll(&wake, 1, limit_ms) > 0)
            wr_wake_pair_empty(&source->wake);
    }
}

static bool host_wait(const weir_host *host, int64_t ms)
{
    struct wr_source *source = wr_source_from_host(host);
    if (source->refusal) /* in create */
        return false;
    return wr_source_host_pause(source, ms < 0 ? 0 : wr_clock_deadline_ns(ms));
}

static bool host_stopping(const weir_host *host)
{
    return atomic_load(&wr_source_from_host(host)->stopping);
}

static void host_wake_in(const weir_host *host, int64_t delay_ms)
{
    (void)host; /* sources have no wake */
    (void)delay_ms;
}

/* Not beyond a time. due_ns: monotonic; 0: none. */
static int64_t limit_by(int64_t due_ns, int64_t limit_ms)
{
    if (!due_ns)
        return limit_ms;
    int64_t left_ns = due_ns - wr_clock_monotonic_ns();
    int left_ms = left_ns > 0 ? to_ms(left_ns) : 0;
    return limit_ms < 0 || limit_ms > left_ms ? left_ms : limit_ms;
}

/* An expiry has so many periods: a series ends between it and a period more without values. */
enum { EXPIRY_PERIODS = 8 };

/* Ends the series that had no values for the expiry. */
static void tend_expiry(struct wr_source *source)
{
    int64_t now_ns = source->options.expiry_ns ? wr_clock_monotonic_ns() : 0;
    if (now_ns < source->expiry_due_ns || !source->options.expiry_ns)
        return;
    uint32_t count,
        *ids = source->expiry_due_ns ? wr_source_names_expire(&source->names, EXPIRY_PERIODS, &count) : NULL;
    source->expiry_due_ns = now_ns + source->options.expiry_ns / EXPIRY_PERIODS;
    if (!ids)
        return;
    wr_engine_end_series(wr_runtime_engine(source->runtime), ids, count);
    for (uint32_t i = 0; i < count; i++) /* not before: the ids would be those of others */
        wr_reuse_let_go(wr_registry_series(&source->runtime->registry, ids[i])->stream);
    wr_source_host_count(source, WR_SOURCE_COUNT_EXPIRED, count);
    free(ids);
}

/* What is due during waits. Returns how long the next one may take: not beyond the end of the interval of
 * sets, after which room ends the wait, nor beyond the next period of the expiry. */
static int64_t tend(struct wr_source *source, int64_t limit_ms)
{
    const struct wr_source_sets *sets = &source->sets;
    if (source->is_failing && wr_clock_monotonic_ns() >= source->works_at_ns)
        wr_source_works(source);
    tend_expiry(source);
    limit_ms = limit_by(sets->is_reporting ? 0 : sets->due_ns, limit_ms);
    limit_ms = limit_by(source->expiry_due_ns, limit_ms);
    return limit_by(source->is_failing ? source->works_at_ns : 0, limit_ms);
}

enum { FDS_MAX = 1024 };

static void refuse_wait(struct wr_source *source, size_t count)
{
    if (source->logged[WR_SOURCE_FAULT_WAIT])
        return;
    source->logged[WR_SOURCE_FAULT_WAIT] = true;
    wr_log_write(&source->runtime->log, WEIR_LOG_ERROR,
                 "%s: the source type is at fault: it waits for %zu descriptors, and only the first %d are "
                 "looked at; keep more in an epoll descriptor",
                 source->host_table.name, count, FDS_MAX);
}

/* The sockets are emptied before the flags are read that those set first who write to them. */
static unsigned wait_for(const weir_host *host, struct pollfd *fds, size_t count, int64_t timeout_ms)
{
    struct wr_source *source = wr_source_from_host(host);
    struct pollfd all[FDS_MAX + 1]; /* not zeroed: kilobytes */
    unsigned result = 0;
    int64_t limit_ms = tend(source, timeout_ms > INT32_MAX ? INT32_MAX : timeout_ms);
    int wait_ms = limit_by_wake(source, limit_ms < 0 ? -1 : (int)limit_ms);
    all[0] = (struct pollfd){source->wake.read.fd, POLLIN, 0};
    if (count > FDS_MAX) {
        refuse_wait(source, count);
        for (size_t i = FDS_MAX; i < count; i++)
            fds[i].revents = 0;
        count = FDS_MAX;
    }
    if (count)
        memcpy(&all[1], fds, count * sizeof *fds);
    bool ends_now = atomic_load(&source->stopping) || atomic_load(&source->reload_wanted);
    int ready = poll(all, count + 1, ends_now ? 0 : wait_ms);
    for (size_t i = 0; i < count; i++) {
        fds[i].revents = ready > 0 ? all[i + 1].revents : 0;
        result |= fds[i].revents ? WEIR_WAIT_READY : 0u;
    }
    if (ready > 0 && all[0].revents)
        wr_wake_pair_empty(&source->wake);
    wr_source_sets_tend(source, false);
    if (source->is_full && !atomic_load(&source->room.wanted)) {
        source->is_full = false;
        result |= WEIR_WAIT_ROOM;
    }
    if (atomic_exchange(&source->reload_wanted, false))
        result |= WEIR_WAIT_RELOAD;
    return result | (atomic_load(&source->stopping) ? WEIR_WAIT_STOP : 0u);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* Returns what is wrong with a record that a source type has made, or NULL. What the texts have to be is
 * checked where they are looked up. */
static const char *find_fault(const weir_record *record)
{
    if (!record->count)
        return "a record without values";
    if (record->count > WR_INTAKE_LARGEST)
        return "a record with more than 1,024 values";
    if (!record->values || (record->label_count && !record->labels))
        return "a record whose values or labels are NULL";
    for (size_t i = 0; i < record->label_count; i++)
        if (!record->labels[i].key || !record->labels[i].value)
            return "a label whose key or value is NULL";
    for (size_t i = 0; i < record->count; i++) {
        if (!record->values[i].name)
            return "a value whose name is NULL";
        if (record->values[i].number.kind != WEIR_KIND_DOUBLE && record->values[i].number.kind != WEIR_KIND_INT)
            return "a value whose kind is neither WEIR_KIND_DOUBLE nor WEIR_KIND_INT";
    }
    if (record->instrument < WEIR_VALUE || record->instrument > WEIR_HISTOGRAM)
        return "a record whose instrument is not an enum weir_instrument";
    if (!(record->sample_rate >= 0 && record->sample_rate <= 1)) /* nor is NaN */
        return "a record whose sample_rate is not from 0 to 1";
    if (record->metadata && record->count != 1)
        return "a record with metadata and more than one value";
    return NULL;
}

bool wr_source_host_read(struct wr_source *source, const weir_record *record, weir_record *whole)
{
    const char *fault = "a record that is NULL, or whose size is not set";
    *whole = (weir_record){.count = 1}; /* at least: it cannot be read */
    if (record && WEIR_HAS(record, count)) {
        *whole = (weir_record){0};
        memcpy(whole, record, record->size < sizeof *whole ? record->size : sizeof *whole);
        fault = find_fault(whole);
    }
    if (fault)
        wr_source_host_refuse(source, WR_SOURCE_FAULT_VALUE, whole->count, "the source type is at fault: %s",
                              fault);
    return !fault;
}

const char *wr_source_host_put_group(struct wr_buffer *out, const struct wr_source *source, const char *group)
{
    const struct wr_source_options *options = &source->options;
    if (!group)
        group = options->group ? options->group : source->host_table.name;
    if (options->group_prefix)
        wr_buffer_put_format(out, "%s.", options->group_prefix);
    if (source->scope && source->scope->group_prefix)
        wr_buffer_put_format(out, "%s.", source->scope->group_prefix);
    wr_buffer_put_text(out, group);
    return wr_buffer_text(out);
}

static bool set_group(struct wr_source *source, const char *group)
{
    wr_buffer_clear(&source->group);
    return wr_source_host_put_group(&source->group, source, group);
}

/* Those of the source, the text's others, and the record's others. Sets *count. Returns false if out of memory.
 */
static bool merge_labels(struct wr_source *source, const weir_record *record, size_t *count)
{
    const weir_map *own = &source->options.labels;
    const weir_text_options none = {0}, *scope = source->scope ? source->scope : &none;
    uint32_t most = (uint32_t)(own->count + scope->label_count + record->label_count);
    if (!WR_ARRAY_HAS_ROOM(&source->labels, &source->label_room, most))
        return false;
    weir_label *labels = source->labels;
    *count = 0;
    for (size_t i = 0; i < own->count; i++)
        labels[(*count)++] = own->items[i];
    for (size_t i = 0; i < scope->label_count; i++)
        if (!wr_labels_find(own->items, own->count, scope->labels[i].key))
            labels[(*count)++] = scope->labels[i];
    size_t given = *count; /* nobody overrides these */
    for (size_t i = 0; i < record->label_count; i++)
        if (!wr_labels_find(labels, given, record->labels[i].key))
            labels[(*count)++] = record->labels[i];
    /* else a series has a key for each order of the sender's, and each counts for series_limit */
    wr_stream_sort_labels(labels, *count);
    return true;
}

int wr_source_host_refuse_values(struct wr_source *source, uint64_t count, enum weir_refusal why,
                                 const char *text)
{
    enum wr_source_fault kind = why == WEIR_REFUSED_LIMIT ? WR_SOURCE_FAULT_LIMIT : WR_SOURCE_FAULT_VALUE;
    wr_intake_refuse(why, count, text);
    wr_source_host_refuse(source, kind, count, "%s", text);
    return WEIR_ADD_REFUSED;
}

/* Running totals are not refused: they are series of their own. */
static bool is_refused(struct wr_source *source, const struct wr_group *group, const weir_record *record,
                       const char *name, struct wr_error *error)
{
    return record->instrument != WEIR_VALUE && !(record->flags & WEIR_RECORD_CUMULATIVE) &&
           wr_family_refuses(&source->runtime->registry, group, name, record->instrument, error);
}

static void describe(struct wr_source *source, struct weir_stream *stream, const weir_record *record,
                     const char *name)
{
    struct wr_registry *registry = &source->runtime->registry;
    struct wr_error unused;
    const weir_metric_spec spec = {
        .size = sizeof spec, .instrument = record->instrument, .unit = record->unit, .help = record->help};
    if (record->instrument != WEIR_VALUE)
        wr_family_declare(registry, stream, name, &spec, &unused);
    else if (record->unit || record->help)
        wr_family_describe(registry, stream, name, record->unit, record->help, &unused);
}

/* As series_limit is reached. What is not going to be logged names no label: that takes a look at all series.
 */
static void set_limit_error(const struct wr_source *source, const char *name, struct wr_error *error)
{
    uint32_t values = 0;
    char widest[WR_ERROR_ROOM] = "";
    const char *key =
        source->logged[WR_SOURCE_FAULT_LIMIT] ? NULL : wr_source_names_widest(&source->names, &values);
    if (key)
        snprintf(widest, sizeof widest, "; of their labels, \"%s\" has the most values: %u", key, values);
    wr_error_set(error, WEIR_ERR_LIMIT,
                 "the series \"%s\" of the group \"%s\" is one more than series_limit allows (%u)%s", name,
                 source->group.data, source->names.count, widest);
}

/* Makes the series of a name that is new to the source. Returns NULL with *why and the error's text set. */
static struct weir_metric *learn(struct wr_source *source, const weir_record *record, size_t label_count,
                                 const char *name, enum weir_refusal *why, struct wr_error *error)
{
    struct wr_registry *registry = &source->runtime->registry;
    const char *group = source->group.data;
    uint16_t flags = record->flags & WEIR_RECORD_CUMULATIVE ? WEIR_SAMPLE_CUMULATIVE : 0;
    error->code = 0;
    if (source->names.count >= source->options.series_limit) {
        *why = WEIR_REFUSED_LIMIT;
        set_limit_error(source, name, error);
        return NULL;
    }
    uint64_t *left = source->scope ? source->scope->series_left : NULL;
    if (left && !*left) {
        *why = WEIR_REFUSED_LIMIT;
        wr_error_set(error, WEIR_ERR_LIMIT,
                     "the series \"%s\" of the group \"%s\" is one more than max_series allows this sender",
                     name, group);
        return NULL;
    }
    const struct wr_stream_key key = {NULL, source->labels, label_count,
                                      !(source->type->is.flags & WEIR_SOURCE_TYPE_MEASURES), name};
    wr_reuse_begin_reading(registry); /* until the stream is held */
    struct weir_stream *stream = wr_stream_get_for(registry, group, &key, error);
    if (!stream->refusal)
        wr_source_marks_note_group(&source->marks, wr_runtime_engine(source->runtime), stream->group);
    bool can_take = !stream->refusal && !is_refused(source, stream->group, record, name, error);
    if (can_take)
        describe(source, stream, record, name);
    struct weir_metric *metric = can_take ? wr_series_get_living(registry, stream, name, flags, error) : NULL;
    bool refuses = !metric || atomic_load(&metric->instrument) == WR_INSTRUMENT_REFUSES;
    bool is_added = !refuses && wr_source_names_add(&source->names, metric, left, source->is_resolving);
    if (is_added)
        wr_reuse_hold(metric->stream);
    wr_reuse_end_reading(registry);
    if (is_added) {
        wr_series_begin(registry, metric);
        wr_engine_log_overflow(wr_runtime_engine(source->runtime));
        if (left)
            (*left)--;
        return metric;
    }
    if (!error->code)
        wr_error_no_memory(error, NULL);
    *why = wr_intake_refusal_of(error->code);
    return NULL;
}

static bool reserve_values(struct wr_source *source, size_t count)
{
    return WR_ARRAY_HAS_ROOM(&source->metrics, &source->metric_room, (uint32_t)count) &&
           WR_ARRAY_HAS_ROOM(&source->values, &source->value_room, (uint32_t)count);
}

static double as_double(const weir_typed_value *value)
{
    return value->number.kind == WEIR_KIND_INT ? (double)value->number.is.i64 : value->number.is.f64;
}

/* If only a part of the increments was sent, each counts for several. */
static weir_typed_value scale(const weir_record *record, const weir_typed_value *value)
{
    bool is_sampled = record->sample_rate > 0 && record->sample_rate < 1;
    if (!is_sampled || record->instrument != WEIR_COUNTER)
        return *value;
    return (weir_typed_value){value->name, WEIR_DOUBLE(as_double(value) / record->sample_rate)};
}

static bool is_declared(const struct wr_source *source, const struct weir_metric *metric)
{
    const struct wr_family *family =
        wr_family_find(&source->runtime->registry, metric->stream->group, metric->name, metric->length);
    return family && atomic_load_explicit(&family->declared_as, memory_order_relaxed) != WEIR_VALUE;
}

/* Whether a series that is known by its name takes a record that says what its values are. The first that says
 * it declares the name. */
static bool takes(struct wr_source *source, struct weir_metric *metric, const weir_record *record,
                  struct wr_error *error)
{
    if (record->instrument == WEIR_VALUE ||
        record->instrument == atomic_load_explicit(&metric->instrument, memory_order_relaxed))
        return true;
    if (!is_declared(source, metric)) {
        describe(source, metric->stream, record, metric->name);
        return true;
    }
    return !is_refused(source, metric->stream->group, record, metric->name, error);
}

/* Finds the series of all values, and scales these. Returns WEIR_ADD_TAKEN or WEIR_ADD_REFUSED. */
static int resolve(struct wr_source *source, const weir_record *record)
{
    size_t label_count;
    enum weir_refusal why;
    struct wr_error error;
    bool cumulative = record->flags & WEIR_RECORD_CUMULATIVE;
    uint64_t count = source->is_resolving ? 0 : record->count; /* that a refusal counts */
    if (!reserve_values(source, record->count) || !set_group(source, record->group) ||
        !merge_labels(source, record, &label_count) ||
        !wr_source_names_begin(&source->names, source->group.data, source->labels, label_count, cumulative))
        return wr_source_host_refuse_values(source, count, WEIR_REFUSED_MEMORY, "out of memory");
    for (size_t i = 0; i < record->count; i++) {
        const char *name = record->values[i].name;
        struct weir_metric *metric = wr_source_names_find(&source->names, name);
        if (metric && !takes(source, metric, record, &error))
            return wr_source_host_refuse_values(source, count, WEIR_REFUSED_ARGUMENT, error.text);
        if (!metric && !(metric = learn(source, record, label_count, name, &why, &error)))
            return wr_source_host_refuse_values(source, count, why, error.text);
        source->metrics[i] = metric;
        source->values[i] = scale(record, &record->values[i]);
    }
    return WEIR_ADD_TAKEN;
}

struct weir_metric *wr_source_host_resolve(struct wr_source *source, const weir_record *record)
{
    source->is_resolving = true;
    struct weir_metric *metric = wr_source_host_find(source, record);
    source->is_resolving = false;
    return metric;
}

struct weir_metric *wr_source_host_find(struct wr_source *source, const weir_record *record)
{
    return resolve(source, record) == WEIR_ADD_TAKEN ? source->metrics[0] : NULL;
}

/* Sequentially consistent: see struct wr_room_waiter. */
void wr_source_host_want_room(struct wr_source *source)
{
    atomic_store(&source->room.wanted, true);
    source->is_full = true;
}

int wr_source_host_wait(struct wr_source *source)
{
    wr_source_host_count(source, WR_SOURCE_COUNT_WAITS, 1);
    return WEIR_ADD_FULL;
}

static int try_add(const struct wr_source *source, const weir_record *record)
{
    const struct wr_event event = {
        .values = source->values,
        .changes = record->flags & WEIR_RECORD_CHANGE ? source->values : NULL,
        .metrics = source->metrics,
        .count = record->count,
        .time_ns = record->time_ns ? &record->time_ns : NULL,
        .cumulative = record->flags & WEIR_RECORD_CUMULATIVE,
        .metadata = record->count == 1 ? record->metadata : NULL,
        .never_waits = true,
    };
    return wr_event_add(source->metrics[0]->stream, &event);
}

/* What was added or refused. */
static int finish_add(struct wr_source *source, const weir_record *record, int result)
{
    if (result == 0) {
        atomic_fetch_add_explicit(&source->records, 1, memory_order_relaxed);
        /* release: pairs with the acquire in wr_source_read_stats, so that its line is counted by then */
        atomic_fetch_add_explicit(&source->added, record->count, memory_order_release);
        return WEIR_ADD_TAKEN;
    }
    const struct wr_error *last = wr_producers_error(&source->runtime->producers);
    wr_source_host_refuse(source, WR_SOURCE_FAULT_VALUE, record->count, "%s",
                          last && last->code == result ? last->text : wr_error_text(result));
    return WEIR_ADD_REFUSED;
}

/* Adds a record whose series and values are resolved. */
static int add_resolved(struct wr_source *source, const weir_record *record)
{
    int result = try_add(source, record);
    if (result == WR_INTAKE_FULL) {
        wr_source_host_want_room(source);
        result = try_add(source, record);
    }
    if (result == WR_INTAKE_FULL)
        return wr_source_host_wait(source);
    return finish_add(source, record, result);
}

int wr_source_host_add(struct wr_source *source, const weir_record *record)
{
    int result = resolve(source, record);
    if (result != WEIR_ADD_TAKEN)
        return result;
    result = add_resolved(source, record);
    if (result == WEIR_ADD_TAKEN)
        wr_source_works(source);
    return result;
}

int wr_source_host_add_number(struct wr_source *source, struct weir_metric *metric, weir_number number)
{
    const weir_record record = {.size = sizeof record, .count = 1};
    if (!reserve_values(source, 1))
        return WEIR_ADD_FULL;
    source->metrics[0] = metric;
    source->values[0] = (weir_typed_value){metric->name, number};
    return add_resolved(source, &record);
}

static int add(const weir_host *host, const weir_record *record)
{
    struct wr_source *source = wr_source_from_host(host);
    weir_record whole;
    return wr_source_host_read(source, record, &whole) ? source->add(source, &whole) : WEIR_ADD_REFUSED;
}

static void refuse(const weir_host *host, uint64_t n, const char *where, const char *format, ...)
{
    struct wr_source *source = wr_source_from_host(host);
    char text[WR_ERROR_ROOM];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wr_source_host_refuse(source, WR_SOURCE_FAULT_VALUE, n, "%s%s%s", where, *where ? ": " : "", text);
}

/* ---- Marks ----------------------------------------------------------------------------------- */

/* What is added by no other way than by this thread: its own count needs no order. */
static uint64_t mark(const weir_host *host)
{
    const struct wr_source *source = wr_source_from_host(host);
    return atomic_load_explicit(&source->added, memory_order_relaxed) + source->repeats;
}

uint64_t wr_source_host_mark_repeat(struct wr_source *source)
{
    source->repeats++;
    uint64_t number = mark(&source->host_table);
    wr_source_marks_note_repeat(&source->marks, number);
    return number;
}

static int settled(const weir_host *host, uint64_t mark_number)
{
    struct wr_source *source = wr_source_from_host(host);
    return wr_source_marks_ask(&source->marks, wr_runtime_engine(source->runtime), mark_number, mark(host));
}

/* ---- Senders --------------------------------------------------------------------------------- */

static void show_senders(const weir_host *host, const weir_sender *senders, size_t count)
{
    wr_source_senders_show(&wr_source_from_host(host)->senders, senders, count);
}

static const weir_senders senders_service = {sizeof senders_service, show_senders};

/* ---- The process ----------------------------------------------------------------------------- */

/* The snapshot is a large struct: it is not on the stack. */
static char *read_status(const weir_host *host)
{
    struct wr_runtime *runtime = wr_source_from_host(host)->runtime;
    struct wr_snapshot *snapshot = malloc(sizeof *snapshot);
    struct wr_buffer text = {0};
    if (!snapshot)
        return NULL;
    wr_snapshot_init(snapshot);
    wr_snapshot_take(snapshot, wr_runtime_engine(runtime), &runtime->status.sources);
    wr_status_json_put(&text, &snapshot->view);
    free(snapshot);
    return wr_buffer_take(&text);
}

static void release(char *text)
{
    free(text);
}

static const weir_status status_service = {sizeof status_service, read_status, release};

/* ---- Connecting ------------------------------------------------------------------------------ */

/* By the service that the source has: in a test of `weir vet` that is not this one. */
static unsigned wait_to_connect(const weir_host *host, struct pollfd *fds, size_t count, int64_t timeout_ms)
{
    const weir_intake *intake = host->service(host, WEIR_SERVICE_INTAKE);
    unsigned woke = intake->wait(host, fds, count, timeout_ms);
    wr_source_from_host(host)->has_missed_reload |= woke & WEIR_WAIT_RELOAD;
    return woke;
}

/* Room and a reload that are reported meanwhile are reported to the source by its next wait. */
static int connect_to(const weir_host *host, const weir_connect *what, char *reason, size_t room)
{
    struct wr_source *source = wr_source_from_host(host);
    bool was_full = source->is_full, runs = source->works_at_ns != WR_NEVER;
    wr_connecting_wait *wait = source->refusal ? NULL : wait_to_connect; /* in create */
    source->works_at_ns = WR_NEVER; /* nor does it work before it is connected */
    int fd = wr_connecting_connect(&source->connecting, host, wait, what, reason, room);
    if (fd >= 0 && runs)
        source->works_at_ns = wr_clock_monotonic_ns() + WR_SOURCE_WORKS_AFTER_NS;
    if (was_full && !source->is_full) {
        source->is_full = true;
        wr_wake_pair_wake(&source->wake);
    }
    if (source->has_missed_reload) /* not before: the waits of the connection would not wait any more */
        atomic_store(&source->reload_wanted, true);
    source->has_missed_reload = false;
    return fd;
}

static const weir_connecting connecting_service = {sizeof connecting_service, wr_connecting_check, connect_to};

/* ---- Lookup ---------------------------------------------------------------------------------- */

static const weir_intake intake_service = {sizeof intake_service, add, wait_for, refuse, mark, settled};

static const void *host_service(const weir_host *host, const char *id)
{
    const struct wr_source *source = wr_source_from_host(host);
    if (strcmp(id, WEIR_SERVICE_INTAKE) == 0)
        return &intake_service;
    if (strcmp(id, WEIR_SERVICE_BLOCKS) == 0)
        return wr_source_blocks_service();
    if (strcmp(id, WR_SERVICE_RELAYING) == 0)
        return wr_source_relaying_service(source);
    if (strcmp(id, WEIR_SERVICE_CONNECTING) == 0)
        return &connecting_service;
    if (strcmp(id, WEIR_SERVICE_NUMBERS) == 0)
        return wr_numbers_service();
    if (strcmp(id, WEIR_SERVICE_UPSTREAM) == 0)
        return wr_upstream_service();
    if (strcmp(id, WEIR_SERVICE_SENDERS) == 0)
        return &senders_service;
    if (strcmp(id, WEIR_SERVICE_STATUS) == 0)
        return &status_service;
    if (strcmp(id, WEIR_SERVICE_PARSER) == 0)
        return source->type->is.flags & WEIR_SOURCE_TYPE_PARSES ? wr_source_text_service() : NULL;
    return NULL;
}

void wr_source_host_init(struct wr_source *source, const char *name)
{
    source->add = wr_source_host_add;
    wr_connecting_init(&source->connecting);
    source->host_table = (weir_host){
        .size = sizeof(weir_host),
        .abi = WEIR_SOURCE_ABI,
        .name = name,
        .source_type = source->type->given,
        .context = source->type->context,
        .log = host_log,
        .refuse = host_refuse,
        .count = host_count,
        .wake_in = host_wake_in,
        .wait = host_wait,
        .stopping = host_stopping,
        .service = host_service,
    };
}
