#include <criterion/criterion.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/error.h"
#include "../../support/temp_folder.h"
#include "os/file_perms.h"

static struct wr_error error;

static bool is_trusted(mode_t mode, uid_t owner, gid_t group)
{
    const struct stat status = {.st_mode = mode, .st_uid = owner, .st_gid = group};
    error = (struct wr_error){0};
    return wr_file_perms_check_status("/etc/weir.json", &status, WEIR_ERR_CONFIG, &error);
}

static void expect_refused(const char *text)
{
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert_str_eq(error.text, text);
}

/* Drops root privileges if the test runs as root. */
static void drop_root(void)
{
    if (geteuid() == 0)
        cr_assert(setegid(12345) == 0 && seteuid(12345) == 0);
}

Test(file_perms, a_file_that_only_its_owner_may_write_is_trusted)
{
    cr_assert(is_trusted(S_IFREG | 0644, geteuid(), 4711));
    cr_assert(is_trusted(S_IFREG | 0444, geteuid(), 4711));
    cr_assert(is_trusted(S_IFREG | 0600, 0, 4711));
    cr_assert(is_trusted(S_IFDIR | 0755, geteuid(), 4711));
}

Test(file_perms, a_file_that_others_may_write_is_refused)
{
    cr_assert(!is_trusted(S_IFREG | 0646, geteuid(), getegid()));
    expect_refused("/etc/weir.json: refused: others may write this file (mode 0646); chmod o-w helps");
    cr_assert(!is_trusted(S_IFDIR | 01777, 0, 0));
    expect_refused("/etc/weir.json: refused: others may write this folder (mode 1777); chmod o-w helps");
}

Test(file_perms, a_file_that_a_foreign_group_may_write_is_refused)
{
    cr_assert(!is_trusted(S_IFREG | 0664, geteuid(), 4711));
    expect_refused("/etc/weir.json: refused: a foreign group may write this file (mode 0664, group 4711); "
                   "chmod g-w helps");
    cr_assert(!is_trusted(S_IFDIR | 0770, geteuid(), 4711));
    expect_refused("/etc/weir.json: refused: a foreign group may write this folder (mode 0770, group 4711); "
                   "chmod g-w helps");
}

Test(file_perms, the_processs_private_group_and_roots_group_may_write)
{
    drop_root();
    cr_assert(is_trusted(S_IFREG | 0664, geteuid(), 0));
    if (getegid() == geteuid())
        cr_assert(is_trusted(S_IFREG | 0664, geteuid(), getegid()));
}

Test(file_perms, a_group_that_the_process_shares_may_not_write)
{
    if (geteuid() != 0)
        cr_skip_test("only root can choose its group");
    cr_assert(setegid(100) == 0 && seteuid(12345) == 0);
    cr_assert(!is_trusted(S_IFREG | 0664, geteuid(), getegid()));
    expect_refused("/etc/weir.json: refused: a foreign group may write this file (mode 0664, group 100); "
                   "chmod g-w helps");
}

static void expect_foreign_owner(void)
{
    cr_assert(!is_trusted(S_IFREG | 0644, 65534, getegid()));
    expect_refused("/etc/weir.json: refused: another user (65534) owns this file; chown or WEIR_TRUST helps");
}

Test(file_perms, a_file_of_another_user_is_refused_also_by_root)
{
    expect_foreign_owner();
    drop_root();
    expect_foreign_owner();
    cr_assert(is_trusted(S_IFREG | 0644, 0, getegid()), "files of root are trusted");
}

Test(file_perms, a_path_is_resolved_and_both_file_and_folder_are_checked, .fini = remove_folder)
{
    char *resolved = NULL;
    const char *path = make_file("plugin.so", "x", 0644), *link = path_in_folder("link.so");
    cr_assert_eq(symlink("plugin.so", link), 0);
    cr_assert(wr_file_perms_check_path(link, &resolved, WEIR_ERR_PLUGIN, &error), "%s", error.text);
    cr_assert_str_eq(resolved, path);
    free(resolved);
}

static void expect_path_refused(const char *path, const char *problem)
{
    char *resolved = NULL, text[800];
    cr_assert(!wr_file_perms_check_path(path, &resolved, WEIR_ERR_PLUGIN, &error), "%s was trusted", path);
    cr_assert_null(resolved);
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    snprintf(text, sizeof text, "%s: refused: %s", path, problem);
    cr_assert_str_eq(error.text, text);
}

static void expect_path_trusted(const char *path)
{
    char *resolved = NULL;
    cr_assert(wr_file_perms_check_path(path, &resolved, WEIR_ERR_PLUGIN, &error), "%s", error.text);
    free(resolved);
}

