/* The status file and its folder: interference by other users and processes, and files of dead processes. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "text/error.h"
#include "../../support/temp_folder.h"
#include "status/status_file.h"
#include "status/status_folder.h"

static struct wr_status_file file;
static struct wr_error error;

static void remove_all(void)
{
    wr_status_file_remove(&file);
    remove_folder();
}

TestSuite(status_file, .fini = remove_all);

static bool write_in(const char *place, const char *page)
{
    error = (struct wr_error){0};
    return wr_status_file_write(&file, place, page, strlen(page), &error);
}

/* Creates a folder with exactly this mode. */
static const char *make_place(const char *name, mode_t mode)
{
    const char *place = path_in_folder(name);
    cr_assert(mkdir(place, 0700) == 0 && chmod(place, mode) == 0);
    return place;
}

static const char *contents_of(const char *path)
{
    static char text[200];
    FILE *from = fopen(path, "r");
    cr_assert_not_null(from, "%s", path);
    text[fread(text, 1, sizeof text - 1, from)] = '\0';
    fclose(from);
    return text;
}

static int count_entries(const char *place)
{
    int count = 0;
    DIR *list = opendir(place);
    for (const struct dirent *entry; (entry = readdir(list));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(list);
    return count;
}

static bool is_held(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_neq(fd, -1, "%s", path);
    bool held = wr_status_folder_is_held(fd);
    close(fd);
    return held;
}

Test(status_file, the_file_has_mode_0600_and_is_removed_completely)
{
    struct stat status;
    const char *place = path_in_folder("place");
    umask(0);
    cr_assert(write_in(place, "page"), "%s", error.text);
    cr_assert(stat(place, &status) == 0 && (status.st_mode & 07777) == 0700);
    cr_assert(stat(file.path, &status) == 0 && (status.st_mode & 07777) == 0600);
    cr_assert_str_eq(contents_of(file.path), "page");
    cr_assert(is_held(file.path));
    cr_assert_eq(count_entries(place), 1);
    wr_status_file_remove(&file);
    cr_assert_eq(count_entries(place), 0);
    cr_assert_null(file.path);
}

Test(status_file, modes_do_not_depend_on_the_umask)
{
    struct stat status;
    umask(0777);
    cr_assert(write_in(path_in_folder("place"), "page"), "%s", error.text);
    umask(022);
    cr_assert(stat(file.path, &status) == 0 && (status.st_mode & 07777) == 0600);
}

Test(status_file, the_process_id_is_part_of_its_name_and_read_back)
{
    int64_t pid = 0;
    char name[WR_STATUS_FILE_ROOM];
    wr_status_folder_put_name(name, 4711, 0xabc);
    cr_assert_str_eq(name, "4711.00000abc.status");
    cr_assert(wr_status_folder_is_name(name, &pid) && pid == 4711);
    for (const char **bad = (const char *[]){"", ".", "4711", "4711.status", "4711.00000abc.statu",
                                             ".4711.00000abc.status", "x.00000abc.status", "1.00000ABC.status",
                                             "1.00000abc.status~", "9999999999999999999.00000abc.status", NULL};
         *bad; bad++)
        cr_assert(!wr_status_folder_is_name(*bad, &pid), "%s", *bad);
}

Test(status_file, the_file_is_rewritten_in_place)
{
    struct stat before, after;
    const char *place = path_in_folder("place");
    cr_assert(write_in(place, "page") && stat(file.path, &before) == 0);
    cr_assert(write_in(place, "a longer page") && stat(file.path, &after) == 0);
    cr_assert_eq(before.st_ino, after.st_ino);
    cr_assert_str_eq(contents_of(file.path), "a longer page");
}

Test(status_file, a_removed_file_is_created_again)
{
    const char *place = path_in_folder("place");
    cr_assert(write_in(place, "page") && unlink(file.path) == 0);
    cr_assert(write_in(place, "again"), "%s", error.text);
    cr_assert_str_eq(contents_of(file.path), "again");
    cr_assert(is_held(file.path));
    cr_assert_eq(count_entries(place), 1);
}

Test(status_file, another_file_in_its_place_is_not_touched)
{
    char old[300];
    const char *place = path_in_folder("place"), *precious = make_file("precious", "precious", 0600);
    cr_assert(write_in(place, "page"));
    snprintf(old, sizeof old, "%s", file.path);
    cr_assert(unlink(old) == 0 && symlink(precious, old) == 0);
    cr_assert(write_in(place, "again"), "%s", error.text);
    cr_assert_str_eq(contents_of(precious), "precious");
    cr_assert_str_neq(file.path, old);
    cr_assert(unlink(old) == 0 && symlink(precious, file.path) == -1);
}

Test(status_file, a_truncated_file_is_complete_after_the_next_write)
{
    const char *place = path_in_folder("place");
    cr_assert(write_in(place, "page") && truncate(file.path, 0) == 0);
    cr_assert(write_in(place, "whole"), "%s", error.text);
    cr_assert_str_eq(contents_of(file.path), "whole");
}

/* Daemons close all descriptors; later files reuse their numbers. */
Test(status_file, a_descriptor_number_reused_by_another_file_is_neither_used_nor_closed)
{
    const char *place = path_in_folder("place"), *strangers = make_file("strangers", "stranger", 0600);
    cr_assert(write_in(place, "page"));
    int number = file.lock.fd;
    close(number);
    cr_assert(!is_held(file.path));
    int stranger = open(strangers, O_RDWR | O_CLOEXEC);
    if (stranger != number)
        cr_assert(dup2(stranger, number) == number && close(stranger) == 0);
    stranger = number;
    cr_assert(write_in(place, "again"));
    cr_assert(is_held(file.path), "the lock is acquired again");
    wr_status_file_remove(&file);
    cr_assert_neq(fcntl(stranger, F_GETFD), -1, "it is still open");
    cr_assert_str_eq(contents_of(strangers), "stranger");
    close(stranger);
}

Test(status_file, a_full_disk_leaves_the_previous_page_unchanged)
{
    const struct rlimit tight = {8, RLIM_INFINITY}, wide = {RLIM_INFINITY, RLIM_INFINITY};
    const char *place = path_in_folder("place");
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(write_in(place, "page") && setrlimit(RLIMIT_FSIZE, &tight) == 0);
    cr_assert(!write_in(place, "a page that does not fit"));
    cr_assert_not_null(strstr(error.text, strerror(EFBIG)), "%s", error.text);
    cr_assert_str_eq(contents_of(file.path), "page");
    cr_assert(write_in(place, "fits"));
    setrlimit(RLIMIT_FSIZE, &wide);
    cr_assert(write_in(place, "a page that does not fit"));
}

Test(status_file, a_disk_that_is_full_from_the_start_gets_no_file)
{
    const struct rlimit tight = {8, RLIM_INFINITY}, wide = {RLIM_INFINITY, RLIM_INFINITY};
    const char *place = make_place("place", 0700);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tight);
    cr_assert(!write_in(place, "a page that does not fit"));
    setrlimit(RLIMIT_FSIZE, &wide);
    cr_assert_null(file.path);
    cr_assert_eq(count_entries(place), 0);
}

