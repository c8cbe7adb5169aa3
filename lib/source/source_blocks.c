#include "source/source_blocks.h"

#include <string.h>

#include "os/clock.h"
#include "journal/fronts.h"
#include "runtime/block.h"
#include "runtime/intake.h"
#include "runtime/runtime.h"
#include "source/source_host.h"
#include "text/error.h"
#include "text/utf8.h"

/* Of all sources of the process: a sender may come back to another one. */
static struct wr_fronts *fronts_of(const struct wr_source *source)
{
    return &wr_runtime_engine(source->runtime)->fronts;
}

static const weir_source_series *resolve(const weir_host *host, const weir_record *record)
{
    struct wr_source *source = wr_source_from_host(host);
    weir_record whole;
    if (!wr_source_host_read(source, record, &whole))
        return NULL;
    if (whole.count != 1) {
        wr_source_host_refuse(source, WR_SOURCE_FAULT_VALUE, 0,
                              "the source type is at fault: a series is resolved by a record with one value");
        return NULL;
    }
    whole.flags &= ~(uint32_t)WEIR_RECORD_CHANGE; /* of values */
    whole.sample_rate = 0;
    return (const weir_source_series *)wr_source_host_resolve(source, &whole);
}

static bool missing(const weir_host *host, const char *origin, uint64_t first, uint64_t end, uint64_t *lowest,
                    uint64_t *lowest_end)
{
    struct wr_front_origin parsed;
    if (wr_front_read(origin, &parsed))
        return wr_fronts_missing(fronts_of(wr_source_from_host(host)), parsed, wr_clock_monotonic_ns(), first,
                                 end, lowest, lowest_end);
    *lowest = first; /* add refuses it */
    *lowest_end = end;
    return first < end;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* Returns what is wrong with a sample, or NULL. */
static const char *find_fault_of(const weir_block_sample *sample)
{
    size_t where;
    if (!sample->series)
        return "a sample without a series";
    if (sample->kind != WEIR_KIND_DOUBLE && sample->kind != WEIR_KIND_INT)
        return "a sample whose kind is neither WEIR_KIND_DOUBLE nor WEIR_KIND_INT";
    if (!sample->text_length)
        return NULL;
    if (!sample->text || memchr(sample->text, 0, sample->text_length) ||
        !wr_utf8_is_valid(sample->text, sample->text_length, &where))
        return "metadata that is not valid UTF-8, or that has a NUL";
    return NULL;
}

/* Returns what is wrong with a block, or NULL. */
static const char *find_fault(const weir_block *block)
{
    uint64_t slots = block->count;
    if (!block->count)
        return "a block without samples";
    if (block->count > WEIR_BLOCK_SLOTS)
        return "a block with more samples than WEIR_BLOCK_SLOTS (1000)";
    if (block->sequence > UINT64_MAX - block->count)
        return "a block whose numbers exceed 64 bits";
    for (size_t i = 0; i < block->count; i++) {
        const char *fault = find_fault_of(&block->samples[i]);
        if (fault)
            return fault;
        slots += ((uint64_t)block->samples[i].text_length + sizeof(weir_sample) - 1) / sizeof(weir_sample);
    }
    return slots > WEIR_BLOCK_SLOTS
               ? "a block whose samples and metadata need more than WEIR_BLOCK_SLOTS (1000)"
               : NULL;
}

/* A block that is being added. */
struct adding {
    struct wr_fronts *fronts;
    struct wr_fronts_step step;
    struct wr_block_counts counts;
};

static void before(void *ctx, const struct wr_ring *ring, uint64_t position)
{
    struct adding *adding = ctx;
    wr_fronts_begin(adding->fronts, &adding->step, ring, position);
}

static int try_add(struct wr_source *source, const weir_block *block, struct adding *adding)
{
    const struct wr_block_witness witness = {before, adding};
    int result = wr_block_add(block->samples, block->count, &witness, &adding->counts);
    if (result != WR_INTAKE_FULL)
        return result;
    wr_source_host_want_room(source);
    return wr_block_add(block->samples, block->count, &witness, &adding->counts);
}

static const char *last_error(const struct wr_source *source, int code)
{
    const struct wr_error *last = wr_producers_error(&source->runtime->producers);
    return last && last->code ? last->text : wr_error_text(code);
}

/* The entry of the origin is made before, so that nothing can fail after the samples are published. */
static int add_block(struct wr_source *source, const weir_block *block, struct wr_front_origin origin,
                     uint64_t *refused)
{
    uint64_t forgotten = 0;
    struct adding adding = {
        .fronts = fronts_of(source),
        .step = {.origin = origin,
                 .range = {block->sequence, block->sequence + block->count},
                 .now = wr_fronts_now()},
    };
    if (!wr_fronts_reserve(adding.fronts, &adding.step, &forgotten))
        return wr_source_host_refuse_values(source, block->count, WEIR_REFUSED_MEMORY, "out of memory");
    if (forgotten)
        wr_source_host_count(source, WR_SOURCE_COUNT_ORIGINS, forgotten);
    int result = try_add(source, block, &adding);
    if (result == WR_INTAKE_FULL)
        return wr_source_host_wait(source);
    if (result) {
        wr_source_host_refuse(source, WR_SOURCE_FAULT_VALUE, block->count, "%s", last_error(source, result));
        return WEIR_ADD_REFUSED;
    }
    wr_fronts_end(adding.fronts, &adding.step);
    *refused = adding.counts.refused;
    if (adding.counts.refused)
        wr_source_host_refuse(source, WR_SOURCE_FAULT_VALUE, adding.counts.refused, "%s",
                              last_error(source, WEIR_ERR_ARGUMENT));
    atomic_fetch_add_explicit(&source->records, 1, memory_order_relaxed);
    /* release: as in source_host.c */
    atomic_fetch_add_explicit(&source->added, adding.counts.taken, memory_order_release);
    if (adding.counts.taken)
        wr_source_works(source);
    return WEIR_ADD_TAKEN;
}

static int add(const weir_host *host, const weir_block *given, uint64_t *refused)
{
    uint64_t unused;
    struct wr_source *source = wr_source_from_host(host);
    struct wr_front_origin origin;
    weir_block block = {0};
    memcpy(&block, given, given->size < sizeof block ? given->size : sizeof block);
    const char *fault = wr_front_read(block.origin, &origin)
                            ? find_fault(&block)
                            : "a block whose origin is not 32 lowercase hexadecimal digits";
    if (!fault)
        return add_block(source, &block, origin, refused ? refused : &unused);
    wr_source_host_refuse(source, WR_SOURCE_FAULT_VALUE, 0, "the source type is at fault: %s", fault);
    return WEIR_ADD_REFUSED;
}

static void forget(const weir_host *host, const char *origin)
{
    struct wr_front_origin parsed;
    if (wr_front_read(origin, &parsed))
        wr_fronts_forget(fronts_of(wr_source_from_host(host)), parsed);
}

static bool is_stored(const weir_host *host)
{
    return wr_fronts_are_kept(fronts_of(wr_source_from_host(host)));
}

static uint64_t mark_repeat(const weir_host *host)
{
    return wr_source_host_mark_repeat(wr_source_from_host(host));
}

static const weir_blocks service = {sizeof service, resolve, missing, add, forget, is_stored, mark_repeat};

const weir_blocks *wr_source_blocks_service(void)
{
    return &service;
}
