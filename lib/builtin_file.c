/* The handler type "file" for static builds; see builtin.c. */
#ifndef PIC
#define weir_handler_type_at wr_builtin_file_type_at
#include "../plugins/file/file.c"
#else
typedef int wr_builtin_file_is_a_plugin;
#endif
