#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"
#include "config/expand.h"
#include "../../support/temp_folder.h"

static const char *entries[] = {"NAME=value", "EMPTY=",    "_x1=under",   "DOLLARS=a$$b${NAME}",
                                "TWO=a=b",    "BAD=\xff",  "NAMES=other", "HOSTNAME=forged",
                                "PID=forged", "LINE=a\nb", "NOVALUE",     NULL};
static const struct wr_environment environment = {.entries = entries, .folder = "/"};

static struct wr_error error;

static const char *expand(const char *text)
{
    static char expanded[70000];
    struct wr_buffer out = {0};
    cr_assert(wr_expand(&environment, text, &out, NULL, &error), "%s: %s", text, error.text);
    strcpy(expanded, wr_buffer_text(&out));
    wr_buffer_fini(&out);
    return expanded;
}

static void expect_refused(const char *text, const char *expected)
{
    struct wr_buffer out = {0};
    error = (struct wr_error){0};
    cr_assert(!wr_expand(&environment, text, &out, NULL, &error), "%s was accepted", text);
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert_str_eq(error.text, expected);
    wr_buffer_fini(&out);
}

static const char *in_file(const char *path)
{
    static char text[500];
    snprintf(text, sizeof text, "${file:%s}", path);
    return text;
}

static void expect_file_refused(const char *path, const char *why)
{
    char expected[600];
    snprintf(expected, sizeof expected, "${file:%s}: %s", path, why);
    expect_refused(in_file(path), expected);
}

Test(expand, text_without_a_dollar_sign_stays_as_it_is)
{
    cr_assert_str_eq(expand(""), "");
    cr_assert_str_eq(expand("/var/log/{NAME} %d \\n \xc3\xa9"), "/var/log/{NAME} %d \\n \xc3\xa9");
}

Test(expand, a_variable_is_replaced_by_its_value)
{
    cr_assert_str_eq(expand("${NAME}"), "value");
    cr_assert_str_eq(expand("<${NAME}>"), "<value>");
    cr_assert_str_eq(expand("${NAME}${NAME}/${_x1}"), "valuevalue/under");
    cr_assert_str_eq(expand("${TWO}"), "a=b");
    cr_assert_str_eq(expand("${LINE}"), "a\nb");
    cr_assert_str_eq(expand("${EMPTY}"), "");
}

Test(expand, values_are_not_expanded_again)
{
    cr_assert_str_eq(expand("${DOLLARS}"), "a$$b${NAME}");
}

Test(expand, names_are_compared_as_a_whole)
{
    expect_refused("${NAM}", "${NAM}: the variable is not set; ${NAM:-default} sets a default");
    expect_refused("${NAMEX}", "${NAMEX}: the variable is not set; ${NAMEX:-default} sets a default");
    expect_refused("${NOVALUE}", "${NOVALUE}: the variable is not set; ${NOVALUE:-default} sets a default");
    expect_refused("${name}", "${name}: the variable is not set; ${name:-default} sets a default");
    cr_assert_str_eq(expand("${NAMES}"), "other");
}

Test(expand, a_default_replaces_an_unset_or_empty_variable)
{
    cr_assert_str_eq(expand("${NOPE:-default}"), "default");
    cr_assert_str_eq(expand("${EMPTY:-default}"), "default");
    cr_assert_str_eq(expand("${NAME:-default}"), "value");
    cr_assert_str_eq(expand("${NOPE:-}"), "");
    cr_assert_str_eq(expand("<${NOPE:-a b:-c/\xc3\xa9 \"d\"}>"), "<a b:-c/\xc3\xa9 \"d\">");
}

Test(expand, two_dollar_signs_make_one)
{
    cr_assert_str_eq(expand("$$"), "$");
    cr_assert_str_eq(expand("a$$b$$$$c"), "a$b$$c");
    cr_assert_str_eq(expand("$${NAME}"), "${NAME}");
    cr_assert_str_eq(expand("$$${NAME}"), "$value");
}

