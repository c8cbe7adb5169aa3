/* The handler type "fifo" for static builds; see builtin.c. */
#define weir_handler_type_at wr_builtin_fifo_type_at
#include "../plugins/fifo/fifo.c"
