#include "archive.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stamp.h"
#include "template.h"

/* ---- Names ----------------------------------------------------------------------------------- */

/* Parses the end of a name: an optional ".STAMP", then "", ".gz" or ".gz.tmp". Returns false for anything
 * else: not an old file. */
static bool parse_ending(const char *ending, struct archive_file *file)
{
    file->age_us = *ending == '.' ? wr_stamp_parse(ending + 1) : -1;
    file->stamped = file->age_us >= 0;
    if (file->stamped)
        ending += 1 + STAMP_LENGTH;
    file->has_original = !*ending;
    file->has_gz = strcmp(ending, ".gz") == 0;
    file->has_partial = strcmp(ending, ".gz.tmp") == 0;
    return file->has_original || file->has_gz || file->has_partial;
}

/* Parses the path of an old file or of one that was made from it. Returns false if it is neither. */
static bool parse_path(const struct settings *settings, const char *current, const char *path,
                       struct archive_file *file)
{
    static const size_t endings[] = {0, sizeof ".gz" - 1, sizeof ".gz.tmp" - 1};
    const char *ending = wr_template_match(settings->options->path, path);
    *file = (struct archive_file){0};
    if (!ending || !parse_ending(ending, file))
        return false;
    size_t length = strlen(path) - endings[file->has_gz ? 1 : file->has_partial ? 2 : 0];
    bool is_current = strlen(current) == length && memcmp(path, current, length) == 0;
    if (!file->stamped && (!settings->dated || is_current))
        return false;
    file->path = strndup(path, length);
    return file->path;
}

/* Without a stamp: the modification time, which a compressed file has copied. */
static void find_age(struct archive_file *file, const char *path)
{
    struct stat status;
    if (!file->stamped && lstat(path, &status) == 0)
        file->age_us = (int64_t)status.st_mtim.tv_sec * STAMP_US_PER_S + status.st_mtim.tv_nsec / 1000;
}

/* ---- Listing --------------------------------------------------------------------------------- */

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const struct archive_file *)a)->path, ((const struct archive_file *)b)->path);
}

static int compare_ages(const void *a, const void *b)
{
    int64_t one = ((const struct archive_file *)a)->age_us, other = ((const struct archive_file *)b)->age_us;
    return one != other ? (one > other) - (one < other) : compare_paths(a, b);
}

/* Merges the entries of an original and of files made from it. */
static void merge(struct archive *archive)
{
    size_t count = 0;
    qsort(archive->files, archive->count, sizeof *archive->files, compare_paths);
    for (size_t i = 0; i < archive->count; i++) {
        const struct archive_file *file = &archive->files[i];
        struct archive_file *last = count ? &archive->files[count - 1] : NULL;
        if (!last || strcmp(last->path, file->path) != 0) {
            archive->files[count++] = *file;
            continue;
        }
        last->has_original |= file->has_original;
        last->has_gz |= file->has_gz;
        last->has_partial |= file->has_partial;
        free(file->path);
    }
    archive->count = count;
}

bool wr_archive_list(struct archive *archive, const struct settings *settings, const char *current)
{
    char pattern[5 * PATH_MAX];
    glob_t found = {0};
    *archive = (struct archive){0};
    if (!wr_template_glob(settings->options->path, pattern, sizeof pattern))
        return false;
    int error = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (!error)
        archive->files = malloc(found.gl_pathc * sizeof *archive->files);
    for (size_t i = 0; archive->files && i < found.gl_pathc; i++) {
        struct archive_file *file = &archive->files[archive->count];
        if (!parse_path(settings, current, found.gl_pathv[i], file))
            continue;
        find_age(file, found.gl_pathv[i]);
        archive->count++;
    }
    globfree(&found);
    if (!archive->files)
        return error == GLOB_NOMATCH;
    merge(archive);
    qsort(archive->files, archive->count, sizeof *archive->files, compare_ages);
    return true;
}

void wr_archive_fini(struct archive *archive)
{
    for (size_t i = 0; i < archive->count; i++)
        free(archive->files[i].path);
    free(archive->files);
    *archive = (struct archive){0};
}

/* ---- Deleting -------------------------------------------------------------------------------- */

static int delete_path(const char *path, const char *ending)
{
    char full_path[PATH_MAX];
    if ((size_t)snprintf(full_path, sizeof full_path, "%s%s", path, ending) >= sizeof full_path)
        return ENAMETOOLONG;
    return unlink(full_path) == 0 || errno == ENOENT ? 0 : errno;
}

/* The partial file last: a process that is compressing checks whether its source still exists. */
static int delete_file(const struct archive_file *file)
{
    int error = file->has_original ? delete_path(file->path, "") : 0;
    if (!error && file->has_gz)
        error = delete_path(file->path, ".gz");
    if (!error && file->has_partial)
        error = delete_path(file->path, ".gz.tmp");
    return error;
}

int wr_archive_trim(struct archive *archive, size_t keep, const char **failed_path)
{
    size_t excess = archive->count > keep ? archive->count - keep : 0;
    int error = 0;
    for (size_t i = 0; i < excess; i++) {
        int file_error = delete_file(&archive->files[i]);
        if (file_error && !error) {
            error = file_error;
            *failed_path = archive->files[i].path;
        }
        archive->files[i].has_original = archive->files[i].has_original && file_error;
    }
    return error;
}
