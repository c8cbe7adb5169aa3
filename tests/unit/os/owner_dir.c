/* Folders of processes inside the folder of a spool: names, locks, permissions, and adoption. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <sys/file.h>

#include "text/error.h"
#include "../../support/temp_folder.h"
#include "os/owner_dir.h"

static struct wr_error error;
static const char *place;

static void setup(void)
{
    place = strdup(path_in_folder("spool"));
    cr_assert(wr_owner_dir_check_place(place, true, &error), "%s", error.text);
}

TestSuite(owner_dir, .init = setup, .fini = remove_folder);

static struct wr_owner_dir make(const char *handler)
{
    struct wr_owner_dir dir;
    cr_assert(wr_owner_dir_make(&dir, place, handler, &error), "%s", error.text);
    return dir;
}

static const char *name_of(const struct wr_owner_dir *dir)
{
    return strrchr(dir->path, '/') + 1;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void put_file(const struct wr_owner_dir *dir, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir->path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    close(fd);
}

/* Simulates the death of the process: releases the lock and leaves the files. */
static void simulate_death(struct wr_owner_dir *dir)
{
    wr_owner_dir_leave(dir);
}

/* Simulates another process that looks for orphans between this one's mkdir and chmod. */
static bool deletes_new_folder;
int __real_chmod(const char *path, mode_t mode);
int __wrap_chmod(const char *path, mode_t mode);

int __wrap_chmod(const char *path, mode_t mode)
{
    if (deletes_new_folder)
        rmdir(path);
    deletes_new_folder = false;
    return __real_chmod(path, mode);
}

Test(owner_dir, a_folder_deleted_during_its_creation_is_created_again)
{
    deletes_new_folder = true;
    struct wr_owner_dir dir = make("push");
    cr_assert_not(deletes_new_folder);
    cr_assert(exists(dir.path));
    wr_owner_dir_remove(&dir);
}

/* ---- The spool folder ------------------------------------------------------------------------ */

Test(owner_dir, the_spool_folder_is_created_with_mode_0700)
{
    struct stat status;
    umask(0277);
    const char *other = path_in_folder("other");
    cr_assert(wr_owner_dir_check_place(other, true, &error), "%s", error.text);
    cr_assert_eq(stat(other, &status), 0);
    cr_assert_eq(status.st_mode & 07777, 0700);
    cr_assert(wr_owner_dir_check_place(other, true, &error), "the folder may exist already");
    umask(022);
}

Test(owner_dir, a_missing_spool_folder_is_no_error_when_nothing_is_created)
{
    cr_assert_not(wr_owner_dir_check_place(path_in_folder("none"), false, &error));
    cr_assert_eq(error.code, WEIR_OK);
    cr_assert_not(exists(path_in_folder("none")));
}

Test(owner_dir, parent_folders_are_not_created)
{
    cr_assert_not(wr_owner_dir_check_place(path_in_folder("none/spool"), true, &error));
    cr_assert_neq(error.code, WEIR_OK);
    cr_assert(strstr(error.text, "/none/spool: No such file or directory"), "%s", error.text);
}

Test(owner_dir, a_spool_folder_that_others_may_write_is_refused)
{
    char text[600];
    cr_assert_eq(chmod(place, 01777), 0);
    cr_assert_not(wr_owner_dir_check_place(place, true, &error));
    snprintf(text, sizeof text, "%s: refused: others may write this folder (mode 1777); chmod o-w helps",
             place);
    cr_assert_str_eq(error.text, text);
}

Test(owner_dir, a_parent_folder_that_others_may_write_is_refused_unless_it_is_sticky)
{
    char text[600];
    cr_assert_eq(chmod(folder, 0777), 0);
    cr_assert_not(wr_owner_dir_check_place(place, true, &error));
    snprintf(text, sizeof text,
             "%s: refused: others may write the folder %s (mode 0777); chmod o-w or +t helps", place, folder);
    cr_assert_str_eq(error.text, text);
    cr_assert_eq(chmod(folder, 01777), 0);
    cr_assert(wr_owner_dir_check_place(place, true, &error), "as in /tmp");
}

