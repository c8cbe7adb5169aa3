/* config: from files. */
#include "config/config_edit.h"
#include "configs.h"
#include "../../support/failing.h"
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

/* Labels with keys that are long enough to fill several blocks of the configuration's memory. */
static void put_labels(char *out)
{
    for (int i = 0; i < 40; i++)
        out += sprintf(out, "%s\"%0200d\": \"v\"", i ? ", " : "", i);
}

static struct wr_config *read_failing(const char *path)
{
    error = (struct wr_error){0};
    struct wr_config *config = wr_config_read_file(path, NULL, &error);
    failing_set(false);
    cr_assert(config || error.code == WEIR_ERR_MEMORY, "%d %s", error.code, error.text);
    return config;
}

Test(config_file, without_memory_the_error_is_that_it_is_out)
{
    char labels[9000], text[10000];
    unsigned allowed = 0;
    struct wr_config *config;
    put_labels(labels);
    make_file("token", "x\n", 0600);
    make_file("part.json", "{\"groups\": {\"a\": \"${TYPE:-null}\"}}", 0644);
    snprintf(
        text, sizeof text,
        "{\"include\": [\"part.json\", \"${NONE:-none}*.json\"], \"settings\": {\"labels\": {%s}, "
        "\"instance\": \"${file:%s/token}\"}, \"groups\": {\"b\": {\"to\": \"null\", \"only\": [\"a$$\"]}}}",
        labels, folder);
    const char *path = make_file("weir.json", text, 0644);
    do {
        failing_after(allowed++);
        config = read_failing(path);
    } while (!config);
    wr_config_drop(config);
    cr_assert_gt(allowed, 50);
    while (allowed--) {
        failing_once(allowed);
        wr_config_drop(read_failing(path));
    }
}
