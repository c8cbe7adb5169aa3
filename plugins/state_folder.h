/* state_folder: the folder in which a program keeps what it has to remember. */
#ifndef WEIR_PLUGINS_STATE_FOLDER_H
#define WEIR_PLUGINS_STATE_FOLDER_H

#include <stdbool.h>

/* Returns $STATE_DIRECTORY, the first of several, else $XDG_STATE_HOME/weir, else ~/.local/state/weir, with
 * "/NAME" behind it if name is not NULL. The caller frees it. NULL: none of them is an absolute path, or out of
 * memory. */
char *state_folder_find(const char *name);

/* Makes the folders of a path, mode 0700: all of them, or those above its last part. Returns 0 or errno. */
int state_folder_make(const char *path, bool is_whole);

#endif