/* ---- Folders --------------------------------------------------------------------------------- */

Test(status_file, a_link_is_not_a_folder_even_with_a_trailing_slash)
{
    char slashed[300];
    const char *place = make_place("place", 0700), *link = path_in_folder("link");
    cr_assert_eq(symlink(place, link), 0);
    cr_assert(!write_in(link, "page"));
    snprintf(slashed, sizeof slashed, "%s//", link);
    cr_assert(!write_in(slashed, "page"));
    cr_assert_eq(count_entries(place), 0);
    snprintf(slashed, sizeof slashed, "%s/", place);
    cr_assert(write_in(slashed, "page"), "%s", error.text);
}

Test(status_file, a_folder_that_others_may_write_is_refused_unless_it_is_sticky)
{
    char expected[400];
    const char *open_place = make_place("open", 0777), *shared = make_place("shared", 01777);
    cr_assert(!write_in(open_place, "page"));
    snprintf(expected, sizeof expected,
             "%s: refused: others may write this folder (mode 0777); chmod go-w or +t helps", open_place);
    cr_assert_str_eq(error.text, expected);
    cr_assert(!write_in(make_place("group", 0770), "page"));
    cr_assert(write_in(shared, "page"), "%s", error.text);
}

Test(status_file, a_folder_of_another_user_is_refused)
{
    if (geteuid() != 0)
        cr_skip_test("only root can make one");
    char expected[400];
    const char *place = make_place("place", 0755);
    cr_assert(chown(place, 54321, 54321) == 0 && chmod(folder, 0755) == 0);
    cr_assert(!write_in(place, "page"));
    snprintf(expected, sizeof expected, "%s: refused: another user (54321) owns this folder", place);
    cr_assert_str_eq(error.text, expected);
    cr_assert_eq(count_entries(place), 0);
}

Test(status_file, an_unusable_folder_is_reported)
{
    cr_assert(!write_in("/no/such/folder", "page"));
    cr_assert_str_eq(error.text, "/no/such/folder: No such file or directory");
    const char *plain = make_file("plain", "", 0600);
    cr_assert(!write_in(plain, "page"));
}

