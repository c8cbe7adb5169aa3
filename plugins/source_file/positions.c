#include "positions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../state_folder.h"
#include "../system.h"
#include "text/array.h"
#include "text/hash.h"

#define TITLE "weir file positions 1\n"

/* ---- Where they are -------------------------------------------------------------------------- */

/* A source may have any name; a file may not. */
static void replace_others(char *name)
{
    static const char allowed[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-";
    for (char *at = name + strspn(name, allowed); *at; at += strspn(at, allowed))
        *at = '_';
}

char *positions_default_path(const char *source)
{
    char *name = strdup(source), *file = NULL, *path = NULL;
    if (name)
        replace_others(name);
    if (name && asprintf(&file, "%s.positions", name) >= 0)
        path = state_folder_find(file);
    free(name);
    free(file);
    return path;
}

/* ---- Reading and writing --------------------------------------------------------------------- */

bool positions_add(struct positions *positions, const struct position *position)
{
    struct position *items =
        wr_array_reserve(positions->items, &positions->room, positions->count + 1, sizeof *items);
    if (!items)
        return false;
    positions->items = items;
    struct position *added = &items[positions->count];
    *added = *position;
    added->path = strdup(position->path);
    positions->count += added->path != NULL;
    return added->path;
}

void positions_clear(struct positions *positions)
{
    for (size_t i = 0; i < positions->count; i++)
        free(positions->items[i].path);
    free(positions->items);
    *positions = (struct positions){0};
}

/* Returns false if the line is not understood. */
static bool read_line(const char *line, struct position *position)
{
    int end = 0;
    if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNx64 " %n", &position->device,
               &position->inode, &position->offset, &position->length, &position->hash, &end) != 5)
        return false;
    position->path = (char *)line + end;
    return end && *position->path && position->length <= POSITIONS_HASHED && position->offset <= INT64_MAX;
}

static int read_lines(FILE *file, struct positions *positions, unsigned *fault)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int problem = 0;
    for (unsigned number = 1; !problem && (length = getline(&line, &room, file)) >= 0; number++) {
        struct position position;
        if (number == 1 ? strcmp(line, TITLE) == 0 : length == 0)
            continue;
        if (length && line[length - 1] == '\n')
            line[length - 1] = '\0';
        if (number == 1 || !read_line(line, &position))
            *fault = *fault ? *fault : number;
        else if (!positions_add(positions, &position))
            problem = ENOMEM;
    }
    if (!problem && ferror(file))
        problem = errno;
    free(line);
    return problem;
}

int positions_load(struct positions *positions, const char *path, unsigned *fault)
{
    *fault = 0;
    int fd = wr_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    positions->is_first = fd < 0 && errno == ENOENT;
    if (fd < 0)
        return positions->is_first ? 0 : errno;
    FILE *file = fdopen(fd, "r");
    if (!file) {
        int problem = errno;
        close(fd);
        return problem;
    }
    int problem = read_lines(file, positions, fault);
    fclose(file);
    return problem;
}

static void write_lines(FILE *file, const struct positions *positions)
{
    fputs(TITLE, file);
    for (size_t i = 0; i < positions->count; i++) {
        const struct position *at = &positions->items[i];
        if (!strchr(at->path, '\n')) /* such a file is read anew after a restart */
            fprintf(file, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %016" PRIx64 " %s\n", at->device,
                    at->inode, at->offset, at->length, at->hash, at->path);
    }
}

int positions_save(const struct positions *positions, const char *path)
{
    char fresh[PATH_MAX];
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return ENAMETOOLONG;
    int fd = wr_fd_open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file) {
        int problem = errno;
        if (fd >= 0)
            close(fd);
        return problem;
    }
    write_lines(file, positions);
    int problem = fflush(file) != 0 ? errno : 0;
    if (fclose(file) != 0 && !problem)
        problem = errno;
    if (!problem && rename(fresh, path) != 0)
        problem = errno;
    if (problem)
        unlink(fresh);
    return problem;
}

/* ---- Recognising ----------------------------------------------------------------------------- */

bool positions_hash(int fd, uint32_t length, uint64_t *hash)
{
    char bytes[POSITIONS_HASHED];
    if (pread(fd, bytes, length, 0) != (ssize_t)length)
        return false;
    *hash = wr_hash_bytes(0, bytes, length);
    return true;
}

bool positions_find(const struct positions *positions, int fd, const struct stat *status, const char *path,
                    uint64_t *offset)
{
    for (size_t i = 0; i < positions->count; i++) {
        const struct position *at = &positions->items[i];
        uint64_t hash;
        if (at->inode != status->st_ino || (at->device != status->st_dev && strcmp(at->path, path) != 0) ||
            at->offset > (uint64_t)status->st_size || !positions_hash(fd, at->length, &hash) ||
            hash != at->hash)
            continue;
        *offset = at->offset;
        return true;
    }
    return false;
}
