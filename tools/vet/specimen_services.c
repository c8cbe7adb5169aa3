/* What a source under test gets as its host and services. Text is parsed by the core; what that and the source
 * itself add comes here. */

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parse/parser.h"
#include "specimen.h"
#include "text/hash.h"

/* ---- Specimen of a host ---------------------------------------------------------------------- */

static struct vet_specimen *specimen_of(const weir_host *host)
{
    return (struct vet_specimen *)vet_tested_of(host); /* its first member */
}

/* [source] functions. */
static struct vet_specimen *specimen_on_thread(const weir_host *host, const char *function)
{
    struct vet_specimen *specimen = specimen_of(host);
    if (!pthread_equal(atomic_load(&specimen->runner), pthread_self()))
        vet_fail("%s was called from another thread than the source's own", function);
    return specimen;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static bool has_to_stop(const struct vet_specimen *specimen)
{
    return atomic_load(&specimen->stops) || atomic_load(&vet_page->stop);
}

static bool host_wait(const weir_host *host, int64_t ms)
{
    struct vet_specimen *specimen = specimen_of(host);
    int64_t end_ms = vet_now_ms() + (ms < 0 ? 0 : ms), left_ms;
    atomic_fetch_add(&vet_page->waits, 1);
    if (!specimen->self)
        vet_fail("host->wait was called in create, which may not wait");
    while (!has_to_stop(specimen) && (left_ms = end_ms - vet_now_ms()) > 0)
        poll(NULL, 0, left_ms < 5 ? (int)left_ms : 5);
    return !has_to_stop(specimen);
}

static bool host_stopping(const weir_host *host)
{
    atomic_fetch_add(&vet_page->waits, 1);
    return has_to_stop(specimen_of(host));
}

enum { FDS_MAX = 1024, SLICE_MS = 20 };

/* Polls once. Returns WEIR_WAIT_* bits. The stop of the parent process comes without an event. */
static unsigned poll_once(struct vet_specimen *specimen, struct pollfd *fds, size_t count, int timeout_ms)
{
    struct pollfd all[FDS_MAX + 1]; /* not zeroed: kilobytes */
    unsigned result = 0;
    uint64_t ignored;
    all[0] = (struct pollfd){specimen->wake_fd, POLLIN, 0};
    if (count)
        memcpy(&all[1], fds, count * sizeof *fds);
    int ready = poll(all, count + 1, has_to_stop(specimen) ? 0 : timeout_ms);
    for (size_t i = 0; i < count; i++) {
        if (ready > 0 && all[i + 1].revents & POLLNVAL)
            vet_fail("weir_intake.wait was called with descriptor %d, which is not open", fds[i].fd);
        fds[i].revents = ready > 0 ? all[i + 1].revents : 0;
        result |= fds[i].revents ? WEIR_WAIT_READY : 0u;
    }
    if (ready > 0 && all[0].revents)
        (void)!read(specimen->wake_fd, &ignored, sizeof ignored); /* it does not block */
    if (specimen->is_full && atomic_load(&specimen->intake) != VET_INTAKE_IS_FULL) {
        specimen->is_full = false;
        specimen->has_room = true;
        result |= WEIR_WAIT_ROOM;
    }
    return result | (has_to_stop(specimen) ? WEIR_WAIT_STOP : 0u);
}

/* Between them no child is forked by vet_specimen_pause. */
static void begin_waiting(struct vet_specimen *specimen)
{
    pthread_mutex_lock(&specimen->gate);
    specimen->is_waiting = true;
    pthread_mutex_unlock(&specimen->gate);
}

static void end_waiting(struct vet_specimen *specimen)
{
    pthread_mutex_lock(&specimen->gate);
    specimen->is_waiting = false;
    pthread_mutex_unlock(&specimen->gate);
}

static unsigned intake_wait(const weir_host *host, struct pollfd *fds, size_t count, int64_t timeout_ms)
{
    struct vet_specimen *specimen = specimen_on_thread(host, "weir_intake.wait");
    if (count > FDS_MAX)
        vet_fail(
            "weir_intake.wait was called with %zu descriptors; allowed: %d; keep more in an epoll descriptor",
            count, FDS_MAX);
    if (count && !fds)
        vet_fail("weir_intake.wait was called with NULL for %zu descriptors", count);
    atomic_fetch_add(&specimen->tally.waits, 1);
    atomic_fetch_add(&vet_page->waits, 1);
    specimen->full_in_row = specimen->same_in_row = 0;
    int64_t end_ms = timeout_ms < 0 ? INT64_MAX : vet_now_ms() + timeout_ms, left_ms;
    unsigned result;
    begin_waiting(specimen);
    do {
        left_ms = timeout_ms < 0 ? SLICE_MS : end_ms - vet_now_ms();
        result = poll_once(specimen, fds, count,
                           left_ms > SLICE_MS ? SLICE_MS
                           : left_ms < 0      ? 0
                                              : (int)left_ms);
    } while (!result && left_ms > 0);
    end_waiting(specimen);
    if (result & WEIR_WAIT_STOP)
        atomic_fetch_add(&specimen->tally.stop_waits, 1);
    return result;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static void check_record(const weir_record *record)
{
    const uint32_t flags = WEIR_RECORD_CUMULATIVE | WEIR_RECORD_CHANGE;
    if (record->flags & ~flags)
        vet_fail("a record has the flags 0x%x, some of which are unknown: are its unused fields 0?",
                 record->flags);
    if (record->instrument < WEIR_VALUE || record->instrument > WEIR_HISTOGRAM)
        vet_fail("a record has the instrument %d, which is none of enum weir_instrument", record->instrument);
    if (record->sample_rate < 0)
        vet_fail("a record has a negative sample_rate");
    if (record->metadata && record->count != 1)
        vet_fail("a record has metadata, but %zu values; allowed: 1", record->count);
    if (record->label_count && !record->labels)
        vet_fail("a record has NULL for %zu labels", record->label_count);
    for (size_t i = 0; i < record->label_count; i++)
        if (!record->labels[i].key || !record->labels[i].value)
            vet_fail("a record's label has NULL for its key or value");
    for (size_t i = 0; i < record->count; i++) {
        const weir_typed_value *value = &record->values[i];
        if (!value->name)
            vet_fail("a record's value has NULL for its name");
        if (value->number.kind != WEIR_KIND_DOUBLE && value->number.kind != WEIR_KIND_INT)
            vet_fail("a record's value \"%.100s\" has the kind %d; allowed: WEIR_KIND_DOUBLE, WEIR_KIND_INT",
                     value->name, value->number.kind);
    }
}

static uint64_t hash_of(const weir_record *record)
{
    uint64_t hash = (uint64_t)record->time_ns;
    hash = wr_hash_bytes(hash, record->values[0].name, strlen(record->values[0].name));
    for (size_t i = 0; i < record->count; i++) {
        uint64_t value;
        memcpy(&value, &record->values[i].number.is.i64, sizeof value);
        hash = wr_hash_mix(hash ^ value, UINT64_C(0xe7037ed1a0b428db));
    }
    return hash;
}

static int be_full(struct vet_specimen *specimen)
{
    enum { MOST = 10000 };
    specimen->is_full = true;
    atomic_fetch_add(&specimen->tally.full, 1);
    if (++specimen->full_in_row == MOST) {
        atomic_store(&vet_page->broken, VET_RUN);
        vet_see("adding-never-waits");
        vet_fail(
            "run adds %d times without weir_intake.wait, although there is no room: wait, and add the same "
            "record again",
            MOST);
    }
    return WEIR_ADD_FULL;
}

static int be_refused(struct vet_specimen *specimen, uint64_t hash, uint64_t count)
{
    enum { MOST = 1000 };
    if (hash == specimen->refused_hash && ++specimen->same_in_row == MOST)
        vet_fail("run adds a record again and again that was refused; WEIR_ADD_REFUSED is final");
    if (hash != specimen->refused_hash)
        specimen->same_in_row = 0;
    specimen->refused_hash = hash;
    atomic_fetch_add(&specimen->tally.refused, count);
    return WEIR_ADD_REFUSED;
}

static int take(struct vet_specimen *specimen, uint64_t hash, uint64_t count)
{
    uint64_t adds = atomic_fetch_add(&specimen->tally.adds, 1);
    int intake_now = atomic_load(&specimen->intake);
    bool is_tight = intake_now == VET_INTAKE_IS_TIGHT && !specimen->has_room;
    if (intake_now == VET_INTAKE_IS_FULL || is_tight)
        return be_full(specimen);
    if (intake_now == VET_INTAKE_REFUSES && (hash == specimen->refused_hash || adds % 2))
        return be_refused(specimen, hash, count);
    specimen->refused_hash = 0;
    specimen->has_room = false;
    atomic_fetch_add(&specimen->tally.added, count);
    return WEIR_ADD_TAKEN;
}

/* In place of wr_source_host_add: also what the core's parser adds comes here. */
static int take_record(struct wr_source *source, const weir_record *record)
{
    struct vet_specimen *specimen = specimen_of(&source->host_table);
    check_record(record);
    return take(specimen, hash_of(record) | 1, record->count);
}

static int intake_add(const weir_host *host, const weir_record *record)
{
    struct vet_specimen *specimen = specimen_on_thread(host, "weir_intake.add");
    weir_record whole = {0};
    if (!record || record->size < sizeof record->size || record->size > 16 * sizeof whole)
        vet_fail("weir_intake.add was called with a record whose size is not set");
    if (!WEIR_HAS(record, count) || !record->count || !record->values)
        vet_fail("weir_intake.add was called with a record without values");
    if (record->count > WR_PARSER_VALUES)
        vet_fail("weir_intake.add was called with a record of %zu values; allowed: %d", record->count,
                 WR_PARSER_VALUES);
    memcpy(&whole, record, record->size < sizeof whole ? record->size : sizeof whole);
    return take_record(specimen->source, &whole);
}

static void intake_refuse(const weir_host *host, uint64_t n, const char *where, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    struct vet_specimen *specimen = specimen_on_thread(host, "weir_intake.refuse");
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!where)
        vet_fail("weir_intake.refuse was called with NULL for `where`; use \"\"");
    if (!*text)
        vet_fail("weir_intake.refuse was called without a message");
    vet_tested_check_text(&specimen->tested, "the message of weir_intake.refuse", text);
    snprintf(vet_page->last_log, sizeof vet_page->last_log, "%.255s", text);
    atomic_fetch_add(&specimen->tally.refused, n);
}

/* ---- Marks ----------------------------------------------------------------------------------- */

static uint64_t intake_mark(const weir_host *host)
{
    struct vet_specimen *specimen = specimen_on_thread(host, "weir_intake.mark");
    specimen->last_mark = atomic_load(&specimen->tally.added);
    return specimen->last_mark;
}

/* The first question comes too early, then each result comes in turn. */
static int intake_settled(const weir_host *host, uint64_t mark)
{
    static const int results[] = {WEIR_MARK_PENDING, WEIR_MARK_STORED, WEIR_MARK_DELIVERED, WEIR_MARK_PENDING,
                                  WEIR_MARK_DROPPED};
    struct vet_specimen *specimen = specimen_on_thread(host, "weir_intake.settled");
    if (mark > specimen->last_mark)
        vet_fail("weir_intake.settled was called with %llu, which weir_intake.mark has not returned",
                 (unsigned long long)mark);
    if (atomic_load(&specimen->settles_nothing))
        return WEIR_MARK_PENDING;
    return results[specimen->asked++ % (sizeof results / sizeof *results)];
}

static const weir_intake intake = {sizeof intake, intake_add,  intake_wait,
                                   intake_refuse, intake_mark, intake_settled};

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Stands for every series: a source cannot look into it. */
static const char series;

static const weir_source_series *blocks_resolve(const weir_host *host, const weir_record *record)
{
    specimen_on_thread(host, "weir_blocks.resolve");
    if (!record || record->count != 1 || !record->values || !record->values[0].name)
        vet_fail("weir_blocks.resolve was called with a record that does not have one value with a name");
    return (const weir_source_series *)(const void *)&series;
}

static void check_origin(const char *origin)
{
    enum { DIGITS = 32 };
    if (!origin || strspn(origin, "0123456789abcdef") != DIGITS || origin[DIGITS])
        vet_fail("an origin is not of 32 lowercase hexadecimal digits");
}

static bool blocks_missing(const weir_host *host, const char *origin, uint64_t first, uint64_t end,
                           uint64_t *missing, uint64_t *missing_end)
{
    specimen_on_thread(host, "weir_blocks.missing");
    check_origin(origin);
    *missing = first;
    *missing_end = end;
    return first < end;
}

static int blocks_add(const weir_host *host, const weir_block *block, uint64_t *refused)
{
    if (refused)
        *refused = 0;
    struct vet_specimen *specimen = specimen_on_thread(host, "weir_blocks.add");
    check_origin(block->origin);
    if (!block->count || block->count > WEIR_BLOCK_SLOTS)
        vet_fail("weir_blocks.add was called with %zu samples; allowed: 1..%d", block->count, WEIR_BLOCK_SLOTS);
    for (size_t i = 0; i < block->count; i++)
        if (block->samples[i].series && (const void *)block->samples[i].series != &series)
            vet_fail("weir_blocks.add was called with a series that weir_blocks.resolve has not returned");
    if (atomic_load(&specimen->intake) == VET_INTAKE_REFUSES) /* a block is refused for faults alone */
        return atomic_fetch_add(&specimen->tally.added, block->count), WEIR_ADD_TAKEN;
    return take(specimen, (block->sequence << 1) | 1, block->count);
}

static void blocks_forget(const weir_host *host, const char *origin)
{
    specimen_on_thread(host, "weir_blocks.forget");
    check_origin(origin);
}

static bool blocks_is_stored(const weir_host *host)
{
    specimen_on_thread(host, "weir_blocks.is_stored");
    return true;
}

static uint64_t blocks_mark_repeat(const weir_host *host)
{
    specimen_on_thread(host, "weir_blocks.mark_repeat");
    return intake_mark(host);
}

static const weir_blocks blocks = {
    sizeof blocks, blocks_resolve,   blocks_missing,     blocks_add,
    blocks_forget, blocks_is_stored, blocks_mark_repeat,
};

/* ---- The process ----------------------------------------------------------------------------- */

/* As of a process without handlers and sources. */
static char *status_read(const weir_host *host)
{
    specimen_on_thread(host, "weir_status.read");
    return strdup(
        "{\"pid\": 1, \"up_s\": 1, \"handlers\": [], \"sources\": [], \"refused\": {}, \"unrouted\": 0}");
}

static void status_release(char *text)
{
    free(text);
}

static const weir_status status = {sizeof status, status_read, status_release};

/* ---- Attaching ------------------------------------------------------------------------------- */

static const void *host_service(const weir_host *host, const char *id)
{
    const struct vet_specimen *specimen = specimen_of(host);
    if (!id)
        vet_fail("host->service was called without a name");
    if (strcmp(id, WEIR_SERVICE_INTAKE) == 0)
        return &intake;
    if (strcmp(id, WEIR_SERVICE_BLOCKS) == 0)
        return &blocks;
    if (strcmp(id, WEIR_SERVICE_STATUS) == 0)
        return &status;
    return specimen->tested.core.service(host, id);
}

void vet_specimen_attach(struct vet_specimen *specimen)
{
    weir_host *table = &specimen->source->host_table;
    vet_tested_attach(&specimen->tested, table);
    table->wait = host_wait;
    table->stopping = host_stopping;
    table->service = host_service;
    specimen->source->add = take_record;
}