Test(status_file, auto_uses_the_login_folder_if_the_user_owns_it)
{
    char paths[WR_STATUS_FOLDERS_MOST][WR_STATUS_PATH_ROOM], expected[300];
    const char *login = make_place("login", 0700);
    setenv("XDG_RUNTIME_DIR", login, 1);
    cr_assert_eq(wr_status_folder_list(paths), 3);
    snprintf(expected, sizeof expected, "%s/weir", login);
    cr_assert_str_eq(paths[0], expected);
    cr_assert(write_in("auto", "page"), "%s", error.text);
    cr_assert_eq(strncmp(file.path, expected, strlen(expected)), 0, "%s", file.path);
    for (const char **bad = (const char *[]){"", "relative", "/no/such/folder", NULL}; *bad; bad++) {
        setenv("XDG_RUNTIME_DIR", *bad, 1);
        cr_assert_eq(wr_status_folder_list(paths), 2, "%s", *bad);
        cr_assert_str_eq(paths[0], "/run/weir");
    }
}

/* ---- Files of dead processes ----------------------------------------------------------------- */

Test(status_file, only_files_of_dead_processes_are_removed)
{
    const char *place = make_place("place", 0700);
    make_file("place/1.00000000.status", "dead", 0600);
    make_file("place/.1.00000001.status", "dead while it was made", 0600);
    const char *alive = make_file("place/1.00000002.status", "alive", 0600);
    const char *other = make_file("place/other.status", "not ours", 0600);
    const char *link = path_in_folder("place/1.00000003.status");
    cr_assert_eq(symlink(other, link), 0);
    int held = open(alive, O_RDONLY | O_CLOEXEC);
    cr_assert_eq(flock(held, LOCK_EX), 0);
    cr_assert(write_in(place, "page"), "%s", error.text);
    cr_assert_eq(count_entries(place), 4,
                 "the new file, that of the live process, the unrelated one, and the link");
    cr_assert_str_eq(contents_of(alive), "alive");
    cr_assert_str_eq(contents_of(other), "not ours");
    close(held);
}

Test(status_file, a_fifo_in_its_folder_does_not_block)
{
    const char *place = make_place("place", 0700);
    cr_assert_eq(mkfifo(path_in_folder("place/1.00000000.status"), 0600), 0);
    cr_assert(write_in(place, "page"), "%s", error.text);
    int at = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_eq(wr_status_folder_open_file(at, "1.00000000.status"), -1);
    close(at);
}

Test(status_file, checking_the_lock_does_not_acquire_it)
{
    cr_assert(write_in(path_in_folder("place"), "page"));
    for (int i = 0; i < 10; i++)
        cr_assert(is_held(file.path));
    const char *dead = make_file("dead", "", 0600);
    cr_assert(!is_held(dead) && !is_held(dead));
}

/* ---- Fork ------------------------------------------------------------------------------------ */

Test(status_file, a_child_releases_its_parents_file_and_may_create_its_own)
{
    const char *place = path_in_folder("place");
    int status;
    cr_assert(write_in(place, "parent"));
    cr_assert(wr_lock_enter_by(&file.disk, INT64_MAX));
    pid_t child = fork();
    if (child == 0) {
        int lock = file.lock.fd;
        wr_status_file_abandon(&file);
        bool good =
            fcntl(lock, F_GETFD) == -1 && !file.path && write_in(place, "child") && count_entries(place) == 2;
        wr_status_file_remove(&file);
        _exit(good ? 0 : 1);
    }
    wr_lock_leave(&file.disk);
    waitpid(child, &status, 0);
    cr_assert_eq(status, 0);
    cr_assert_eq(count_entries(place), 1);
    cr_assert(is_held(file.path));
    cr_assert(write_in(place, "parent, later"));
    cr_assert_str_eq(contents_of(file.path), "parent, later");
}

Test(status_file, the_lock_is_released_when_its_process_ends)
{
    const char *place = path_in_folder("place");
    int ready[2];
    char path[300] = "", byte = 0;
    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        bool written = write_in(place, "page");
        ssize_t sent = written ? write(ready[1], file.path, strlen(file.path) + 1) : -1;
        (void)sent;
        pause();
    }
    for (size_t i = 0; i < sizeof path && read(ready[0], &byte, 1) == 1 && byte; i++)
        path[i] = byte;
    cr_assert(is_held(path), "%s", path);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_assert(!is_held(path));
    cr_assert(write_in(place, "mine"));
    cr_assert_eq(count_entries(place), 1);
}