Test(expand, an_unescaped_dollar_sign_is_refused)
{
    static const char *const texts[] = {"$", "$NAME", "a$", "5$ a day", "$$$", "$(NAME)", "${NAME}$"};
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        expect_refused(texts[i], "unescaped $; write $$ for a dollar sign, ${NAME} for a variable");
}

Test(expand, braces_that_are_not_closed_are_refused)
{
    expect_refused("${NAME", "unclosed ${; write $$ for a dollar sign, ${NAME} for a variable");
    expect_refused("a${", "unclosed ${; write $$ for a dollar sign, ${NAME} for a variable");
}

/* It would end at the inner brace. */
Test(expand, a_variable_in_a_default_is_refused)
{
    expect_refused("${A:-${B}/x}", "a default cannot have a variable in it: \"A:-${B\" in braces");
    expect_refused("${A:-x${B:-y}}", "a default cannot have a variable in it: \"A:-x${B:-y\" in braces");
}

Test(expand, an_invalid_name_is_refused)
{
    static const char *const names[] = {"",    "1A",       "A-B",   "A B", " NAME", "NAME ",  "A:B",
                                        "A.B", "\xc3\xa9", "$NAME", ":-x", "A:=x",  "FILE:/x"};
    for (size_t i = 0; i < WR_COUNT_OF(names); i++) {
        char text[100], expected[200];
        snprintf(text, sizeof text, "${%s}", names[i]);
        snprintf(expected, sizeof expected,
                 "must be ${NAME}, ${NAME:-default}, ${file:/path} or $$, got \"%s\" in braces", names[i]);
        expect_refused(text, expected);
    }
}

Test(expand, a_value_that_is_not_utf8_is_refused)
{
    expect_refused("${BAD}", "${BAD}: its value is not valid UTF-8");
    expect_refused("${BAD:-default}", "${BAD}: its value is not valid UTF-8");
}

Test(expand, the_expanded_text_is_appended)
{
    struct wr_buffer out = {0};
    wr_buffer_put_text(&out, "in front ");
    cr_assert(wr_expand(&environment, "${NAME}", &out, NULL, &error));
    cr_assert_str_eq(wr_buffer_text(&out), "in front value");
    wr_buffer_fini(&out);
}

Test(expand, the_host_is_built_in)
{
    char host[300] = "";
    gethostname(host, sizeof host - 1);
    cr_assert_str_eq(expand("${HOSTNAME}"), host);
    cr_assert_str_eq(expand("${HOSTNAME:-x}"), host);
}

