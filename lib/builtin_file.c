/* The handler type "file" for static builds; see builtin.c. Programs that are linked statically need no zlib:
 * old files are compressed by the plugin only. */
#define weir_handler_type_at wr_builtin_file_type_at
#include "../plugins/file/attic.c"
#include "../plugins/file/file.c"
#include "../plugins/file/folder.c"
#include "../plugins/file/period.c"
#include "../plugins/file/press_none.c"
#include "../plugins/file/rotation.c"
#include "../plugins/file/settings.c"
#include "../plugins/file/stamp.c"
#include "../plugins/file/target.c"
#include "../plugins/file/template.c"
#include "../plugins/file/tending.c"
#include "../plugins/file/writer.c"
