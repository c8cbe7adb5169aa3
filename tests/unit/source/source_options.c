#include <criterion/criterion.h>
#include <string.h>

#include "config/option.h"
#include "source/source_options.h"

Test(source_options, the_names_of_parse_are_those_of_the_parsers_in_their_order)
{
    const struct wr_options_table table = wr_source_options_table(true);
    const weir_option *row = wr_options_find(&table, "parse");
    const struct wr_parser_type *type;
    size_t length;
    int64_t i = 0;
    for (; (type = wr_parser_type_at((size_t)i)); i++) {
        const char *word = wr_option_word(row, i, &length);
        cr_assert(word && strlen(wr_parser_type_name(type)) == length &&
                      memcmp(word, wr_parser_type_name(type), length) == 0,
                  "%s", wr_parser_type_name(type));
    }
    const char *last = wr_option_word(row, i, &length); /* the plugin's */
    cr_assert(last && length == strlen("patterns") && memcmp(last, "patterns", length) == 0);
    cr_assert(wr_source_options_has_patterns(&(struct wr_source_options){.parse = i}));
    cr_assert_not(wr_source_options_has_patterns(&(struct wr_source_options){.parse = i - 1}));
    cr_assert_null(wr_option_word(row, i + 1, &length));
}

Test(source_options, types_that_read_no_text_have_no_options_of_parsers)
{
    const struct wr_options_table table = wr_source_options_table(false);
    cr_assert_null(wr_options_find(&table, "parse"));
    cr_assert_not_null(wr_options_find(&table, "group"));
    cr_assert_not_null(wr_options_find(&table, "retry_max"));
}

Test(source_options, the_names_of_parsers_options_are_reserved_for_types_that_read_text_only)
{
    static const weir_option own[] = {{.name = "parse"}, {.name = "set_members"}, {.name = "patterns.x"}, {0}};
    const struct wr_options_table table = {own, sizeof *own, 0};
    cr_assert_eq(wr_source_options_find_clash(&table, true), &own[0]);
    cr_assert_null(wr_source_options_find_clash(&table, false));
}

Test(source_options, a_type_must_not_have_an_option_of_all_sources)
{
    static const weir_option own[] = {{.name = "path"}, {.name = "labels.x"}, {0}};
    const struct wr_options_table table = {own, sizeof *own, 0};
    cr_assert_eq(wr_source_options_find_clash(&table, false), &own[1]);
    cr_assert_eq(wr_source_options_find_clash(&table, true), &own[1]);
}
