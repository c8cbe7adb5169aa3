#include <criterion/criterion.h>
#include <limits.h>
#include <string.h>

#include "text/error.h"

Test(error, code_and_text_are_set_together)
{
    struct wr_error error = {0};
    cr_assert_eq(wr_error_set(&error, WEIR_ERR_NAME, "name %s: %d", "x", 5), WEIR_ERR_NAME);
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert_str_eq(error.text, "name x: 5");
}

Test(error, the_error_pointer_may_be_null)
{
    cr_assert_eq(wr_error_set(NULL, WEIR_ERR_FULL, "%s", "lost"), WEIR_ERR_FULL);
}

Test(error, a_text_that_is_too_long_is_truncated)
{
    char longer[2 * WR_ERROR_ROOM] = "";
    struct wr_error error;
    memset(longer, 'x', sizeof longer - 1);
    wr_error_set(&error, WEIR_ERR_CONFIG, "%s", longer);
    cr_assert_eq(strlen(error.text), WR_ERROR_ROOM - 1);
}

Test(error, a_prefix_is_put_in_front_of_the_text)
{
    struct wr_error error;
    wr_error_set(&error, WEIR_ERR_PLUGIN, "is wrong");
    wr_error_prefix(&error, "option \"%s\" ", "path");
    wr_error_prefix(&error, "file.so: ");
    cr_assert_str_eq(error.text, "file.so: option \"path\" is wrong");
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    cr_assert_eq(error.place, WR_ERROR_NOWHERE);
    error.place = 7;
    wr_error_prefix(&error, "%s", "");
    cr_assert_eq(error.place, 7);
    cr_assert_str_eq(error.text, "file.so: option \"path\" is wrong");
}

Test(error, text_that_does_not_fit_behind_a_prefix_is_truncated)
{
    char longer[2 * WR_ERROR_ROOM] = "";
    struct wr_error error;
    memset(longer, 'x', WR_ERROR_ROOM - 1);
    wr_error_set(&error, WEIR_ERR_CONFIG, "%s", longer);
    wr_error_prefix(&error, "front: ");
    cr_assert_eq(strlen(error.text), WR_ERROR_ROOM - 1);
    cr_assert_eq(strncmp(error.text, "front: xxx", 10), 0);
    memset(longer, 'y', sizeof longer - 1);
    wr_error_prefix(&error, "%s", longer);
    cr_assert_eq(strlen(error.text), WR_ERROR_ROOM - 1);
    cr_assert_eq(strspn(error.text, "y"), WR_ERROR_ROOM - 1);
}

Test(error, an_out_of_memory_error_may_name_what_failed)
{
    struct wr_error error;
    cr_assert(!wr_error_no_memory(&error, NULL));
    cr_assert_eq(error.code, WEIR_ERR_MEMORY);
    cr_assert_str_eq(error.text, "out of memory");
    cr_assert(!wr_error_no_memory(&error, "/etc/weir.json"));
    cr_assert_str_eq(error.text, "/etc/weir.json: out of memory");
    cr_assert(!wr_error_no_memory(NULL, "x"));
}

Test(error, each_code_has_a_text_of_its_own)
{
    for (int code = WEIR_OK; code >= WEIR_ERR_FIFO_NOT_CREATED; code--) {
        const char *words = wr_error_text(code);
        cr_assert_str_neq(words, "unknown error", "%d", code);
        for (int other = WEIR_OK; other > code; other--)
            cr_assert_str_neq(words, wr_error_text(other), "%d and %d", code, other);
    }
    cr_assert_str_eq(wr_error_text(WEIR_OK), "no error");
    cr_assert_str_eq(wr_error_text(WEIR_ERR_MEMORY), "out of memory");
}

Test(error, any_other_code_is_an_unknown_error)
{
    static const int codes[] = {1, -15, 1000, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        cr_assert_str_eq(wr_error_text(codes[i]), "unknown error");
}

Test(error, characters_that_disguise_others_are_escaped)
{
    struct wr_error error;
    wr_error_set(&error, WEIR_ERR_CONFIG, "%s: not there", "/tmp/a\x1b[2J\n\xe2\x80\xae\xff");
    cr_assert_str_eq(error.text, "/tmp/a\\x1b[2J\\n\\u202e\\xff: not there");
    wr_error_prefix(&error, "%s: ", "p\r");
    cr_assert_str_eq(error.text, "p\\r: /tmp/a\\x1b[2J\\n\\u202e\\xff: not there");
}

Test(error, a_truncated_text_ends_with_a_whole_character)
{
    char longer[2 * WR_ERROR_ROOM] = "";
    struct wr_error error;
    memset(longer, 'x', sizeof longer - 1);
    memcpy(longer + WR_ERROR_ROOM - 2, "\xe2\x82\xac", 3);
    wr_error_set(&error, WEIR_ERR_CONFIG, "%s", longer);
    cr_assert_eq(strspn(error.text, "x"), strlen(error.text));
    cr_assert_eq(strlen(error.text), WR_ERROR_ROOM - 2);
}
