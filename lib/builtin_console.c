/* The handler type "console" for static builds; see builtin.c. */
#define weir_handler_type_at wr_builtin_console_type_at
#include "../plugins/console/console.c"
