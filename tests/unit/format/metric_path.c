#include <criterion/criterion.h>
#include <string.h>

#include "text/buffer.h"
#include "format/metric_path.h"

static const struct wr_metric_path_rules rules = {.strip = ":|", .replace = ";/"};

static struct wr_buffer buffer;

static void free_buffer(void)
{
    wr_buffer_fini(&buffer);
}

TestSuite(metric_path, .fini = free_buffer);

static const char *path_of(const char *text)
{
    wr_buffer_clear(&buffer);
    wr_metric_path_put(&buffer, text, &rules);
    return wr_buffer_text(&buffer);
}

static const char *word_of(const char *text)
{
    wr_buffer_clear(&buffer);
    wr_metric_path_put_word(&buffer, text, &rules);
    return wr_buffer_text(&buffer);
}

Test(metric_path, allowed_characters_are_kept)
{
    cr_assert_str_eq(path_of("my_app.db-1.r\xc3\xa9sum\xc3\xa9.\xf0\x9f\x98\x80"),
                     "my_app.db-1.r\xc3\xa9sum\xc3\xa9.\xf0\x9f\x98\x80");
}

Test(metric_path, characters_are_stripped_or_replaced_by_the_rules)
{
    cr_assert_str_eq(path_of("a:b|c;d/e"), "abc_d_e");
    cr_assert_str_eq(word_of("a:b|c;d/e"), "abc_d_e");
}

Test(metric_path, an_empty_result_becomes_an_underscore)
{
    cr_assert_str_eq(word_of("::|"), "_");
    cr_assert_eq(buffer.length, 1);
}

Test(metric_path, whitespace_of_all_kinds_is_replaced)
{
    cr_assert_str_eq(path_of("a b\tc\nd\x7f"), "a_b_c_d_");
    cr_assert_str_eq(path_of("a\xc2\xa0"
                             "b\xe2\x80\x83"
                             "c\xe3\x80\x80"
                             "d\xe1\x9a\x80"
                             "e\xe2\x80\xa8"
                             "f\xc2\x85"
                             "g"),
                     "a_b_c_d_e_f_g");
    cr_assert_str_eq(word_of("a\xe2\x80\xaf"
                             "b\xe2\x81\x9f"
                             "c\xe2\x80\x8b"
                             "d"),
                     "a_b_c_d");
}

Test(metric_path, characters_that_disguise_others_are_replaced)
{
    cr_assert_str_eq(path_of("a\xe2\x80\xae"
                             "b\x1b[31m"),
                     "a_b_[31m");
}

Test(metric_path, no_node_is_empty)
{
    cr_assert_str_eq(path_of(""), "_");
    cr_assert_str_eq(path_of("."), "_._");
    cr_assert_str_eq(path_of("..a"), "_._.a");
    cr_assert_str_eq(path_of("a..b."), "a._.b._");
    cr_assert_str_eq(path_of(":.|"), "_._");
}

Test(metric_path, words_have_no_nodes)
{
    cr_assert_str_eq(word_of(""), "");
    cr_assert_str_eq(word_of("..a."), "..a.");
}

static const char *series_path_of(const char *name, const char *key, const char *value, bool has_labels)
{
    static const struct wr_metric_path_rules plain = {.strip = ":", .replace = "+"};
    static struct wr_buffer out;
    const weir_label label = {key, value};
    const weir_series series = {.group = "a.b", .name = name, .labels = &label, .label_count = 1};
    wr_buffer_clear(&out);
    wr_metric_path_put_series(&out, series.group, &series, has_labels, &plain);
    return wr_buffer_text(&out);
}

Test(metric_path, the_bound_of_a_bucket_is_a_node_if_there_are_no_labels)
{
    cr_assert_str_eq(series_path_of("n.bucket", "le", "0.25", false), "a.b.n.bucket.0_25");
    cr_assert_str_eq(series_path_of("n.bucket", "le", "-1.5e+06", false), "a.b.n.bucket.-1_5e_06");
    cr_assert_str_eq(series_path_of("n.bucket", "le", "+Inf", false), "a.b.n.bucket.inf");
    cr_assert_str_eq(series_path_of("n.bucket", "le", "0.25", true), "a.b.n.bucket");
    cr_assert_str_eq(series_path_of("n.buckets", "le", "0.25", false), "a.b.n.buckets");
    cr_assert_str_eq(series_path_of("n.bucket", "more", "0.25", false), "a.b.n.bucket");
    cr_assert_str_eq(series_path_of("n.bucket", "le", "", false), "a.b.n.bucket", "no empty node");
}
