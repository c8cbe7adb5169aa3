/* The handler type "console" for static builds; see builtin.c. */
#ifndef PIC
#define weir_handler_type_at wr_builtin_console_type_at
#include "../plugins/console/console.c"
#else
typedef int wr_builtin_console_is_a_plugin;
#endif
