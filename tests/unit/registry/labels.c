#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "text/common.h"
#include "text/error.h"
#include "registry/labels.h"
#include "registry/labels_walk.h"

static struct wr_error error;

static struct wr_label_set *make(const weir_label *items, size_t count)
{
    const weir_map map = {count, items};
    error = (struct wr_error){0};
    return wr_labels_new(&map, 7, &error);
}

#define MAKE(...) make((const weir_label[]){__VA_ARGS__}, WR_COUNT_OF(((const weir_label[]){__VA_ARGS__})))

/* The merged labels in order, as "key=value key=value ". */
static const char *walk(const weir_label *own, size_t own_count, const weir_label *common, size_t common_count)
{
    static char text[200];
    const weir_series series = {.size = sizeof series, .labels = own, .label_count = own_count};
    const weir_batch batch = {.size = sizeof batch, .labels = common, .label_count = common_count};
    struct wr_labels_walk at = {0, 0};
    const weir_label *label;
    *text = '\0';
    while ((label = wr_labels_next(&at, &series, &batch)))
        sprintf(text + strlen(text), "%s=%s ", label->key, label->value);
    cr_assert_null(wr_labels_next(&at, &series, &batch), "the iteration must stay at its end");
    return text;
}

Test(labels, a_set_is_sorted_by_key)
{
    struct wr_label_set *set = MAKE({"host", "h1"}, {"az", "eu"}, {"role", "db"}, {"a", "1"});
    cr_assert_eq(set->count, 4);
    cr_assert_str_eq(set->items[0].key, "a");
    cr_assert_str_eq(set->items[1].key, "az");
    cr_assert_str_eq(set->items[2].key, "host");
    cr_assert_str_eq(set->items[3].key, "role");
    cr_assert_str_eq(set->items[3].value, "db");
    cr_assert_eq(set->number, 7);
    wr_labels_drop(set);
}

Test(labels, a_set_is_a_copy)
{
    char key[] = "host", value[] = "h1";
    struct wr_label_set *set = MAKE({key, value});
    memset(key, '!', 4);
    memset(value, '!', 2);
    cr_assert_str_eq(set->items[0].key, "host");
    cr_assert_str_eq(set->items[0].value, "h1");
    wr_labels_drop(set);
}

Test(labels, an_empty_set_is_valid)
{
    struct wr_label_set *set = make(NULL, 0);
    cr_assert_not_null(set);
    cr_assert_eq(set->count, 0);
    wr_labels_drop(set);
}

Test(labels, a_value_may_be_empty_or_any_valid_text)
{
    struct wr_label_set *set = MAKE({"a", ""}, {"b", "line\nbreak \"q\" \xc3\xa9"});
    cr_assert_not_null(set, "%s", error.text);
    cr_assert_str_eq(set->items[1].value, "line\nbreak \"q\" \xc3\xa9");
    wr_labels_drop(set);
}

Test(labels, a_bad_key_is_refused)
{
    cr_assert_null(MAKE({"good", "x"}, {"", "y"}));
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert_str_eq(error.text, "label key \"\": empty; a name must have 1 to 255 bytes");
    cr_assert_null(MAKE({"a\nb", "y"}));
    cr_assert_str_eq(error.text,
                     "label key \"a\\nb\": control character at byte 2; names must be valid UTF-8 without "
                     "control characters");
}

Test(labels, a_bad_value_is_refused)
{
    char value[1025] = "";
    memset(value, 'x', 1023);
    struct wr_label_set *set = MAKE({"a", value});
    cr_assert_not_null(set, "1023 bytes are allowed");
    wr_labels_drop(set);
    value[1023] = 'x';
    cr_assert_null(MAKE({"a", value}));
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert(strstr(error.text, "too long; at most 1023 bytes are allowed"), "%s", error.text);
    cr_assert_null(MAKE({"a", "\xff"}));
    cr_assert_str_eq(error.text, "label value \"\\xff\": invalid UTF-8 at byte 1");
}

Test(labels, a_referenced_set_outlives_its_first_owner)
{
    struct wr_label_set *set = MAKE({"host", "h1"});
    wr_labels_hold(set);
    wr_labels_drop(set);
    cr_assert_str_eq(set->items[0].value, "h1");
    wr_labels_drop(set);
    wr_labels_hold(NULL);
    wr_labels_drop(NULL);
}

