/* report_file: files that are replaced as a whole: a reader finds the old content or the new one. */
#ifndef WEIR_PLUGINS_REPORT_FILE_H
#define WEIR_PLUGINS_REPORT_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Returns why the file could not be written, an errno, as far as that is known before; 0: it can. A device, a
 * pipe or a folder is EEXIST: it would be replaced by a file. */
int report_file_check(const char *path);

/* Writes to a temporary file in the same folder, and renames it. Where the path is a symbolic link, what it
 * leads to is replaced. Returns 0 or an errno; then the previous file is unchanged. */
int report_file_write(const char *path, mode_t mode, const char *data, size_t length);

#endif
