#include "segment/inputs.h"

#include "os/pages.h"
#include "segment/segment.h"

enum { FIRST_INPUTS = 120 };

struct wr_inputs {
    uint32_t count, room;
    uint64_t bytes;
    _Atomic uint64_t *held;
    bool left;            /* they stay in the journal */
    uint64_t left_values; /* of these, how many no call of wr_inputs_leave has returned yet */
    struct wr_input items[];
};

/* Returns false if out of memory. */
static bool has_room(struct wr_inputs **inputs, _Atomic uint64_t *held)
{
    if (*inputs && (*inputs)->count < (*inputs)->room)
        return true;
    uint32_t room = *inputs ? 2 * (*inputs)->room : FIRST_INPUTS;
    struct wr_inputs *grown = wr_pages_grow(*inputs, sizeof *grown + room * sizeof grown->items[0]);
    if (!grown)
        return false;
    grown->room = room;
    grown->held = held;
    *inputs = grown;
    return true;
}

/* Whether it continues the last one, which then is the same range of a segment. */
static bool extend_last(struct wr_inputs *inputs, const struct wr_input *input)
{
    struct wr_input *last = inputs && inputs->count ? &inputs->items[inputs->count - 1] : NULL;
    if (!last || last->segment != input->segment || last->slot != input->slot ||
        last->first + last->count != input->first)
        return false;
    last->count += input->count;
    last->values += input->values;
    return true;
}

bool wr_inputs_add(struct wr_inputs **inputs, const struct wr_input *input, _Atomic uint64_t *held)
{
    if (!extend_last(*inputs, input)) {
        if (!has_room(inputs, held))
            return false;
        wr_segment_hold(input->segment);
        (*inputs)->items[(*inputs)->count++] = *input;
    }
    uint64_t bytes = wr_segment_bytes(input->segment, input->first, input->count);
    (*inputs)->bytes += bytes;
    /* relaxed: only a number that grows and shrinks */
    atomic_fetch_add_explicit(held, bytes, memory_order_relaxed);
    return true;
}

uint64_t wr_inputs_bytes(const struct wr_inputs *inputs)
{
    return inputs ? inputs->bytes : 0;
}

void wr_inputs_settle(struct wr_inputs *inputs)
{
    for (uint32_t i = 0; !inputs->left && i < inputs->count; i++) {
        const struct wr_input *input = &inputs->items[i];
        wr_segment_settle(input->segment, input->slot, input->first, input->count);
    }
}

static void start_leaving(struct wr_inputs *inputs)
{
    inputs->left = true;
    for (uint32_t i = 0; i < inputs->count; i++)
        inputs->left_values += wr_segment_leave(inputs->items[i].segment, inputs->items[i].values);
}

uint64_t wr_inputs_leave(struct wr_inputs *inputs, uint64_t values)
{
    if (!inputs->left)
        start_leaving(inputs);
    uint64_t left = values < inputs->left_values ? values : inputs->left_values;
    inputs->left_values -= left;
    return left;
}

void wr_inputs_free(struct wr_inputs *inputs)
{
    if (!inputs)
        return;
    atomic_fetch_sub_explicit(inputs->held, inputs->bytes, memory_order_relaxed);
    for (uint32_t i = 0; i < inputs->count; i++)
        wr_segment_drop(inputs->items[i].segment);
    wr_pages_put(inputs);
}
