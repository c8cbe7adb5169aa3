/* The contents of the status file. The reader must handle any bytes. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "text/crc.h"
#include "text/error.h"
#include "status/status_page.h"

static struct wr_status_view written, read_back;
static struct wr_buffer page;
static struct wr_error error;

static void write_page(void)
{
    written.process.pid = 4711;
    written.process.added = 12;
    strcpy(written.process.program, "my_program");
    written.process.entries_unmatched = 1;
    strcpy(written.process.unmatched[0].group, "my_app");
    strcpy(written.process.unmatched[0].name, "*.ms");
    written.handler_count = 2;
    strcpy(written.handlers[0].name, "disk");
    written.handlers[0].delivered = 7;
    strcpy(written.handlers[1].name, "push");
    strcpy(written.handlers[1].reason, "refused");
    written.group_count = 1;
    written.groups[0].values = 5;
    strcpy(written.groups[0].name, "my_ap");
    written.source_count = 1;
    written.sources[0].added = 9;
    strcpy(written.sources[0].name, "in");
    strcpy(written.sources[0].type, "fifo");
    written.sender_count = 1;
    written.senders[0].received = 8;
    strcpy(written.senders[0].name, "app[1] on there");
    wr_status_page_put(&page, &written);
}

static void free_page(void)
{
    wr_buffer_fini(&page);
}

TestSuite(status_page, .init = write_page, .fini = free_page);

static enum wr_status_verdict read_page(void)
{
    error = (struct wr_error){0};
    return wr_status_page_read(page.data, page.length, &read_back, &error);
}

static struct wr_status_head *head(void)
{
    return (struct wr_status_head *)page.data;
}

/* Corrects the checksum after a change, as an attacker would. */
static void seal(void)
{
    const size_t from = offsetof(struct wr_status_head, length);
    size_t length = head()->length < page.length ? head()->length : page.length;
    if (length > from)
        head()->crc = wr_crc_add(0, page.data + from, length - from);
}

Test(status_page, a_written_page_is_read_back_unchanged)
{
    cr_assert_eq(read_page(), WR_STATUS_GOOD, "%s", error.text);
    cr_assert_eq(memcmp(&written, &read_back, sizeof written), 0);
}

Test(status_page, a_page_without_handlers_and_groups_is_valid)
{
    wr_buffer_clear(&page);
    written.handler_count = written.group_count = written.source_count = written.sender_count = 0;
    wr_status_page_put(&page, &written);
    cr_assert_eq(read_page(), WR_STATUS_GOOD);
    cr_assert_eq(read_back.handler_count + read_back.group_count + read_back.source_count, 0);
    cr_assert_eq(read_back.process.pid, 4711);
}

Test(status_page, each_changed_byte_is_detected)
{
    for (size_t i = 0; i < page.length; i++) {
        page.data[i] ^= 0x10;
        cr_assert_neq(read_page(), WR_STATUS_GOOD, "byte %zu", i);
        cr_assert_neq(error.text[0], '\0');
        page.data[i] ^= 0x10;
    }
}

Test(status_page, a_page_truncated_at_any_length_is_refused)
{
    const size_t whole = page.length;
    for (page.length = 0; page.length < whole; page.length++)
        cr_assert_neq(read_page(), WR_STATUS_GOOD, "%zu bytes", page.length);
}

Test(status_page, trailing_bytes_are_ignored)
{
    wr_buffer_put_text(&page, "left from a longer one");
    cr_assert_eq(read_page(), WR_STATUS_GOOD);
}

Test(status_page, a_page_of_another_version_is_refused_with_both_numbers)
{
    head()->version = 7;
    seal();
    cr_assert_eq(read_page(), WR_STATUS_FOREIGN);
    cr_assert_str_eq(error.text, "it has version 7 of the layout; this `weir` knows version 4");
}

Test(status_page, longer_records_of_a_newer_writer_are_read_up_to_the_known_size)
{
    struct wr_buffer newer = {0};
    const char *parts = page.data + sizeof(struct wr_status_head);
    struct wr_status_head changed = *head();
    changed.handler_bytes += 8;
    changed.process_bytes += 16;
    changed.source_bytes += 8;
    changed.sender_bytes += 8;
    changed.length += 2 * 8 + 16 + 8 + 8;
    wr_buffer_put(&newer, &changed, sizeof changed);
    wr_buffer_put(&newer, parts, sizeof written.process);
    wr_buffer_put(&newer, "0123456789abcdef", 16);
    parts += sizeof written.process;
    for (int i = 0; i < 2; i++, parts += sizeof written.handlers[0]) {
        wr_buffer_put(&newer, parts, sizeof written.handlers[0]);
        wr_buffer_put(&newer, "01234567", 8);
    }
    wr_buffer_put(&newer, parts, sizeof written.groups[0] + sizeof written.sources[0]);
    wr_buffer_put(&newer, "01234567", 8);
    parts += sizeof written.groups[0] + sizeof written.sources[0];
    wr_buffer_put(&newer, parts, sizeof written.senders[0]);
    wr_buffer_put(&newer, "01234567", 8);
    wr_buffer_fini(&page);
    page = newer;
    seal();
    cr_assert_eq(read_page(), WR_STATUS_GOOD, "%s", error.text);
    cr_assert_eq(memcmp(&written, &read_back, sizeof written), 0);
}

