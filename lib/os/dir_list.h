/* dir_list: reads a folder's entries. An error in the middle is distinguished from the end: there may be more.
 */
#ifndef WR_DIR_LIST_H
#define WR_DIR_LIST_H

#include <dirent.h>
#include <errno.h>

/* Returns the next entry. NULL: the end, with *problem 0, or an error, with *problem set to errno. */
static inline const struct dirent *wr_dir_list_next(DIR *folder, int *problem)
{
    errno = 0;
    const struct dirent *entry = readdir(folder);
    *problem = entry ? 0 : errno;
    return entry;
}

#endif
