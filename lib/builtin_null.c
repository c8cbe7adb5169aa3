/* The handler type "null" for static builds; see builtin.c. */
#define weir_handler_type_at wr_builtin_null_type_at
#include "../plugins/null/null.c"
