/* Handler types: where they are found, and which are refused. */
#include <criterion/criterion.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../support/plugins/sound.h"
#include "text/error.h"
#include "handler/plugin.h"

static struct wr_plugins plugins;
static struct wr_error error;
static char built[600];  /* the plugins built for tests */
static char broken[600]; /* plugins with one mistake each */
static char both[1300];
static char folder[600]; /* a temporary folder */

static void setup(void)
{
    const char *build = getenv("WEIR_TEST_BUILD");
    cr_assert(build, "WEIR_TEST_BUILD must be set, as by make check");
    snprintf(built, sizeof built, "%s/tests/support/plugins/.libs", build);
    snprintf(broken, sizeof broken, "%s/tests/support/plugins/broken/.libs", build);
    snprintf(folder, sizeof folder, "%s/plugin-test-XXXXXX", build);
    cr_assert(mkdtemp(folder));
    snprintf(both, sizeof both, "%s:%s", built, broken);
    plugins.folders = both;
}

static void teardown(void)
{
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(plugin, .init = setup, .fini = teardown);

/* Returns the path of a file in a folder, valid for the next 3 calls. */
static const char *path_in(const char *of, const char *file)
{
    static char paths[4][1300];
    static int next;
    char path[sizeof paths[0]];
    snprintf(path, sizeof path, "%s/%s", of, file);
    return memcpy(paths[next++ % 4], path, sizeof path);
}

static void copy(const char *from, const char *to)
{
    char command[2700];
    snprintf(command, sizeof command, "cp '%s' '%s' && chmod 755 '%s'", from, to, to);
    cr_assert_eq(system(command), 0);
}

static struct wr_type *find(const char *name)
{
    error = (struct wr_error){0};
    return wr_plugins_find(&plugins, &wr_plugins_handlers, name, NULL, &error);
}

static struct wr_type *find_at(const char *name, const char *path)
{
    error = (struct wr_error){0};
    return wr_plugins_find(&plugins, &wr_plugins_handlers, name, path, &error);
}

static void assert_refused(const struct wr_type *type, const char *words)
{
    cr_assert_null(type);
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    cr_assert(strstr(error.text, words), "\"%s\" does not say \"%s\"", error.text, words);
}

/* ---- Names ----------------------------------------------------------------------------------- */

Test(plugin, names_of_types_must_not_be_paths)
{
    char name[65] = "";
    memset(name, 'x', 64);
    cr_assert_not(wr_plugins_is_type_name(name));
    name[63] = '\0';
    cr_assert(wr_plugins_is_type_name(name));
    cr_assert(wr_plugins_is_type_name("a"));
    cr_assert(wr_plugins_is_type_name("http2_push"));
    const char *const bad[] = {"",    "2http", "_a",  "Http", "a-b",     "a.b",
                               "a/b", "../a",  "a b", "a\n",  "\xc3\xa4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not(wr_plugins_is_type_name(bad[i]), "\"%s\"", bad[i]);
    assert_refused(find("../a"), "\"../a\" is not a type's name; allowed: a-z");
}

/* ---- Finding --------------------------------------------------------------------------------- */

Test(plugin, a_type_is_found_in_the_folder_of_plugins)
{
    struct wr_type *type = find("sound");
    cr_assert(type, "%s", error.text);
    cr_assert_str_eq(type->is.name, "sound");
    cr_assert_str_eq(type->path, path_in(built, "sound.so"));
    cr_assert_not(type->registered);
}

Test(plugin, a_type_is_loaded_once)
{
    struct wr_type *type = find("sound");
    cr_assert_eq(find("sound"), type);
    cr_assert_eq(find_at("sound", path_in(built, "sound.so")), type);
}

Test(plugin, the_first_folder_with_the_type_is_used)
{
    char folders[1300];
    copy(path_in(built, "sound.so"), path_in(folder, "sound.so"));
    snprintf(folders, sizeof folders, "/nowhere::%s:%s", folder, built);
    plugins.folders = folders;
    cr_assert_str_eq(find("sound")->path, path_in(folder, "sound.so"));
    cr_assert_str_eq(find("pair")->path, path_in(built, "pair.so"));
}

Test(plugin, a_file_named_in_the_configuration_is_loaded_from_any_folder)
{
    plugins.folders = NULL;
    copy(path_in(built, "sound.so"), path_in(folder, "anything"));
    cr_assert(find_at("sound", path_in(folder, "anything")), "%s", error.text);
}

Test(plugin, one_name_in_two_files_is_two_types)
{
    copy(path_in(built, "sound.so"), path_in(folder, "sound.so"));
    struct wr_type *one = find("sound"), *two = find_at("sound", path_in(folder, "sound.so"));
    cr_assert(one && two && one != two);
    cr_assert_eq(find_at("sound", path_in(built, "sound.so")), one);
}

Test(plugin, a_file_may_hold_several_types)
{
    struct wr_type *pair = find("pair");
    cr_assert(pair, "%s", error.text);
    cr_assert_eq(find("other_of_pair"), wr_plugins_next(&plugins, &wr_plugins_handlers, pair));
    cr_assert_null(wr_plugins_next(&plugins, &wr_plugins_handlers, find("other_of_pair")));
    cr_assert_eq(wr_plugins_next(&plugins, &wr_plugins_handlers, NULL), pair);
}

Test(plugin, an_unknown_type_is_reported_with_the_folders_and_a_suggestion)
{
    plugins.folders = built;
    assert_refused(find("soud"), "\"soud\" is not an installed handler type (looked in ");
    cr_assert(strstr(error.text, built));
    cr_assert(strstr(error.text, WEIR_PLUGINDIR));
    cr_assert(strstr(error.text, "\"sound\""), "%s", error.text);
}

Test(plugin, a_file_without_the_type_of_its_name_is_reported)
{
    assert_refused(find("other_name"), "other_name.so: it has no handler type \"other_name\"");
    assert_refused(find_at("absent", path_in(built, "sound.so")), "it has no handler type \"absent\"");
}

/* ---- Refusing -------------------------------------------------------------------------------- */

Test(plugin, a_missing_file_is_reported)
{
    assert_refused(find_at("sound", "/nowhere/sound.so"), "/nowhere/sound.so: No such file or directory");
}

Test(plugin, a_shared_object_without_the_symbol_is_refused)
{
    assert_refused(find("no_symbol"),
                   "not a plugin with a handler type: it has no symbol weir_handler_type_at");
}

Test(plugin, another_abi_is_refused_with_both_numbers)
{
    char words[100];
    snprintf(words, sizeof words, "other_abi.so: made for ABI %d, but this weir has ABI %d", WEIR_ABI + 7,
             WEIR_ABI);
    assert_refused(find("other_abi"), words);
}

Test(plugin, a_struct_that_is_too_short_is_refused_with_its_length)
{
    char words[100];
    snprintf(words, sizeof words, "is %zu bytes long; at least %zu are needed",
             offsetof(weir_handler_type, destroy), offsetof(weir_handler_type, wake));
    assert_refused(find("short_struct"), words);
}

Test(plugin, a_bad_table_of_options_is_refused)
{
    assert_refused(find("bad_options"), "handler type \"bad_options\": option \"limit\"");
}

Test(plugin, a_bad_name_inside_is_refused)
{
    assert_refused(find("bad_name"), "\"../bad/Name\" is not a type's name");
}

Test(plugin, an_undefined_symbol_is_reported)
{
    assert_refused(find("undefined"), "undefined_function");
}

Test(plugin, a_file_that_is_not_a_shared_object_is_refused)
{
    const char *path = path_in(folder, "text.so");
    FILE *file = fopen(path, "w");
    fputs("#!/bin/sh\n", file);
    fclose(file);
    assert_refused(find_at("text", path), path);
    assert_refused(find_at("text", folder), folder);
}

/* A copy of a valid plugin, with one byte of its ELF header replaced. */
static const char *copy_with(const char *name, long place, int byte)
{
    const char *path = path_in(folder, name);
    copy(path_in(built, "sound.so"), path);
    FILE *file = fopen(path, "r+");
    fseek(file, place, SEEK_SET);
    fputc(byte, file);
    fclose(file);
    return path;
}

Test(plugin, a_plugin_for_another_machine_is_refused_with_both_machines)
{
    ElfW(Ehdr) header;
    FILE *file = fopen(path_in(built, "sound.so"), "r");
    cr_assert_eq(fread(&header, sizeof header, 1, file), 1);
    fclose(file);
    int other = header.e_machine == EM_SPARCV9 ? EM_S390 : EM_SPARCV9; /* both below 256 */
    int low = header.e_ident[EI_DATA] == ELFDATA2LSB ? 0 : 1;
    const char *path = copy_with("alien.so", offsetof(ElfW(Ehdr), e_machine) + low, other);
    char words[700];
    snprintf(words, sizeof words, "%s: made for another kind of processor (ELF machine %d; this one is %d)",
             path, other, header.e_machine);
    assert_refused(find_at("sound", path), words);
}

Test(plugin, a_plugin_of_another_word_size_or_byte_order_is_refused_with_the_loaders_reason)
{
    int class = sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64;
    const char *path = copy_with("narrow.so", EI_CLASS, class);
    assert_refused(find_at("sound", path), path);
    assert_refused(find_at("sound", path), "ELF");
    const uint16_t one = 1;
    path = copy_with("turned.so", EI_DATA, *(const char *)&one ? ELFDATA2MSB : ELFDATA2LSB);
    assert_refused(find_at("sound", path), path);
    assert_refused(find_at("sound", path), "ELF");
}

Test(plugin, a_file_that_others_may_write_is_refused)
{
    const char *path = path_in(folder, "sound.so");
    copy(path_in(built, "sound.so"), path);
    chmod(path, 0757);
    assert_refused(find_at("sound", path), "refused: others may write this file (mode 0757)");
    chmod(path, 0755);
    cr_assert(find_at("sound", path), "%s", error.text);
}

Test(plugin, a_folder_that_others_may_write_is_refused)
{
    const char *path = path_in(folder, "sound.so");
    copy(path_in(built, "sound.so"), path);
    chmod(folder, 01777);
    assert_refused(find_at("sound", path), "refused: others may write this folder (mode 1777)");
}

Test(plugin, permissions_of_a_links_target_are_checked)
{
    const char *inner = path_in(folder, "open"), *link = path_in(folder, "sound.so");
    mkdir(inner, 0755);
    const char *target = path_in(inner, "sound.so");
    copy(path_in(built, "sound.so"), target);
    cr_assert_eq(symlink(target, link), 0);
    chmod(inner, 0777);
    assert_refused(find_at("sound", link), "others may write this folder");
    chmod(inner, 0755);
    cr_assert(find_at("sound", link), "%s", error.text);
}

Test(plugin, plugins_are_found_with_the_rights_of_the_effective_user)
{
    if (geteuid() != 0)
        cr_skip_test("only root can change its real user");
    copy(path_in(built, "sound.so"), path_in(folder, "sound.so"));
    cr_assert_eq(chmod(folder, 0700), 0);
    plugins.folders = folder;
    cr_assert_eq(setresuid(12345, 0, 0), 0);
    cr_assert(find("sound"), "%s", error.text);
    cr_assert_eq(setresuid(0, 0, 0), 0);
}

Test(plugin, a_folder_that_cannot_be_searched_is_named)
{
    char expected[400];
    if (geteuid() != 0)
        cr_skip_test("only root can change its user");
    plugins.folders = path_in(folder, "closed");
    cr_assert_eq(mkdir(plugins.folders, 0700), 0);
    cr_assert_eq(seteuid(12345), 0);
    snprintf(expected, sizeof expected, "\"sound\": the plugin folder %s cannot be searched: Permission denied",
             plugins.folders);
    assert_refused(find("sound"), expected);
    cr_assert_eq(seteuid(0), 0);
}

/* ---- Loading all ----------------------------------------------------------------------------- */

static unsigned error_count;

static void count_error(void *ctx, const struct wr_error *problem)
{
    (void)ctx;
    error_count++;
    cr_assert_eq(problem->code, WEIR_ERR_PLUGIN);
}

static bool is_known(const char *name)
{
    for (const struct wr_type *type = wr_plugins_next(&plugins, &wr_plugins_handlers, NULL); type;
         type = wr_plugins_next(&plugins, &wr_plugins_handlers, type))
        if (strcmp(type->is.name, name) == 0)
            return true;
    return false;
}

Test(plugin, loading_all_skips_refused_plugins)
{
    wr_plugins_load_all(&plugins, &wr_plugins_handlers, count_error, NULL);
    cr_assert(is_known("sound") && is_known("pair") && is_known("other_of_pair"));
    cr_assert_not(is_known("undefined"));
    cr_assert_eq(error_count, 6);
    wr_plugins_load_all(&plugins, &wr_plugins_handlers, NULL, NULL);
}

Test(plugin, after_a_fork_the_lock_of_the_list_is_free)
{
    wr_lock_enter(&plugins.lock);
    wr_plugins_after_fork(&plugins);
    cr_assert(find("sound"));
}

/* ---- Registered ones ------------------------------------------------------------------------- */

static int register_type(const weir_handler_type *type)
{
    error = (struct wr_error){0};
    return wr_plugins_register(&plugins, &wr_plugins_handlers, type, NULL, &error);
}

Test(plugin, a_registered_type_is_found_before_a_plugin_of_its_name)
{
    static const weir_handler_type type = {SOUND_TYPE("sound")};
    cr_assert_eq(register_type(&type), 0);
    cr_assert(find("sound")->registered);
    cr_assert_null(find("sound")->path);
}

Test(plugin, a_type_registered_later_takes_precedence_over_a_loaded_plugin_of_its_name)
{
    static const weir_handler_type type = {SOUND_TYPE("sound")};
    cr_assert_not(find("sound")->registered);
    cr_assert_eq(register_type(&type), 0);
    cr_assert(find("sound")->registered);
}

Test(plugin, a_name_is_registered_once)
{
    static const weir_handler_type type = {SOUND_TYPE("mine")};
    cr_assert_eq(register_type(&type), 0);
    cr_assert_eq(register_type(&type), WEIR_ERR_PLUGIN);
    cr_assert_str_eq(error.text, "registered type \"mine\": this name is registered already");
}

Test(plugin, null_is_not_registered)
{
    cr_assert_eq(register_type(NULL), WEIR_ERR_ARGUMENT);
}

Test(plugin, a_shorter_struct_is_read_as_if_the_rest_were_zero)
{
    weir_handler_type type = {SOUND_TYPE("older")};
    type.size = offsetof(weir_handler_type, wake);
    type.abandon = sound_destroy; /* not read: beyond the size */
    cr_assert_eq(register_type(&type), 0);
    cr_assert_null(find("older")->is.wake);
    cr_assert_null(find("older")->is.abandon);
    cr_assert_eq(find("older")->is.destroy, type.destroy);
}

Test(plugin, a_longer_struct_is_read_up_to_the_known_size)
{
    static struct {
        weir_handler_type known;
        void *unknown[4];
    } type = {{SOUND_TYPE("newer")}, {&type}};
    type.known.size = sizeof type;
    cr_assert_eq(register_type(&type.known), 0);
    cr_assert_str_eq(find("newer")->is.summary, "does nothing");
}

Test(plugin, required_callbacks_must_be_present)
{
    const weir_handler_type whole = {SOUND_TYPE("mine")};
    weir_handler_type type = whole;
    type.summary = NULL;
    cr_assert_eq(register_type(&type), WEIR_ERR_PLUGIN);
    cr_assert_str_eq(error.text, "registered type: handler type \"mine\" has no summary");
    type = whole;
    type.create = NULL;
    cr_assert_eq(register_type(&type), WEIR_ERR_PLUGIN);
    type = whole;
    type.emit = NULL;
    cr_assert_eq(register_type(&type), WEIR_ERR_PLUGIN);
    type = whole;
    type.destroy = NULL;
    cr_assert_eq(register_type(&type), WEIR_ERR_PLUGIN);
    type = whole;
    type.name = NULL;
    cr_assert_eq(register_type(&type), WEIR_ERR_PLUGIN);
    cr_assert_eq(register_type(&whole), 0);
}

Test(plugin, a_type_without_kinds_accepts_doubles_and_integers_only)
{
    const weir_handler_type all = {SOUND_TYPE("all")}, one = {SOUND_TYPE("one"), .kinds = WEIR_KINDS_INT};
    cr_assert_eq(register_type(&all), 0);
    cr_assert_eq(register_type(&one), 0);
    cr_assert_eq(find("all")->is.kinds, WEIR_KINDS_DOUBLE | WEIR_KINDS_INT);
    cr_assert_eq(find("one")->is.kinds, WEIR_KINDS_INT);
}

static void assert_clash(const char *name)
{
    char words[100];
    const weir_option rows[] = {{name, WEIR_OPTION_INT, 0, "1", NULL, "clashes", 0}, {0}};
    const weir_handler_type type = {SOUND_TYPE("mine"), .options = rows, .option_row_size = sizeof *rows,
                                    .options_size = sizeof(int64_t)};
    snprintf(words, sizeof words, "handler type \"mine\": option \"%s\": the name is reserved for all handlers",
             name);
    cr_assert_eq(register_type(&type), WEIR_ERR_PLUGIN);
    cr_assert(strstr(error.text, words), "%s", error.text);
}

/* This list never changes within an ABI: see doc/abi.md. */
Test(plugin, an_option_with_a_reserved_name_is_refused)
{
    static const char *const names[] = {"type",
                                        "plugin",
                                        "format",
                                        "delivery",
                                        "queue",
                                        "overflow",
                                        "batch",
                                        "linger",
                                        "batch_bytes",
                                        "block_timeout",
                                        "retry_min",
                                        "retry_max",
                                        "spool",
                                        "spool_limit",
                                        "spool.limit",
                                        "aggregate",
                                        "aggregate_series",
                                        "percentiles",
                                        "optional",
                                        "aggregate.every"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_clash(names[i]);
}

Test(plugin, an_option_whose_name_only_begins_like_a_common_one_is_accepted)
{
    static const weir_option rows[] = {{"batches", WEIR_OPTION_INT, 0, "1", NULL, "fits", 0},
                                       {"my.batch", WEIR_OPTION_INT, 0, "1", NULL, "fits", 0},
                                       {"aggregates", WEIR_OPTION_INT, 0, "1", NULL, "fits", 0},
                                       {0}};
    const weir_handler_type type = {SOUND_TYPE("mine"), .options = rows, .option_row_size = sizeof *rows,
                                    .options_size = sizeof(int64_t)};
    cr_assert_eq(register_type(&type), 0, "%s", error.text);
}

Test(plugin, rows_of_options_that_are_too_short_are_refused)
{
    static const weir_option rows[] = {{0}};
    weir_handler_type type = {SOUND_TYPE("mine"), .options = rows, .option_row_size = sizeof(weir_option) - 1};
    cr_assert_eq(register_type(&type), WEIR_ERR_PLUGIN);
    cr_assert(strstr(error.text, "its options' rows are"));
}

/* ---- Built-in ones --------------------------------------------------------------------------- */

Test(plugin, a_static_build_has_built_in_types)
{
    plugins.folders = NULL;
    if (access(WEIR_PLUGINDIR "/null.so", F_OK) == 0)
        cr_skip_test("another weir is installed");
    struct wr_type *type = find("null");
    cr_assert(type, "%s", error.text);
    cr_assert_null(type->path);
    cr_assert_not(type->registered);
    cr_assert_eq(find("null"), type);
}

Test(plugin, a_plugin_takes_precedence_over_a_built_in_type_of_its_name)
{
    char plugin[700];
    snprintf(plugin, sizeof plugin, "%s/plugins/.libs", getenv("WEIR_TEST_BUILD"));
    plugins.folders = plugin;
    struct wr_type *type = find("null");
    cr_assert(type, "%s", error.text);
    cr_assert_str_eq(type->path, path_in(plugin, "null.so"));
}
