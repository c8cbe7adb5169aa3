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

/* Reads the end of a name: ".STAMP", ".gz", ".gz.tmp", the first with one of the others, or nothing. false: it
 * is something else, and so is the file. */
static bool read_ending(const char *ending, struct archive_file *file)
{
    file->age_us = *ending == '.' ? wr_stamp_parse(ending + 1) : -1;
    file->stamped = file->age_us >= 0;
    if (file->stamped)
        ending += 1 + STAMP_LENGTH;
    file->plain = !*ending;
    file->packed = strcmp(ending, ".gz") == 0;
    file->half = strcmp(ending, ".gz.tmp") == 0;
    return file->plain || file->packed || file->half;
}

/* Whether a path is that of an old file, or made from one. */
static bool read_path(const struct settings *settings, const char *current, const char *path,
                      struct archive_file *file)
{
    static const size_t endings[] = {0, sizeof ".gz" - 1, sizeof ".gz.tmp" - 1};
    const char *ending = wr_template_match(settings->options->path, path);
    *file = (struct archive_file){0};
    if (!ending || !read_ending(ending, file))
        return false;
    size_t length = strlen(path) - endings[file->packed ? 1 : file->half ? 2 : 0];
    bool is_current = strlen(current) == length && memcmp(path, current, length) == 0;
    if (!file->stamped && (!settings->dated || is_current))
        return false;
    file->path = strndup(path, length);
    return file->path;
}

/* Without a stamp: by when it was written last, which a compressed file has taken over. */
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

/* A file and what was made from it are one. */
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
        last->plain |= file->plain;
        last->packed |= file->packed;
        last->half |= file->half;
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
    int problem = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (!problem)
        archive->files = malloc(found.gl_pathc * sizeof *archive->files);
    for (size_t i = 0; archive->files && i < found.gl_pathc; i++) {
        struct archive_file *file = &archive->files[archive->count];
        if (!read_path(settings, current, found.gl_pathv[i], file))
            continue;
        find_age(file, found.gl_pathv[i]);
        archive->count++;
    }
    globfree(&found);
    if (!archive->files)
        return problem == GLOB_NOMATCH;
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

static int delete_one(const char *path, const char *ending)
{
    char whole[PATH_MAX];
    if ((size_t)snprintf(whole, sizeof whole, "%s%s", path, ending) >= sizeof whole)
        return ENAMETOOLONG;
    return unlink(whole) == 0 || errno == ENOENT ? 0 : errno;
}

/* What is half done goes last: a process that is at it sees that its source is gone. */
static int delete_file(const struct archive_file *file)
{
    int problem = file->plain ? delete_one(file->path, "") : 0;
    if (!problem && file->packed)
        problem = delete_one(file->path, ".gz");
    if (!problem && file->half)
        problem = delete_one(file->path, ".gz.tmp");
    return problem;
}

int wr_archive_trim(struct archive *archive, size_t keep, const char **stuck)
{
    size_t excess = archive->count > keep ? archive->count - keep : 0;
    int problem = 0;
    for (size_t i = 0; i < excess; i++) {
        int failed = delete_file(&archive->files[i]);
        if (failed && !problem) {
            problem = failed;
            *stuck = archive->files[i].path;
        }
        archive->files[i].plain = archive->files[i].plain && failed;
    }
    return problem;
}
