#include <criterion/criterion.h>
#include <stdio.h>

#include "text/name_index.h"

static struct wr_name_index names;

static void end(void)
{
    wr_name_index_fini(&names);
}

TestSuite(name_index, .fini = end);

Test(name_index, an_empty_index_has_no_name)
{
    cr_assert_eq(wr_name_index_find(&names, "", 0), SIZE_MAX);
    cr_assert_eq(wr_name_index_find(&names, "a", 1), SIZE_MAX);
}

Test(name_index, each_of_many_names_has_its_number)
{
    static char texts[10000][8];
    for (size_t i = 0; i < 10000; i++) {
        snprintf(texts[i], sizeof texts[i], "%zu", i);
        cr_assert(wr_name_index_add(&names, texts[i], i));
    }
    for (size_t i = 0; i < 10000; i++)
        cr_assert_eq(wr_name_index_find(&names, texts[i], strlen(texts[i])), i);
    cr_assert_eq(wr_name_index_find(&names, "10000", 5), SIZE_MAX);
}

Test(name_index, a_name_keeps_its_first_number)
{
    cr_assert(wr_name_index_add(&names, "a", 1) && wr_name_index_add(&names, "a", 2));
    cr_assert_eq(wr_name_index_find(&names, "a", 1), 1);
}

Test(name_index, a_part_of_a_text_can_be_searched_for)
{
    cr_assert(wr_name_index_add(&names, "a.b", 1));
    cr_assert_eq(wr_name_index_find(&names, "a.b.c", 3), 1);
    cr_assert_eq(wr_name_index_find(&names, "a.b.c", 1), SIZE_MAX);
    cr_assert_eq(wr_name_index_find(&names, "a.b.c", 5), SIZE_MAX);
}