Test(status_page, fields_missing_from_an_older_writer_are_zero)
{
    struct wr_buffer older = {0};
    struct wr_status_head changed = *head();
    changed.process_bytes = 8;
    changed.handler_count = changed.group_count = changed.source_count = changed.sender_count = 0;
    changed.length = sizeof changed + 8;
    wr_buffer_put(&older, &changed, sizeof changed);
    wr_buffer_put(&older, &written.process, 8);
    wr_buffer_fini(&page);
    page = older;
    seal();
    cr_assert_eq(read_page(), WR_STATUS_GOOD, "%s", error.text);
    cr_assert_eq(read_back.process.pid, 4711);
    cr_assert_eq(read_back.process.added, 0);
}

Test(status_page, texts_are_always_terminated)
{
    memset(page.data + sizeof(struct wr_status_head), 'x', page.length - sizeof(struct wr_status_head));
    seal();
    cr_assert_eq(read_page(), WR_STATUS_GOOD);
    cr_assert_eq(strlen(read_back.process.program), sizeof read_back.process.program - 1);
    cr_assert_eq(strlen(read_back.process.weir), sizeof read_back.process.weir - 1);
    cr_assert_eq(strlen(read_back.process.config), sizeof read_back.process.config - 1);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(strlen(read_back.handlers[i].name), sizeof read_back.handlers[i].name - 1);
        cr_assert_eq(strlen(read_back.handlers[i].type), sizeof read_back.handlers[i].type - 1);
        cr_assert_eq(strlen(read_back.handlers[i].reason), sizeof read_back.handlers[i].reason - 1);
    }
    cr_assert_eq(strlen(read_back.groups[0].name), sizeof read_back.groups[0].name - 1);
    cr_assert_eq(strlen(read_back.sources[0].name), sizeof read_back.sources[0].name - 1);
    cr_assert_eq(strlen(read_back.sources[0].type), sizeof read_back.sources[0].type - 1);
}

Test(status_page, counts_beyond_the_page_are_refused)
{
    head()->handler_count = UINT32_MAX;
    head()->handler_bytes = UINT32_MAX;
    seal();
    cr_assert_eq(read_page(), WR_STATUS_FOREIGN);
    cr_assert_str_eq(error.text, "its parts do not make up its length");
}

/* (2^32 - 1)^2 is 2^64 - 2^33 + 1, and the groups are the rest up to 2^64 plus the page's true length. */
Test(status_page, parts_whose_sizes_wrap_around_to_the_length_are_refused)
{
    head()->handler_count = head()->handler_bytes = UINT32_MAX;
    head()->source_count = 0;
    head()->process_bytes = 0;
    uint64_t rest = head()->length - sizeof *head() - head()->process_bytes + (UINT64_C(1) << 33) - 1;
    head()->process_bytes += (uint32_t)(rest % 4);
    head()->group_bytes = 4;
    head()->group_count = (uint32_t)(rest / 4);
    uint64_t handlers = (uint64_t)head()->handler_count * head()->handler_bytes;
    uint64_t groups = (uint64_t)head()->group_count * head()->group_bytes;
    cr_assert_eq(sizeof *head() + head()->process_bytes + handlers + groups, head()->length);
    seal();
    cr_assert_eq(read_page(), WR_STATUS_FOREIGN);
    cr_assert_str_eq(error.text, "its parts do not make up its length");
}

Test(status_page, empty_handler_records_beyond_the_limit_are_counted)
{
    head()->handler_count = UINT32_MAX;
    head()->handler_bytes = 0;
    head()->process_bytes += 2 * (uint32_t)sizeof written.handlers[0];
    seal();
    cr_assert_eq(read_page(), WR_STATUS_GOOD, "%s", error.text);
    cr_assert_eq(read_back.handler_count, WR_STATUS_HANDLERS_MOST);
    cr_assert_eq(read_back.process.handlers_more, UINT32_MAX - WR_STATUS_HANDLERS_MOST);
}

/* All numbers of the head are random and the checksum is correct: nothing outside the page may be read. The
 * page has its own allocation of exactly its size, so that a sanitizer reports reads beyond it. */
Test(status_page, no_head_makes_the_reader_read_outside_the_page)
{
    unsigned seed = 1;
    struct wr_status_head good = *head();
    char *exact = malloc(page.length);
    memcpy(exact, page.data, page.length);
    wr_buffer_fini(&page);
    page = (struct wr_buffer){.data = exact, .length = (size_t)good.length, .room = good.length};
    for (int i = 0; i < 50000; i++) {
        uint32_t *numbers = &head()->length;
        *head() = good;
        numbers[rand_r(&seed) % 8] = (uint32_t)rand_r(&seed) >> rand_r(&seed) % 31;
        if (i % 2)
            numbers[rand_r(&seed) % 8] = (uint32_t)rand_r(&seed) >> rand_r(&seed) % 31;
        seal();
        if (read_page() == WR_STATUS_GOOD)
            cr_assert(read_back.handler_count <= WR_STATUS_HANDLERS_MOST &&
                      read_back.group_count <= WR_STATUS_GROUPS_MOST);
    }
}
