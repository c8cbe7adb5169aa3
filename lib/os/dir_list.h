/* dir_list: reads a folder's entries. An error in the middle is distinguished from the end: there may be more.
 */
#ifndef WR_DIR_LIST_H
#define WR_DIR_LIST_H

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the next entry. NULL: the end, with *problem 0, or an error, with *problem set to errno. */
static inline const struct dirent *wr_dir_list_next(DIR *folder, int *problem)
{
    errno = 0;
    const struct dirent *entry = readdir(folder);
    *problem = entry ? 0 : errno;
    return entry;
}

/* Reads the number in the name of a file. Returns false if it is not one of that kind. */
typedef bool wr_dir_list_read(const char *name, const char *kind, uint64_t *number);

/* Returns the numbers of all files of a kind, ascending; the caller frees them. NULL, with errno: the folder
 * cannot be read, or out of memory. */
uint64_t *wr_dir_list_numbers(const char *path, wr_dir_list_read *read, const char *kind, size_t *count);

#endif
