/* An option of a type that does not exist. */
#include "../sound.h"

struct options {
    int64_t limit;
};

static const weir_option rows[] = {
    {"limit", 99, 0, NULL, NULL, "how much", offsetof(struct options, limit)},
    {0},
};

static const weir_handler_type type = {
    SOUND_TYPE("bad_options"),
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
