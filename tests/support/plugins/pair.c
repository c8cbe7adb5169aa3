/* A file with two types; the file has the name of one of them. */
#include "sound.h"

static const weir_handler_type types[] = {{SOUND_TYPE("pair")}, {SOUND_TYPE("other_of_pair")}};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index < 2 ? &types[index] : NULL;
}
