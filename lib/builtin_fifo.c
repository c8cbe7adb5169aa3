/* The handler type "fifo" for static builds; see builtin.c. */
#ifndef PIC
#define weir_handler_type_at wr_builtin_fifo_type_at
#include "../plugins/fifo/fifo.c"
#else
typedef int wr_builtin_fifo_is_a_plugin;
#endif
