/* archive: lists the old files by their names: PATH.STAMP and the files of earlier dates, each with or
 * without .gz. */
#ifndef FILE_ARCHIVE_H
#define FILE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings.h"

struct archive_file {
    char *path;     /* without .gz or .gz.tmp */
    int64_t age_us; /* time of rotation, or else of the last write */
    bool stamped;
    bool has_original, has_gz, has_partial; /* which of PATH, PATH.gz, PATH.gz.tmp exist */
};

struct archive {
    struct archive_file *files; /* sorted, oldest first */
    size_t count;
};

/* Lists the old files, without the file in use, `current`. Returns false if out of memory or if the folders
 * cannot be read. */
bool wr_archive_list(struct archive *archive, const struct settings *settings, const char *current);
void wr_archive_fini(struct archive *archive);

/* Deletes the oldest files until `keep` of them are left. Returns 0 or errno; *failed_path is the first file
 * that could not be deleted. */
int wr_archive_trim(struct archive *archive, size_t keep, const char **failed_path);

#endif
