/* Another ABI version, whose members after size and abi may have another layout. */
#include "../sound.h"

static const struct {
    size_t size;
    uint32_t abi;
    uint64_t other[40];
} type = {sizeof(weir_handler_type), WEIR_ABI + 7, {1}};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? (const weir_handler_type *)(const void *)&type : NULL;
}
