#include "runtime/block.h"

#include "producer/ring.h"
#include "producer/instrument.h"
#include "registry/stream.h"
#include "runtime/intake.h"

/* What is done with a sample. */
enum fate { FATE_WRITE, FATE_UNROUTED, FATE_REFUSE };

struct block {
    const weir_block_sample *samples;
    size_t count;
    struct wr_intake_call call;
    bool has_gauges, has_refused, has_unrouted;
    uint8_t fates[WR_INTAKE_LARGEST];
};

static weir_number value_of(const weir_block_sample *sample)
{
    return (weir_number){sample->kind, {.i64 = sample->value.i64}};
}

/* Whether the series takes the value. *any: it takes every value. */
static bool check(struct block *block, const struct weir_metric *metric, const weir_block_sample *sample,
                  bool *any)
{
    uint8_t instrument = atomic_load_explicit(&metric->instrument, memory_order_acquire);
    block->has_gauges |= instrument == WEIR_GAUGE;
    *any = !instrument;
    return !instrument ||
           (instrument != WR_INSTRUMENT_REFUSES && wr_instrument_accepts(instrument, value_of(sample)));
}

/* Decides on each sample, and passes the gates of the groups. Counts nothing. Returns 0, or what the call
 * returns. */
static int decide(struct block *block)
{
    const struct wr_group *last = NULL;
    /* the series of the sample before, if that decides on this one too */
    const struct weir_metric *same = NULL;
    bool unrouted = false, any;
    block->call.slots = 0;
    for (size_t i = 0; i < block->count; i++) {
        const weir_block_sample *sample = &block->samples[i];
        const struct weir_metric *metric = wr_block_metric(sample);
        if (metric == same) {
            block->fates[i] = block->fates[i - 1];
            block->call.slots += unrouted ? 0 : 1 + wr_ring_text_slots(sample->text_length);
            continue;
        }
        struct wr_group *group = metric->stream->group;
        bool is_taken = check(block, metric, sample, &any);
        same = any ? metric : NULL;
        if (!is_taken) {
            block->fates[i] = FATE_REFUSE;
            block->has_refused = true;
            continue;
        }
        int error = group == last ? 0 : wr_intake_pass_gate(&block->call, group, &unrouted);
        if (error)
            return error;
        last = group;
        block->fates[i] = unrouted ? FATE_UNROUTED : FATE_WRITE;
        block->has_unrouted |= unrouted;
        if (!unrouted)
            block->call.slots += 1 + wr_ring_text_slots(sample->text_length);
    }
    return 0;
}

/* An event has one stream: the flag that joins a sample to the next one is set when that is written. Returns
 * the position behind the last slot. */
static uint64_t write_slots(const struct block *block, const struct wr_ring *ring, uint64_t position)
{
    const struct weir_stream *stream = NULL;
    weir_sample *before = NULL;
    bool goes_on = false; /* the event of the sample before */
    for (size_t i = 0; i < block->count; i++) {
        const weir_block_sample *sample = &block->samples[i];
        bool has_more = sample->flags & WEIR_SAMPLE_MORE;
        if (block->fates[i] != FATE_WRITE) {
            goes_on = goes_on && has_more;
            continue;
        }
        const struct weir_metric *metric = wr_block_metric(sample);
        weir_sample *slot = wr_ring_slot(ring, position++);
        if (goes_on && stream == metric->stream)
            before->flags |= WEIR_SAMPLE_MORE;
        *slot = (weir_sample){
            .series = metric->series,
            .kind = sample->kind,
            .flags = (uint16_t)(metric->flags | block->call.flags | (sample->text_length ? WR_RING_TEXT : 0)),
            .time_ns = sample->time_ns,
            .value.i64 = sample->value.i64,
            .note = sample->text_length,
        };
        if (sample->text_length) {
            wr_ring_put_text(ring, position, sample->text, sample->text_length);
            position += wr_ring_text_slots(sample->text_length);
        }
        stream = metric->stream;
        before = slot;
        goes_on = has_more;
    }
    return position;
}

/* Only when the block can no longer be refused. */
static void set_levels(const struct block *block)
{
    for (size_t i = 0; block->has_gauges && i < block->count; i++) {
        const struct weir_metric *metric = wr_block_metric(&block->samples[i]);
        if (block->fates[i] != FATE_REFUSE &&
            atomic_load_explicit(&metric->instrument, memory_order_acquire) == WEIR_GAUGE)
            wr_instrument_set_level(metric, wr_value_double(value_of(&block->samples[i])));
    }
}

static void count_unrouted(const struct block *block)
{
    for (size_t i = 0; block->has_unrouted && i < block->count; i++)
        if (block->fates[i] == FATE_UNROUTED)
            wr_unrouted_count(&block->call.producer->unrouted,
                              wr_block_metric(&block->samples[i])->stream->group, 1);
}

static void count_refused(const struct block *block, struct wr_block_counts *counts)
{
    counts->refused = 0;
    for (size_t i = 0; block->has_refused && i < block->count; i++) {
        if (block->fates[i] != FATE_REFUSE)
            continue;
        const struct weir_metric *metric = wr_block_metric(&block->samples[i]);
        counts->refused++;
        if (atomic_load_explicit(&metric->instrument, memory_order_acquire) == WR_INSTRUMENT_REFUSES)
            wr_intake_refuse_named(metric->stream, 1);
        else
            wr_intake_refuse_value(metric, value_of(&block->samples[i]), 1);
    }
    counts->taken = block->count - counts->refused;
}

int wr_block_add(const weir_block_sample *samples, size_t count, const struct wr_block_witness *witness,
                 struct wr_block_counts *counts)
{
    struct block block; /* not zeroed: a kilobyte */
    int error;
    block.samples = samples;
    block.count = count;
    block.has_gauges = block.has_refused = block.has_unrouted = false;
    block.call = (struct wr_intake_call){.group = wr_block_metric(samples)->stream->group,
                                         .samples = count,
                                         .never_waits = true,
                                         .is_block = true};
    if (!wr_intake_enter(&block.call, &error))
        return error;
    error = decide(&block);
    if (!error && block.call.slots)
        error = wr_intake_find_room(&block.call);
    if (error) {
        wr_intake_leave(&block.call);
        return error;
    }
    set_levels(&block);
    count_unrouted(&block);
    if (block.call.slots) {
        struct wr_ring *ring = &block.call.producer->ring;
        uint64_t position = write_slots(&block, ring, wr_ring_position(ring));
        witness->before(witness->ctx, ring, position);
        error = wr_intake_finish(&block.call, position);
    } else {
        witness->before(witness->ctx, NULL, 0);
        wr_intake_leave(&block.call);
    }
    count_refused(&block, counts);
    return error;
}
