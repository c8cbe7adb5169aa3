/* Its file's name promises another type than it has. */
#include "sound.h"

static const weir_handler_type type = {SOUND_TYPE("nobody_looks_for_this")};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
