/* config: from files. */
#include "config/config_edit.h"
#include "configs.h"
#include "../../support/temp_folder.h"
#include "config/config_read.h"

TestSuite(config_file, .fini = remove_folder);

Test(config_file, it_stores_its_path)
{
    const char *path = make_file("weir.json", "{\"groups\": {\"a\": \"null\"}}", 0644);
    struct wr_config *config = wr_config_read_file(path, NULL, &error);
    cr_assert_not_null(config, "%s", error.text);
    cr_assert_str_eq(config->path, path);
    cr_assert_str_eq(route_of(config, "a", false), "null");
    wr_config_drop(config);
}

Test(config_file, a_relative_path_is_made_absolute)
{
    char path[300];
    strcpy(path, make_file("weir.json", "{}", 0644));
    cr_assert_eq(chdir(folder), 0);
    struct wr_config *config = wr_config_read_file("weir.json", NULL, &error);
    cr_assert_eq(chdir("/"), 0);
    cr_assert_str_eq(config->path, path);
    wr_config_drop(config);
}

Test(config_file, calls_keep_the_path)
{
    struct wr_config *config = wr_config_read_file(make_file("weir.json", "{}", 0644), NULL, &error);
    struct wr_config *next = wr_config_edit_route(config, "a", "null", NULL, &error);
    wr_config_drop(config);
    cr_assert_str_eq(next->path, path_in_folder("weir.json"));
    wr_config_drop(next);
}

Test(config_file, errors_name_the_path)
{
    char expected[500];
    const char *path = make_file("weir.json", "{\n  \"groups\": {\"a\": 5}}", 0644);
    cr_assert_null(wr_config_read_file(path, NULL, &error));
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    snprintf(expected, sizeof expected, "%s:2:19: groups.a: must be the name of a handler ", path);
    cr_assert_eq(strncmp(error.text, expected, strlen(expected)), 0, "%s", error.text);
}

Test(config_file, a_missing_file_is_reported)
{
    char expected[500];
    const char *path = path_in_folder("missing.json");
    cr_assert_null(wr_config_read_file(path, NULL, &error));
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    snprintf(expected, sizeof expected, "%s: No such file or directory", path);
    cr_assert_str_eq(error.text, expected);
}
