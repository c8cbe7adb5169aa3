/* file_perms: checks who may write a file or folder. Configurations, plugins, spools and journals decide what a
 * program does, so other users must not be able to write or replace them.
 *
 * The rule: root or the process's effective user owns it, and nobody else may write it. The same holds for the
 * folders above it, up to the root: a user who may write one of these can replace what is in it. Others may
 * write these if they are sticky, like /tmp. Symbolic links are resolved first.
 *
 * A group may write if it is root's, or the private group of the effective user: its effective group, with the
 * same number.
 *
 * Folders in the environment variable WEIR_TRUST (separated by colons), and what is in them, are not checked.
 * It is for volumes whose owners are not those of this machine. */
#ifndef WR_FILE_PERMS_H
#define WR_FILE_PERMS_H

#include <stdbool.h>

struct stat;
struct wr_error;

/* Reads WEIR_TRUST, unless that is done: at the first check otherwise. */
void wr_file_perms_read_environment(void);

/* Whether a file or folder, without those above it, follows the rule. If not, the error is set with `code`. */
bool wr_file_perms_check_status(const char *path, const struct stat *status, int code, struct wr_error *error);

/* Whether a path follows the rule. *resolved: the path to use, which the caller frees; NULL if the result is
 * false. Nobody else can make it lead to another file. */
bool wr_file_perms_check_path(const char *path, char **resolved, int code, struct wr_error *error);

/* Whether the folders above a path follow the rule, so that a file or folder may be made there. */
bool wr_file_perms_check_above(const char *path, int code, struct wr_error *error);

#endif
