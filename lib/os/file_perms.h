/* trust: whose files weir obeys: plugins and configurations decide what a program does, so nobody else may
 * write them. */
#ifndef WR_FILE_PERMS_H
#define WR_FILE_PERMS_H

#include <stdbool.h>

struct stat;
struct wr_error;

/* Whether only the owner, or a group that is the process's own or root's, may write the file. `code`: enum
 * weir_error when not. */
bool wr_file_perms_check_status(const char *path, const struct stat *status, int code, struct wr_error *error);

/* The same for a path, with all symbolic links resolved, and the folder it is in. *resolved: the path to use;
 * the caller frees it. */
bool wr_file_perms_check_path(const char *path, char **resolved, int code, struct wr_error *error);

#endif