Test(labels, sets_are_equal_when_all_their_labels_are)
{
    struct wr_label_set *a = MAKE({"a", "1"}, {"b", "2"}), *same = MAKE({"b", "2"}, {"a", "1"});
    struct wr_label_set *value = MAKE({"a", "1"}, {"b", "3"}), *key = MAKE({"a", "1"}, {"c", "2"});
    struct wr_label_set *fewer = MAKE({"a", "1"}), *empty = make(NULL, 0);
    cr_assert(wr_labels_equal(a, a));
    cr_assert(wr_labels_equal(a, same));
    cr_assert(!wr_labels_equal(a, value));
    cr_assert(!wr_labels_equal(a, key));
    cr_assert(!wr_labels_equal(a, fewer));
    cr_assert(!wr_labels_equal(fewer, a));
    cr_assert(!wr_labels_equal(a, NULL));
    cr_assert(!wr_labels_equal(NULL, empty));
    cr_assert(wr_labels_equal(NULL, NULL));
    struct wr_label_set *all[] = {a, same, value, key, fewer, empty};
    for (size_t i = 0; i < WR_COUNT_OF(all); i++)
        wr_labels_drop(all[i]);
}

Test(labels, labels_of_series_and_batch_are_merged_in_key_order)
{
    static const weir_label own[] = {{"b", "own"}, {"d", "own"}},
                            common[] = {{"a", "all"}, {"c", "all"}, {"e", "all"}};
    cr_assert_str_eq(walk(own, 2, common, 3), "a=all b=own c=all d=own e=all ");
    cr_assert_str_eq(walk(common, 3, own, 2), "a=all b=own c=all d=own e=all ");
}

Test(labels, one_side_may_have_none)
{
    static const weir_label some[] = {{"a", "1"}, {"b", "2"}};
    cr_assert_str_eq(walk(some, 2, NULL, 0), "a=1 b=2 ");
    cr_assert_str_eq(walk(NULL, 0, some, 2), "a=1 b=2 ");
    cr_assert_str_eq(walk(NULL, 0, NULL, 0), "");
}

Test(labels, for_equal_keys_the_series_label_takes_precedence)
{
    static const weir_label own[] = {{"host", "own"}, {"z", "own"}}, common[] = {{"host", "all"}, {"z", "all"}};
    cr_assert_str_eq(walk(own, 2, common, 2), "host=own z=own ");
    cr_assert_str_eq(walk(own, 1, common, 2), "host=own z=all ");
    cr_assert_str_eq(walk(own + 1, 1, common, 2), "host=all z=own ");
}

/* ---- Series of sources ----------------------------------------------------------------------- */

static const weir_label host = {"host", "h1"}, instance = {"instance", "i"}, own_label = {"a", "1"};

Test(labels, those_of_the_configuration_do_not_apply_to_a_foreign_series)
{
    const weir_series series = {.size = sizeof series, .labels = &own_label, .label_count = 1, .foreign = true};
    const weir_batch batch = {.size = sizeof batch, .labels = &host, .label_count = 1};
    struct wr_labels_walk at = {0, 0};
    size_t count;
    cr_assert_eq(wr_labels_next(&at, &series, &batch), &own_label);
    cr_assert_null(wr_labels_next(&at, &series, &batch));
    cr_assert_null(weir_batch_labels(&batch, &series, &count));
    cr_assert_eq(count, 0);
}

Test(labels, what_names_the_maker_of_a_summary_applies_to_a_foreign_series)
{
    const weir_label both[] = {host, instance};
    const weir_series series = {.size = sizeof series, .labels = &own_label, .label_count = 1, .foreign = true};
    const weir_batch batch = {.size = sizeof batch,
                              .labels = both,
                              .label_count = 2,
                              .foreign_labels = &both[1],
                              .foreign_label_count = 1};
    struct wr_labels_walk at = {0, 0};
    cr_assert_eq(wr_labels_next(&at, &series, &batch), &own_label);
    cr_assert_eq(wr_labels_next(&at, &series, &batch), &both[1]);
    cr_assert_null(wr_labels_next(&at, &series, &batch));
}

static uint64_t hash(const weir_label *labels, size_t count)
{
    const weir_batch batch = {.size = sizeof batch, .labels = labels, .label_count = count};
    return wr_labels_hash(&batch);
}

Test(labels, the_hash_changes_with_a_key_a_value_and_the_number)
{
    const weir_label all[][2] = {{{"a", "b"}, {"c", "d"}}, {{"a", "b"}, {"c", "e"}}, {{"a", "b"}, {"e", "d"}},
                                 {{"c", "d"}, {"a", "b"}}, {{"b", "a"}, {"c", "d"}}, {{"ab", ""}, {"c", "d"}}};
    for (size_t i = 0; i < WR_COUNT_OF(all); i++) {
        cr_assert_neq(hash(all[i], 2), hash(all[i], 1));
        cr_assert_neq(hash(all[i], 1), hash(NULL, 0));
        for (size_t k = 0; k < WR_COUNT_OF(all); k++)
            cr_assert_eq(hash(all[i], 2) == hash(all[k], 2), i == k, "%zu and %zu", i, k);
    }
}
