/* document: from files. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/document.h"
#include "text/error.h"
#include "../../support/temp_folder.h"
#include "text/json.h"

static struct wr_error error;

static void expect_refused(const char *path, const char *expected)
{
    char text[1000];
    error = (struct wr_error){0};
    cr_assert_null(wr_document_read(path, &error), "%s was read", path);
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    snprintf(text, sizeof text, "%s%s", path, expected);
    cr_assert_str_eq(error.text, text);
}

Test(document_file, a_file_is_read_and_named_in_errors, .fini = remove_folder)
{
    const char *path = make_file("weir.json", "{\n  \"a\": 1\n}\n", 0644);
    struct wr_document *document = wr_document_read(path, &error);
    cr_assert_not_null(document, "%s", error.text);
    cr_assert_str_eq(document->root->first->text, "1");
    wr_node_error(document->root->first, &error, "is wrong");
    cr_assert(strstr(error.text, "/weir.json:2:8: a: is wrong"), "%s", error.text);
    wr_document_drop(document);
}

Test(document_file, an_invalid_file_is_reported_with_its_place, .fini = remove_folder)
{
    expect_refused(make_file("weir.json", "{\n  \"a\": 1,\n}\n", 0644), ":2:9: trailing comma");
    expect_refused(make_file("empty.json", "", 0644), ":1:1: the text ends where a value is expected");
    expect_refused(make_file("cut.json", "{\"handlers\": {\"a", 0644), ":1:15: unterminated string");
    expect_refused(make_file("bom.json", "\xef\xbb\xbf{}", 0644),
                   ":1:1: the text begins with a byte order mark; save it without one");
}

Test(document_file, a_missing_file_is_reported, .fini = remove_folder)
{
    expect_refused(path_in_folder("missing.json"), ": No such file or directory");
}

Test(document_file, only_regular_files_are_read, .fini = remove_folder)
{
    const char *fifo = path_in_folder("fifo");
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    expect_refused(fifo, ": not a regular file");
    expect_refused("/dev/zero", ": not a regular file");
    expect_refused("/", ": not a regular file");
}

Test(document_file, a_file_that_is_too_large_is_not_read, .fini = remove_folder)
{
    const char *path = make_file("large.json", "", 0644);
    cr_assert_eq(truncate(path, WR_JSON_BYTES_MAX + 1), 0);
    expect_refused(path, ": 16777217 bytes; at most 16 MiB are allowed");
    cr_assert_eq(truncate(path, INT64_C(1) << 30), 0);
    expect_refused(path, ": 1073741824 bytes; at most 16 MiB are allowed");
}

Test(document_file, a_file_of_zeros_is_refused_at_its_first_byte, .fini = remove_folder)
{
    const char *path = make_file("zeros.json", "", 0644);
    cr_assert_eq(truncate(path, WR_JSON_BYTES_MAX), 0);
    expect_refused(path, ":1:1: NUL byte");
}

Test(document_file, a_file_that_others_may_write_is_refused, .fini = remove_folder)
{
    expect_refused(make_file("open.json", "{}", 0666),
                   ": refused: others may write this file (mode 0666); chmod o-w helps");
}

Test(document_file, a_symbolic_link_is_followed, .fini = remove_folder)
{
    char target[200];
    strcpy(target, make_file("weir.json", "{\"a\": 1}", 0644));
    const char *link = path_in_folder("link.json");
    cr_assert_eq(symlink(target, link), 0);
    struct wr_document *document = wr_document_read(link, &error);
    cr_assert_not_null(document, "%s", error.text);
    wr_document_drop(document);
}

Test(document_file, reading_leaves_no_descriptor_open, .fini = remove_folder)
{
    const char *path = make_file("weir.json", "{}", 0644);
    int before = dup(0);
    close(before);
    wr_document_drop(wr_document_read(path, &error));
    wr_document_read("/dev/zero", &error);
    wr_document_read("/missing", &error);
    int after = dup(0);
    close(after);
    cr_assert_eq(before, after);
}
