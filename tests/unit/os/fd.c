#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../support/temp_folder.h"
#include "os/fd.h"
#include "os/own_fd.h"

static bool is_closed_on_exec(int fd)
{
    return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

Test(fd, a_file_is_never_opened_as_a_standard_stream)
{
    for (int closed = STDIN_FILENO; closed <= STDERR_FILENO; closed++) {
        int kept = dup(closed);
        close(closed);
        int fd = wr_fd_open("/dev/null", O_WRONLY, 0),
            in_folder = wr_fd_open_at(AT_FDCWD, "/dev/null", O_WRONLY, 0);
        bool is_closed = fcntl(closed, F_GETFD) < 0;
        dup2(kept, closed);
        cr_assert(fd > STDERR_FILENO && in_folder > STDERR_FILENO && is_closed, "%d", closed);
        cr_assert(is_closed_on_exec(fd) && is_closed_on_exec(in_folder));
    }
}

Test(fd, a_failed_open_sets_errno)
{
    cr_assert_eq(wr_fd_open("/dev/null/x", O_RDONLY, 0), -1);
    cr_assert_eq(errno, ENOTDIR);
}

Test(fd, a_descriptor_is_compared_with_its_file)
{
    struct stat status;
    int fd = wr_fd_open("/dev/null", O_WRONLY, 0), other = wr_fd_open("/dev/zero", O_RDONLY, 0);
    fstat(fd, &status);
    cr_assert(wr_fd_is_file(fd, status.st_dev, status.st_ino));
    cr_assert_not(wr_fd_is_file(other, status.st_dev, status.st_ino));
    cr_assert_not(wr_fd_is_file(-1, status.st_dev, status.st_ino));
    close(fd);
    cr_assert_not(wr_fd_is_file(fd, status.st_dev, status.st_ino));
}

Test(fd, a_child_closes_only_what_still_is_its_parents)
{
    struct wr_own_fd own = {.fd = -1}, kept = {.fd = -1};
    cr_assert(wr_own_fd_set(&own, wr_fd_open("/dev/null", O_WRONLY, 0)));
    cr_assert(wr_own_fd_set(&kept, wr_fd_open("/dev/null", O_WRONLY, 0)));
    int other = wr_fd_open("/dev/zero", O_RDONLY, 0);
    cr_assert_eq(dup2(other, own.fd), own.fd);
    wr_own_fd_abandon(&own);
    wr_own_fd_abandon(&kept);
    cr_assert(fcntl(own.fd, F_GETFD) >= 0 && fcntl(kept.fd, F_GETFD) < 0);
}

Test(fd, a_path_is_compared_with_the_file_without_following_links, .fini = remove_folder)
{
    const char *path = make_file("file", "", 0600), *link = path_in_folder("link");
    struct stat status;
    int fd = wr_fd_open(path, O_WRONLY, 0);
    fstat(fd, &status);
    cr_assert_eq(symlink(path, link), 0);
    cr_assert(wr_fd_path_is_file(path, status.st_dev, status.st_ino));
    cr_assert_not(wr_fd_path_is_file(link, status.st_dev, status.st_ino));
    cr_assert_not(wr_fd_path_is_file("/dev/null", status.st_dev, status.st_ino));
    cr_assert_not(wr_fd_path_is_file(path, status.st_dev, status.st_ino + 1));
}
