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

Test(file_perms, the_processs_own_group_and_roots_group_may_write)
{
    drop_root();
    cr_assert(is_trusted(S_IFREG | 0664, geteuid(), getegid()));
    cr_assert(is_trusted(S_IFREG | 0664, geteuid(), 0));
}

Test(file_perms, a_file_of_another_user_is_refused)
{
    drop_root();
    cr_assert(!is_trusted(S_IFREG | 0644, geteuid() + 1, getegid()));
    char text[200];
    snprintf(text, sizeof text, "/etc/weir.json: refused: another user (%u) owns this file",
             (unsigned)geteuid() + 1);
    expect_refused(text);
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

Test(file_perms, a_file_in_a_folder_that_others_may_write_is_refused, .fini = remove_folder)
{
    char *resolved = NULL, text[500];
    const char *path = make_file("plugin.so", "x", 0644);
    cr_assert_eq(chmod(folder, 0777), 0);
    cr_assert(!wr_file_perms_check_path(path, &resolved, WEIR_ERR_PLUGIN, &error));
    cr_assert_null(resolved);
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    snprintf(text, sizeof text, "%s: refused: others may write this folder (mode 0777); chmod o-w helps",
             folder);
    cr_assert_str_eq(error.text, text);
}

Test(file_perms, the_folder_of_a_links_target_is_checked, .fini = remove_folder)
{
    char *resolved = NULL, target[300];
    const char *open_folder = path_in_folder("open"), *link = path_in_folder("link.so");
    cr_assert_eq(mkdir(open_folder, 0700), 0);
    strcpy(target, make_file("open/plugin.so", "x", 0644));
    cr_assert_eq(symlink(target, link), 0);
    cr_assert_eq(chmod(open_folder, 0777), 0);
    cr_assert(!wr_file_perms_check_path(link, &resolved, WEIR_ERR_PLUGIN, &error));
    cr_assert(strstr(error.text, "/open: refused: others may write this folder"), "%s", error.text);
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
