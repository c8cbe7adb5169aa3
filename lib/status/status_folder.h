/* status_folder: the folders of status files, and the rules for folders and files.
 *
 * Several users may share a folder, like /tmp, if it is sticky: then no user can remove or replace another
 * one's file. Any other folder must belong to the user or root. File names contain a number beside the pid,
 * since processes of several pid namespaces may share a folder. A process holds a lock (flock) on its file,
 * which the kernel releases whenever the process ends. */
#ifndef WR_STATUS_FOLDER_H
#define WR_STATUS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_error;

enum { WR_STATUS_FOLDERS_MOST = 3, WR_STATUS_PATH_ROOM = 512, WR_STATUS_FILE_ROOM = 64 };

/* Lists the folders that "auto" may mean, in order of preference. Returns their number. */
size_t wr_status_folder_list(char paths[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM]);

/* Opens the folder for new files by the setting, "auto" or a path, and creates it if it does not exist. path:
 * set to the folder's path, at least WR_STATUS_PATH_ROOM bytes. Returns a descriptor, or -1 with the error set.
 */
int wr_status_folder_open(const char *setting, char *path, struct wr_error *error);

/* Writes "PID.NUMBER.status". A file that is not complete yet has a dot before its name. */
void wr_status_folder_put_name(char out[WR_STATUS_FILE_ROOM], int64_t pid, uint32_t number);

/* Whether it is the name of a complete file. *pid: set to its process, in an unknown pid namespace. */
bool wr_status_folder_is_name(const char *name, int64_t *pid);

/* Opens a file for reading. Returns -1 with errno set if that fails, or if it is a link or not a regular file.
 */
int wr_status_folder_open_file(int folder, const char *name);

/* Whether the process of the file is alive, that is, holds its lock. */
bool wr_status_folder_is_held(int file);

/* Removes files of the calling user whose processes have ended. */
void wr_status_folder_tidy(int folder);

#endif