/* Makes FOLDER/a/b/plugin.so. */
static const char *make_deep(void)
{
    cr_assert(mkdir(path_in_folder("a"), 0755) == 0 && mkdir(path_in_folder("a/b"), 0755) == 0);
    return make_file("a/b/plugin.so", "x", 0644);
}

Test(file_perms, a_file_below_a_folder_that_others_may_write_is_refused_unless_that_is_sticky,
     .fini = remove_folder)
{
    char path[300], above[300], problem[400];
    strcpy(path, make_deep());
    strcpy(above, path_in_folder("a"));
    expect_path_trusted(path);
    cr_assert_eq(chmod(above, 0777), 0);
    snprintf(problem, sizeof problem, "others may write the folder %s (mode 0777); chmod o-w or +t helps",
             above);
    expect_path_refused(path, problem);
    cr_assert_eq(chmod(above, 01777), 0);
    expect_path_trusted(path);
    cr_assert(chmod(above, 0775) == 0 && (geteuid() != 0 || chown(above, 0, 4711) == 0));
    if (geteuid() != 0)
        return;
    snprintf(problem, sizeof problem,
             "a foreign group may write the folder %s (mode 0775, group 4711); chmod g-w or +t helps", above);
    expect_path_refused(path, problem);
}

Test(file_perms, a_file_below_a_folder_of_another_user_is_refused, .fini = remove_folder)
{
    char path[300], above[300], problem[400];
    if (geteuid() != 0)
        cr_skip_test("only root can give files away");
    strcpy(path, make_deep());
    strcpy(above, path_in_folder("a"));
    cr_assert_eq(chown(above, 4711, 0), 0);
    snprintf(problem, sizeof problem, "another user (4711) owns the folder %s; chown or WEIR_TRUST helps",
             above);
    expect_path_refused(path, problem);
    cr_assert_eq(chmod(above, 01755), 0);
    expect_path_refused(path, problem);
}

Test(file_perms, what_is_in_a_trusted_folder_is_not_checked, .fini = remove_folder)
{
    char path[300], list[600];
    strcpy(path, make_deep());
    cr_assert_eq(chmod(path_in_folder("a"), 0777), 0);
    cr_assert_eq(chmod(path, 0666), 0);
    snprintf(list, sizeof list, "/no/such:%s", path_in_folder("a/b"));
    cr_assert_eq(setenv("WEIR_TRUST", list, 1), 0);
    expect_path_trusted(path);
    const char *beside = make_file("a/bb", "x", 0666);
    char *resolved;
    cr_assert(!wr_file_perms_check_path(beside, &resolved, WEIR_ERR_PLUGIN, &error));
}

Test(file_perms, a_relative_entry_trusts_nothing, .fini = remove_folder)
{
    const char *path = make_file("plugin.so", "x", 0666);
    cr_assert(chdir(folder) == 0 && setenv("WEIR_TRUST", ".:", 1) == 0);
    expect_path_refused(path, "others may write this file (mode 0666); chmod o-w helps");
}

Test(file_perms, a_links_target_and_the_folders_above_it_are_checked, .fini = remove_folder)
{
    char *resolved = NULL, target[300];
    const char *open_folder = path_in_folder("open"), *link = path_in_folder("link.so");
    cr_assert_eq(mkdir(open_folder, 0700), 0);
    strcpy(target, make_file("open/plugin.so", "x", 0644));
    cr_assert_eq(symlink(target, link), 0);
    cr_assert_eq(chmod(open_folder, 0777), 0);
    cr_assert(!wr_file_perms_check_path(link, &resolved, WEIR_ERR_PLUGIN, &error));
    cr_assert(strstr(error.text, "/open/plugin.so: refused: others may write the folder "), "%s", error.text);
    cr_assert_eq(chmod(open_folder, 0700), 0);
    cr_assert_eq(chmod(target, 0666), 0);
    cr_assert(!wr_file_perms_check_path(link, &resolved, WEIR_ERR_PLUGIN, &error));
    cr_assert(strstr(error.text, "/open/plugin.so: refused: others may write this file (mode 0666)"), "%s",
              error.text);
}

Test(file_perms, a_dangling_path_is_refused, .fini = remove_folder)
{
    char *resolved = NULL, text[500];
    const char *path = path_in_folder("missing.so");
    cr_assert(!wr_file_perms_check_path(path, &resolved, WEIR_ERR_PLUGIN, &error));
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    snprintf(text, sizeof text, "%s: No such file or directory", path);
    cr_assert_str_eq(error.text, text);
    cr_assert_null(resolved);
    const char *loop = path_in_folder("loop.so");
    cr_assert_eq(symlink("loop.so", loop), 0);
    cr_assert(!wr_file_perms_check_path(loop, &resolved, WEIR_ERR_PLUGIN, &error));
}