Test(owner_dir, a_spool_folder_of_another_user_is_refused_even_by_root)
{
    if (geteuid() != 0)
        cr_skip_test("only root can give files away");
    cr_assert_eq(chown(place, 4711, 0), 0);
    cr_assert_not(wr_owner_dir_check_place(place, true, &error));
    cr_assert(strstr(error.text, "refused: another user (4711) owns this folder"), "%s", error.text);
}

Test(owner_dir, a_file_in_place_of_the_spool_folder_is_refused)
{
    const char *file = make_file("file", "", 0600);
    cr_assert_not(wr_owner_dir_check_place(file, true, &error));
    cr_assert(strstr(error.text, "Not a directory"), "%s", error.text);
}

/* ---- Names ----------------------------------------------------------------------------------- */

Test(owner_dir, the_name_contains_handler_and_process)
{
    struct wr_owner_dir dir = make("push");
    char start[40];
    cr_assert_eq(strncmp(name_of(&dir), "push.", 5), 0, "%s", dir.path);
    snprintf(start, sizeof start, ".%ld.0", (long)getpid());
    cr_assert_str_eq(name_of(&dir) + 5 + 8, start);
    wr_owner_dir_remove(&dir);
}

Test(owner_dir, a_dir_matches_only_its_handler)
{
    struct wr_owner_dir dir = make("push");
    const char *name = name_of(&dir);
    char longer[300];
    cr_assert(wr_owner_dir_is_name(name, "push"));
    cr_assert(wr_owner_dir_is_name(name, NULL));
    cr_assert_not(wr_owner_dir_is_name(name, "pusher"));
    cr_assert_not(wr_owner_dir_is_name(name, "pus"));
    snprintf(longer, sizeof longer, "%s-00000000000000000000.seg.bad", name);
    cr_assert_not(wr_owner_dir_is_name(longer, "push"));
    cr_assert_not(wr_owner_dir_is_name(longer, NULL));
    static const char *const others[] = {"",
                                         ".",
                                         "..",
                                         "push",
                                         "push.",
                                         "push.12345678",
                                         "push.1234567g.1.2",
                                         "push.12345678.1",
                                         "push.12345678.1.",
                                         "push.12345678..2",
                                         ".12345678.1.2"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_assert_not(wr_owner_dir_is_name(others[i], NULL), "\"%s\"", others[i]);
    wr_owner_dir_remove(&dir);
}

Test(owner_dir, any_handler_name_makes_a_valid_file_name)
{
    char name[256];
    memset(name, '/', 255);
    name[255] = '\0';
    static const char *const names[] = {"../../etc", "a.b", "Ünïcode", "with space", "*"};
    for (size_t i = 0; i < sizeof names / sizeof *names + 1; i++) {
        const char *handler = i < sizeof names / sizeof *names ? names[i] : name;
        struct wr_owner_dir dir = make(handler);
        cr_assert(wr_owner_dir_is_name(name_of(&dir), handler));
        cr_assert_eq(strncmp(dir.path, place, strlen(place)), 0);
        wr_owner_dir_remove(&dir);
        cr_assert_not(exists(dir.path ? dir.path : "/nowhere"));
    }
}

Test(owner_dir, handlers_with_similar_names_have_different_dirs)
{
    struct wr_owner_dir a = make("a.b"), b = make("a/b");
    cr_assert_not(wr_owner_dir_is_name(name_of(&a), "a/b"));
    cr_assert_not(wr_owner_dir_is_name(name_of(&b), "a.b"));
    wr_owner_dir_remove(&a);
    wr_owner_dir_remove(&b);
}

/* ---- Locks ----------------------------------------------------------------------------------- */

Test(owner_dir, each_call_creates_a_new_dir)
{
    struct wr_owner_dir a = make("push"), b = make("push");
    cr_assert_str_neq(a.path, b.path);
    wr_owner_dir_remove(&a);
    wr_owner_dir_remove(&b);
}

Test(owner_dir, a_dir_in_use_is_not_adopted)
{
    struct wr_owner_dir dir = make("push"), other;
    cr_assert_not(wr_owner_dir_adopt(&other, place, name_of(&dir)));
    cr_assert_null(other.path);
    wr_owner_dir_remove(&dir);
}

Test(owner_dir, a_dir_of_a_dead_process_is_adopted_once)
{
    struct wr_owner_dir dir = make("push"), first, second;
    simulate_death(&dir);
    cr_assert(wr_owner_dir_adopt(&first, place, name_of(&dir)));
    cr_assert_not(wr_owner_dir_adopt(&second, place, name_of(&dir)));
    wr_owner_dir_remove(&first);
    cr_assert_not(exists(dir.path));
    free(dir.path);
}

Test(owner_dir, a_dir_without_a_lock_file_is_removed_if_empty)
{
    char path[600];
    struct wr_owner_dir dir;
    snprintf(path, sizeof path, "%s/push.12345678.1.0", place);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_not(wr_owner_dir_adopt(&dir, place, "push.12345678.1.0"));
    cr_assert_not(exists(path));
}

Test(owner_dir, a_link_is_not_adopted)
{
    char link[600];
    struct wr_owner_dir dir = make("push"), other;
    simulate_death(&dir);
    snprintf(link, sizeof link, "%s/push.12345678.1.0", place);
    cr_assert_eq(symlink(dir.path, link), 0);
    cr_assert_not(wr_owner_dir_adopt(&other, place, "push.12345678.1.0"));
    free(dir.path);
}

Test(owner_dir, dirs_of_other_users_are_ignored)
{
    if (geteuid() != 0)
        cr_skip_test("only root can give files away");
    struct wr_owner_dir dir = make("push"), other;
    simulate_death(&dir);
    cr_assert_eq(chown(dir.path, 4711, 0), 0);
    cr_assert_not(wr_owner_dir_adopt(&other, place, name_of(&dir)));
    free(dir.path);
}

Test(owner_dir, a_lock_whose_descriptor_was_closed_is_acquired_again)
{
    struct wr_owner_dir dir = make("push"), other;
    cr_assert(wr_owner_dir_hold(&dir));
    close(dir.lock.fd);
    cr_assert(wr_owner_dir_hold(&dir));
    cr_assert_not(wr_owner_dir_adopt(&other, place, name_of(&dir)), "it is held again");
    wr_owner_dir_remove(&dir);
}

Test(owner_dir, a_descriptor_number_reused_by_another_file_is_not_closed)
{
    struct wr_owner_dir dir = make("push");
    int stranger = open("/dev/null", O_RDONLY | O_CLOEXEC), number = dir.lock.fd;
    cr_assert_eq(dup2(stranger, number), number);
    cr_assert(wr_owner_dir_hold(&dir));
    cr_assert_neq(dir.lock.fd, number);
    cr_assert_neq(fcntl(number, F_GETFL), -1, "it is still open");
    wr_owner_dir_remove(&dir);
}

Test(owner_dir, a_dir_that_another_process_adopted_is_not_held)
{
    struct wr_owner_dir dir = make("push"), other;
    close(dir.lock.fd);
    cr_assert(wr_owner_dir_adopt(&other, place, name_of(&dir)));
    dir.lock.fd = -1;
    cr_assert_not(wr_owner_dir_hold(&dir));
    wr_owner_dir_remove(&other);
    free(dir.path);
}

Test(owner_dir, a_deleted_dir_is_not_held)
{
    struct wr_owner_dir dir = make("push");
    char command[700];
    snprintf(command, sizeof command, "rm -r %s", dir.path);
    cr_assert_eq(system(command), 0);
    cr_assert_not(wr_owner_dir_hold(&dir));
    wr_owner_dir_remove(&dir);
}

Test(owner_dir, abandoning_a_dir_in_a_child_keeps_the_parents_lock)
{
    struct wr_owner_dir dir = make("push"), other;
    int number = dir.lock.fd, copy = dup(dir.lock.fd); /* the parent's */
    wr_owner_dir_abandon(&dir);
    cr_assert_eq(fcntl(number, F_GETFL), -1);
    cr_assert_not(wr_owner_dir_adopt(&other, place, name_of(&dir)));
    close(copy);
    cr_assert(wr_owner_dir_adopt(&other, place, name_of(&dir)), "the copy was the last descriptor of the lock");
    wr_owner_dir_remove(&other);
    free(dir.path);
}

Test(owner_dir, a_duplicate_of_the_lock_descriptor_does_not_prevent_adoption)
{
    struct wr_owner_dir dir = make("push"), other;
    int copy = dup(dir.lock.fd); /* as a child forked at this moment would have */
    wr_owner_dir_leave(&dir);
    cr_assert(wr_owner_dir_adopt(&other, place, name_of(&dir)));
    wr_owner_dir_remove(&other);
    close(copy);
    free(dir.path);
}

/* ---- Files ----------------------------------------------------------------------------------- */

Test(owner_dir, files_are_listed_by_number)
{
    size_t count;
    struct wr_owner_dir dir = make("push");
    put_file(&dir, "00000000000000000200.seg");
    put_file(&dir, "18446744073709551615.seg");
    put_file(&dir, "00000000000000000003.seg");
    put_file(&dir, "99999999999999999999.seg"); /* exceeds 64 bits */
    put_file(&dir, "0000000000000000004.seg");
    put_file(&dir, "00000000000000000005.seg.bad");
    uint64_t *numbers = wr_owner_dir_list(&dir, &count);
    cr_assert_eq(count, 3);
    cr_assert_eq(numbers[0], 3);
    cr_assert_eq(numbers[1], 200);
    cr_assert_eq(numbers[2], UINT64_MAX);
    free(numbers);
    char *path = wr_owner_dir_file(&dir, 200);
    cr_assert(exists(path), "%s", path);
    free(path);
    wr_owner_dir_leave(&dir);
    free(dir.path);
}

Test(owner_dir, the_list_of_an_empty_dir_is_empty)
{
    size_t count = 7;
    struct wr_owner_dir dir = make("push");
    uint64_t *numbers = wr_owner_dir_list(&dir, &count);
    cr_assert_not_null(numbers);
    cr_assert_eq(count, 0);
    free(numbers);
    wr_owner_dir_remove(&dir);
}

Test(owner_dir, a_dir_with_files_is_kept_for_the_next_process)
{
    struct wr_owner_dir dir = make("push"), other;
    char *path = strdup(dir.path);
    put_file(&dir, "strange");
    wr_owner_dir_remove(&dir);
    cr_assert(exists(path));
    cr_assert(wr_owner_dir_adopt(&other, place, strrchr(path, '/') + 1));
    wr_owner_dir_leave(&other);
    free(other.path);
    free(path);
}

static size_t count_bad(void)
{
    size_t count = 0;
    const struct dirent *entry;
    DIR *entries = opendir(place);
    while ((entry = readdir(entries)))
        count += strstr(entry->d_name, ".bad") != NULL;
    closedir(entries);
    return count;
}

Test(owner_dir, a_limited_number_of_damaged_files_is_kept)
{
    struct wr_owner_dir dir = make("push");
    for (unsigned i = 0; i < 20; i++) {
        char name[40];
        snprintf(name, sizeof name, "%020u.seg", i);
        put_file(&dir, name);
        cr_assert_eq(wr_owner_dir_keep_bad(&dir, i), i < 8);
        char *path = wr_owner_dir_file(&dir, i);
        cr_assert_not(exists(path));
        free(path);
    }
    cr_assert_eq(count_bad(), 8);
    struct wr_owner_dir other = make("pull");
    put_file(&other, "00000000000000000000.seg");
    cr_assert(wr_owner_dir_keep_bad(&other, 0), "the limit is per handler");
    wr_owner_dir_remove(&dir);
    wr_owner_dir_remove(&other);
}
