/* temp_folder: a temporary folder for a test's files. Tests that use it set .fini = remove_folder. */
#ifndef TEMP_FOLDER_H
#define TEMP_FOLDER_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-unit-XXXXXX";
static bool has_folder;

/* Returns the path of a name in the folder, which the first call creates. The result is valid for the next 7
 * calls. */
static inline const char *path_in_folder(const char *name)
{
    static char paths[8][sizeof folder + 300];
    static unsigned next;
    char *path = paths[next++ % 8];
    if (!has_folder)
        cr_assert_not_null(mkdtemp(folder));
    has_folder = true;
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Creates a file with exactly this mode, whatever the umask. Returns its path. */
static inline const char *make_file_of(const char *name, const void *contents, size_t length, mode_t mode)
{
    const char *path = path_in_folder(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert_neq(fd, -1, "%s", path);
    cr_assert_eq(write(fd, contents, length), (ssize_t)length);
    cr_assert_eq(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static inline const char *make_file(const char *name, const char *contents, mode_t mode)
{
    return make_file_of(name, contents, strlen(contents), mode);
}

static inline void remove_folder(void)
{
    char command[sizeof folder + 20];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (has_folder)
        cr_assert_eq(system(command), 0);
}

#endif
