#include "handler/plugin.h"

/* Compiled twice: for the shared library, which loads every handler type as a plugin, and for the static one. A
 * program that is linked statically may be unable to load plugins, so the types without dependencies are built
 * in. */
#ifdef WR_BUILTIN_HANDLERS
const weir_handler_type *wr_builtin_null_type_at(uint32_t index);
const weir_handler_type *wr_builtin_console_type_at(uint32_t index);
const weir_handler_type *wr_builtin_file_type_at(uint32_t index);
const weir_handler_type *wr_builtin_fifo_type_at(uint32_t index);
const weir_handler_type *wr_builtin_socket_type_at(uint32_t index);

const weir_handler_type *(*const wr_builtin_types[])(uint32_t index) = {
    wr_builtin_null_type_at, wr_builtin_console_type_at, wr_builtin_file_type_at,
    wr_builtin_fifo_type_at, wr_builtin_socket_type_at,  NULL,
};
#else
const weir_handler_type *(*const wr_builtin_types[])(uint32_t index) = {NULL};
#endif
