/* status_folder: the folders in which status files are, and the rules for both.
 *
 * Several users may share a folder, as they share /tmp, if it is sticky: then nobody can take away or replace
 * another one's file. Any other folder is the user's own, or root's. A file's name holds a number that makes it
 * the only one, since processes of several pid namespaces may share a folder. Its process holds a lock on it
 * (flock), which the kernel frees when the process dies, in whatever way. */
#ifndef WR_STATUS_FOLDER_H
#define WR_STATUS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_error;

enum { WR_STATUS_FOLDERS_MOST = 3, WR_STATUS_PATH_ROOM = 512, WR_STATUS_FILE_ROOM = 64 };

/* The folders that "auto" may stand for, best first; answers how many there are. */
size_t wr_status_folder_list(char paths[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM]);

/* Opens a folder to make a file in, by the setting: "auto", or a path. It is made if it is missing. path: the
 * folder's, at least WR_STATUS_PATH_ROOM. Answers a descriptor; -1: the error tells why. */
int wr_status_folder_open(const char *setting, char *path, struct wr_error *error);

/* "PID.NUMBER.status"; one that is not complete yet has a dot in front. */
void wr_status_folder_put_name(char out[WR_STATUS_FILE_ROOM], int64_t pid, uint32_t number);

/* Whether it is the name of a file that is complete; its process, in whatever pid namespace. */
bool wr_status_folder_is_name(const char *name, int64_t *pid);

/* Opens a file to read, if it is one that a process may have made: a regular one, no link. -1: it is not, or
 * cannot be opened: errno. */
int wr_status_folder_open_file(int folder, const char *name);

/* Whether the process that made the file lives and holds it. Leaves the file as it is. */
bool wr_status_folder_is_held(int file);

/* Removes the files of the calling user whose processes are gone. */
void wr_status_folder_tidy(int folder);

#endif
