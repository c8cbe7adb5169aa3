/* file_perms: checks who may write a file. Plugins and configurations decide what a program does, so other
 * users must not be able to write them. */
#ifndef WR_FILE_PERMS_H
#define WR_FILE_PERMS_H

#include <stdbool.h>

struct stat;
struct wr_error;

/* Whether the file belongs to the process's user or root, and only its owner, or a group that is the process's
 * own or root's, may write it. If not, the error is set with `code`. For root any owner is accepted. */
bool wr_file_perms_check_status(const char *path, const struct stat *status, int code, struct wr_error *error);

/* The same for a path, with all symbolic links resolved, and for its folder. *resolved: the path to use, which
 * the caller frees; NULL if the result is false. */
bool wr_file_perms_check_path(const char *path, char **resolved, int code, struct wr_error *error);

#endif
