#include "handler/plugin.h"

/* The shared library finds its handlers as plugins; a program that is linked statically may not be able to load
 * any, and has the plain ones built in. */
#ifdef WR_BUILTIN_HANDLERS
const weir_handler_type *wr_builtin_null_type_at(uint32_t index);
const weir_handler_type *wr_builtin_console_type_at(uint32_t index);
const weir_handler_type *wr_builtin_file_type_at(uint32_t index);
const weir_handler_type *wr_builtin_fifo_type_at(uint32_t index);

const weir_handler_type *(*const wr_builtin_types[])(uint32_t index) = {
    wr_builtin_null_type_at, wr_builtin_console_type_at, wr_builtin_file_type_at, wr_builtin_fifo_type_at, NULL,
};
#else
const weir_handler_type *(*const wr_builtin_types[])(uint32_t index) = {NULL};
#endif
