/* listing: what is in a folder. An error in the middle must not look like the end: then there may be more. */
#ifndef WR_LISTING_H
#define WR_LISTING_H

#include <dirent.h>
#include <errno.h>

/* The next entry; NULL at the end, or when the folder cannot be read: *problem is errno then, else 0. */
static inline const struct dirent *wr_listing_next(DIR *folder, int *problem)
{
    errno = 0;
    const struct dirent *entry = readdir(folder);
    *problem = entry ? 0 : errno;
    return entry;
}

#endif