Test(expand, the_process_is_built_in_and_changes_with_a_fork)
{
    char pid[30];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    cr_assert_str_eq(expand("${PID}"), pid);
    pid_t child = fork();
    if (child == 0) {
        snprintf(pid, sizeof pid, "%ld", (long)getpid());
        _exit(strcmp(expand("${PID}"), pid) == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    cr_assert_eq(status, 0);
}

Test(expand, a_file_is_replaced_by_its_contents_without_the_last_newline, .fini = remove_folder)
{
    cr_assert_str_eq(expand(in_file(make_file("token", "s3cret", 0600))), "s3cret");
    cr_assert_str_eq(expand(in_file(make_file("line", "s3cret\n", 0600))), "s3cret");
    cr_assert_str_eq(expand(in_file(make_file("lines", "a\nb\n\n", 0600))), "a\nb\n");
    cr_assert_str_eq(expand(in_file(make_file("newline", "\n", 0600))), "");
    cr_assert_str_eq(expand(in_file(make_file("empty", "", 0600))), "");
    cr_assert_str_eq(expand(in_file(make_file("dollars", "a$$${NAME}", 0600))), "a$$${NAME}");
    cr_assert_str_eq(expand(in_file(make_file("with blank :-x", "c", 0600))), "c");
}

Test(expand, an_unreadable_file_is_reported, .fini = remove_folder)
{
    expect_file_refused(path_in_folder("missing"), "No such file or directory");
    expect_file_refused("/", "not a regular file");
    expect_file_refused("/dev/zero", "not a regular file");
    const char *fifo = path_in_folder("fifo");
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    expect_file_refused(fifo, "not a regular file");
}

Test(expand, the_path_of_a_file_must_be_absolute)
{
    expect_file_refused("token", "the path must be absolute");
    expect_file_refused("./token", "the path must be absolute");
    expect_file_refused("", "the path must be absolute");
    expect_file_refused(" /token", "the path must be absolute");
}

Test(expand, a_file_has_at_most_64_kib, .fini = remove_folder)
{
    static char large[65537];
    memset(large, 'x', sizeof large);
    const char *path = make_file_of("exact", large, 65536, 0600);
    cr_assert_eq(strlen(expand(in_file(path))), 65536);
    path = make_file_of("larger", large, 65537, 0600);
    expect_file_refused(path, "too long; at most 64 KiB are allowed");
}

Test(expand, a_file_that_is_not_text_is_refused, .fini = remove_folder)
{
    expect_file_refused(make_file_of("nul", "a\0b", 3, 0600), "must be UTF-8 text without NUL");
    expect_file_refused(make_file("binary", "\xff\xfe", 0600), "must be UTF-8 text without NUL");
}

Test(expand, reading_leaves_no_descriptor_open, .fini = remove_folder)
{
    int before = dup(0);
    close(before);
    expand(in_file(make_file("token", "s3cret", 0600)));
    expect_file_refused("/dev/zero", "not a regular file");
    int after = dup(0);
    close(after);
    cr_assert_eq(before, after);
}

static void expect_variable(const struct wr_environment *taken, const char *text, const char *expected)
{
    struct wr_buffer value = {0};
    cr_assert(wr_expand(taken, text, &value, NULL, NULL));
    cr_assert_str_eq(wr_buffer_text(&value), expected);
    wr_buffer_fini(&value);
}

Test(environment, it_is_a_snapshot)
{
    setenv("WEIR_UNIT", "before", 1);
    struct wr_environment *taken = wr_environment_take();
    setenv("WEIR_UNIT", "after", 1);
    setenv("WEIR_UNIT_LATER", "x", 1);
    expect_variable(taken, "${WEIR_UNIT}", "before");
    expect_variable(taken, "${WEIR_UNIT_LATER:-none}", "none");
    expect_variable(taken, "${WEIR_UNI:-none}", "none");
    wr_environment_drop(taken);
}

Test(environment, it_has_the_working_folder, .fini = remove_folder)
{
    path_in_folder("");
    cr_assert_eq(chdir(folder), 0);
    struct wr_environment *taken = wr_environment_take();
    cr_assert_eq(chdir("/"), 0);
    cr_assert_str_eq(taken->folder, folder);
    wr_environment_drop(taken);
}

Test(environment, a_deleted_working_folder_is_stored_as_null, .fini = remove_folder)
{
    const char *gone = path_in_folder("gone");
    cr_assert(mkdir(gone, 0700) == 0 && chdir(gone) == 0 && rmdir(gone) == 0);
    struct wr_environment *taken = wr_environment_take();
    cr_assert_not_null(taken);
    cr_assert_null(taken->folder);
    wr_environment_drop(taken);
    cr_assert_eq(chdir("/"), 0);
}

Test(environment, it_may_be_empty)
{
    clearenv();
    struct wr_environment *taken = wr_environment_take();
    expect_variable(taken, "${PATH:-none}", "none");
    wr_environment_drop(taken);
}

Test(environment, it_is_freed_with_its_last_reference)
{
    setenv("WEIR_UNIT", "x", 1);
    struct wr_environment *taken = wr_environment_take();
    wr_environment_hold(taken);
    wr_environment_drop(taken);
    expect_variable(taken, "${WEIR_UNIT}", "x");
    wr_environment_drop(taken);
    wr_environment_drop(NULL);
}
