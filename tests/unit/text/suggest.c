#include <criterion/criterion.h>
#include <string.h>

#include "text/suggest.h"

static const char *const options[] = {"path",      "format",      "queue",         "overflow",
                                      "batch",     "batch_bytes", "linger",        "timeout",
                                      "retry_min", "retry_max",   "block_timeout", NULL};

static const char *nearest(const char *word)
{
    static struct wr_suggest suggest;
    wr_suggest_init(&suggest, word);
    for (const char *const *option = options; *option; option++)
        wr_suggest_try(&suggest, *option);
    return *suggest.best ? suggest.best : "nothing";
}

Test(suggest, one_typing_error_is_tolerated)
{
    cr_assert_str_eq(nearest("pat"), "path", "a letter is missing");
    cr_assert_str_eq(nearest("patth"), "path", "one letter too many");
    cr_assert_str_eq(nearest("poth"), "path", "a wrong letter");
    cr_assert_str_eq(nearest("paht"), "path", "two letters swapped");
    cr_assert_str_eq(nearest("timout"), "timeout");
    cr_assert_str_eq(nearest("formta"), "format");
}

Test(suggest, a_third_of_the_letters_may_be_wrong)
{
    cr_assert_str_eq(nearest("ovreflwo"), "overflow");
    cr_assert_str_eq(nearest("block_timeuot"), "block_timeout");
    cr_assert_str_eq(nearest("batchbyte"), "batch_bytes");
}

Test(suggest, the_nearest_of_several_is_suggested)
{
    cr_assert_str_eq(nearest("retry_mix"), "retry_min", "of two equally near, the first");
    cr_assert_str_eq(nearest("retry_mac"), "retry_max");
    cr_assert_str_eq(nearest("batch_byte"), "batch_bytes");
    cr_assert_str_eq(nearest("bath"), "path");
}

Test(suggest, the_case_of_letters_is_ignored)
{
    cr_assert_str_eq(nearest("PATH"), "path");
    cr_assert_str_eq(nearest("Batch_Byte"), "batch_bytes");
    cr_assert_str_eq(nearest("PTAH"), "path", "together with other errors");
}

Test(suggest, a_word_that_is_too_different_is_not_suggested)
{
    cr_assert_str_eq(nearest("compression"), "nothing");
    cr_assert_str_eq(nearest("xyz"), "nothing");
    cr_assert_str_eq(nearest(""), "nothing");
    cr_assert_str_eq(nearest("q"), "nothing");
}

Test(suggest, a_short_word_with_nothing_in_common_is_not_suggested)
{
    struct wr_suggest suggest;
    wr_suggest_init(&suggest, "xy");
    wr_suggest_try(&suggest, "ab");
    wr_suggest_try(&suggest, "a");
    wr_suggest_try(&suggest, "");
    cr_assert_str_eq(suggest.best, "");
}

Test(suggest, very_long_words_are_not_compared)
{
    char word[301] = "", candidate[101] = "";
    struct wr_suggest suggest;
    memset(word, 'x', 300);
    memset(candidate, 'y', 100);
    wr_suggest_init(&suggest, word);
    wr_suggest_try(&suggest, candidate);
    wr_suggest_try(&suggest, "path");
    cr_assert_str_eq(suggest.best, "", "their distance is not computed");
}

Test(suggest, the_longest_words_that_are_compared_may_be_found)
{
    char word[65] = "", candidate[65] = "";
    struct wr_suggest suggest;
    memset(word, 'x', 64);
    memset(candidate, 'x', 63);
    wr_suggest_init(&suggest, word);
    wr_suggest_try(&suggest, candidate);
    cr_assert_str_eq(suggest.best, candidate);
    cr_assert_eq(suggest.best_distance, 1);
}

Test(suggest, the_suggestion_is_written_as_a_question)
{
    char out[100] = "old";
    struct wr_suggest suggest;
    wr_suggest_init(&suggest, "pth");
    cr_assert_str_eq(wr_suggest_text(&suggest, out, sizeof out), "");
    wr_suggest_try(&suggest, "path");
    cr_assert_str_eq(wr_suggest_text(&suggest, out, sizeof out), "; did you mean \"path\"?");
}

Test(suggest, a_suggestion_is_shown_escaped)
{
    char out[100];
    struct wr_suggest suggest;
    wr_suggest_init(&suggest, "disk");
    wr_suggest_try(&suggest, "disk\xe2\x80\xae");
    cr_assert_str_eq(wr_suggest_text(&suggest, out, sizeof out), "");
    wr_suggest_init(&suggest, "disk of mine");
    wr_suggest_try(&suggest, "disk of mine\xe2\x80\xae");
    cr_assert_str_eq(wr_suggest_text(&suggest, out, sizeof out), "; did you mean \"disk of mine\\u202e\"?");
}
