/* Refers to an undefined function. */
#include "../sound.h"

void undefined_function(void);

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    sound_emit(self, batch, outcome);
    undefined_function();
}

static const weir_handler_type type = {
    .size = sizeof(weir_handler_type),
    .abi = WEIR_ABI,
    .name = "undefined",
    .summary = "does nothing",
    .create = sound_create,
    .emit = emit,
    .destroy = sound_destroy,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
