#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"

Test(buffer, all_zeros_is_an_empty_buffer)
{
    struct wr_buffer buffer = {0};
    cr_assert_str_eq(wr_buffer_text(&buffer), "");
    cr_assert_eq(buffer.length, 0);
    wr_buffer_fini(&buffer);
    wr_buffer_fini(&buffer);
}

Test(buffer, appended_parts_follow_each_other)
{
    struct wr_buffer buffer = {0};
    wr_buffer_put_text(&buffer, "latency");
    wr_buffer_put_char(&buffer, '=');
    wr_buffer_put_format(&buffer, "%d.%03d", 49, 403);
    wr_buffer_put(&buffer, " ms!", 3);
    wr_buffer_put(&buffer, NULL, 0);
    wr_buffer_put_text(&buffer, "");
    cr_assert_str_eq(wr_buffer_text(&buffer), "latency=49.403 ms");
    cr_assert_eq(buffer.length, 17);
    wr_buffer_fini(&buffer);
}

Test(buffer, the_terminating_nul_is_not_counted)
{
    struct wr_buffer buffer = {0};
    wr_buffer_put_text(&buffer, "ab");
    wr_buffer_text(&buffer);
    wr_buffer_put_text(&buffer, "cd");
    cr_assert_str_eq(wr_buffer_text(&buffer), "abcd");
    cr_assert_eq(buffer.length, 4);
    wr_buffer_fini(&buffer);
}

Test(buffer, it_grows_as_needed)
{
    struct wr_buffer buffer = {0};
    for (size_t i = 0; i < 1000; i++) {
        wr_buffer_put_char(&buffer, (char)('a' + i % 26));
        cr_assert_eq(strlen(wr_buffer_text(&buffer)), i + 1);
    }
    for (size_t i = 0; i < 1000; i++)
        cr_assert_eq(buffer.data[i], (char)('a' + i % 26));
    wr_buffer_fini(&buffer);
}

Test(buffer, a_single_append_may_exceed_the_capacity_many_times)
{
    static char large[100000];
    struct wr_buffer buffer = {0};
    memset(large, 'x', sizeof large);
    wr_buffer_put_char(&buffer, '<');
    wr_buffer_put(&buffer, large, sizeof large);
    wr_buffer_put_char(&buffer, '>');
    cr_assert_eq(buffer.length, sizeof large + 2);
    cr_assert_eq(buffer.data[sizeof large], 'x');
    cr_assert_eq(buffer.data[sizeof large + 1], '>');
    wr_buffer_fini(&buffer);
}

Test(buffer, formatted_text_may_be_longer_than_the_free_space)
{
    struct wr_buffer buffer = {0};
    wr_buffer_put_format(&buffer, "%0*d", 5000, 7);
    cr_assert_eq(buffer.length, 5000);
    cr_assert_eq(buffer.data[4999], '7');
    wr_buffer_fini(&buffer);
}

Test(buffer, reserving_changes_only_the_capacity)
{
    struct wr_buffer buffer = {0};
    cr_assert(wr_buffer_reserve(&buffer, 1000));
    cr_assert_geq(buffer.room, 1000);
    cr_assert_eq(buffer.length, 0);
    char *data = buffer.data;
    for (int i = 0; i < 1000; i++)
        wr_buffer_put_char(&buffer, 'x');
    cr_assert_eq(buffer.data, data, "reserved memory must not move");
    wr_buffer_fini(&buffer);
}

Test(buffer, clearing_sets_the_length_to_zero_and_keeps_the_capacity)
{
    struct wr_buffer buffer = {0};
    wr_buffer_put_format(&buffer, "%0*d", 5000, 7);
    size_t room = buffer.room;
    wr_buffer_clear(&buffer);
    cr_assert_str_eq(wr_buffer_text(&buffer), "");
    cr_assert_eq(buffer.room, room);
    wr_buffer_fini(&buffer);
}

Test(buffer, take_transfers_ownership_to_the_caller)
{
    struct wr_buffer buffer = {0};
    wr_buffer_put_text(&buffer, "mine");
    char *text = wr_buffer_take(&buffer);
    cr_assert_str_eq(text, "mine");
    cr_assert_null(buffer.data);
    wr_buffer_put_text(&buffer, "next");
    cr_assert_str_eq(text, "mine");
    free(text);
    wr_buffer_fini(&buffer);
}

Test(buffer, after_an_allocation_failure_contents_stay_and_appends_are_ignored)
{
    struct wr_buffer buffer = {0};
    wr_buffer_put_text(&buffer, "kept");
    cr_assert(!wr_buffer_reserve(&buffer, SIZE_MAX / 2));
    cr_assert(buffer.failed);
    wr_buffer_put_text(&buffer, "x");
    wr_buffer_put_char(&buffer, 'x');
    wr_buffer_put_format(&buffer, "%d", 1);
    cr_assert_eq(buffer.length, 4);
    cr_assert_eq(memcmp(buffer.data, "kept", 4), 0);
    cr_assert_null(wr_buffer_text(&buffer), "a buffer with a lost part is not a valid text");
    wr_buffer_fini(&buffer);
}

Test(buffer, a_failed_buffer_cannot_be_taken_but_is_freed)
{
    struct wr_buffer buffer = {0};
    wr_buffer_put_text(&buffer, "kept");
    cr_assert(!wr_buffer_reserve(&buffer, SIZE_MAX));
    cr_assert_null(wr_buffer_take(&buffer));
    cr_assert_null(buffer.data);
    cr_assert(!buffer.failed);
}

Test(buffer, clearing_resets_the_failure)
{
    struct wr_buffer buffer = {0};
    wr_buffer_put_text(&buffer, "lost");
    cr_assert(!wr_buffer_reserve(&buffer, SIZE_MAX / 2));
    wr_buffer_clear(&buffer);
    for (int i = 0; i < 100; i++)
        wr_buffer_put_text(&buffer, "good");
    cr_assert_eq(strlen(wr_buffer_text(&buffer)), 400);
    wr_buffer_fini(&buffer);
}
