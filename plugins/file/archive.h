/* archive: the old files, as their names tell: PATH.STAMP, and the files of earlier dates, all of them with or
 * without .gz. */
#ifndef FILE_ATTIC_H
#define FILE_ATTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings.h"

struct archive_file {
    char *path;     /* as it was before it was compressed */
    int64_t age_us; /* when it was put aside, or written last: larger is younger */
    bool stamped;
    bool plain, packed, half; /* whether there is PATH, PATH.gz, PATH.gz.tmp */
};

struct archive {
    struct archive_file *files; /* the oldest first */
    size_t count;
};

/* Lists them; `current` is in use and none of them. false: no memory, or the folders cannot be read. */
bool wr_archive_list(struct archive *archive, const struct settings *settings, const char *current);
void wr_archive_fini(struct archive *archive);

/* Deletes the oldest, until `keep` of them are left. 0, or errno, with the place of a file that could not be
 * deleted in *stuck. */
int wr_archive_trim(struct archive *archive, size_t keep, const char **stuck);

#endif
