/* How the http handler reads responses of _bulk. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../../plugins/http/bulk_reply.h"

enum { DOCUMENTS = 3 };

static struct bulk_reply reply;
static uint16_t verdicts[DOCUMENTS];

/* Reads a response in pieces of so many bytes. */
static enum bulk_end read_in(const char *text, size_t piece)
{
    size_t length = strlen(text), at = 0;
    wr_bulk_reply_begin(&reply, verdicts, DOCUMENTS);
    while (at < length && wr_bulk_reply_take(&reply, text + at, piece < length - at ? piece : length - at))
        at += piece < length - at ? piece : length - at;
    return wr_bulk_reply_end(&reply);
}

static void check(const char *text, enum bulk_end end, unsigned a, unsigned b, unsigned c)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        cr_assert_eq(read_in(text, piece), end, "%s, %zu bytes at once", text, piece);
        cr_assert(verdicts[0] == a && verdicts[1] == b && verdicts[2] == c, "%s: %u %u %u", text, verdicts[0],
                  verdicts[1], verdicts[2]);
    }
}

Test(http_bulk_reply, each_item_is_the_verdict_on_a_document)
{
    check(
        "{\"took\":1,\"errors\":true,\"items\":[{\"create\":{\"_index\":\"a\",\"_shards\":{\"status\":7,\"x\":["
        "1,{}]},"
        "\"status\":201}},{\"create\":{\"status\":429,\"error\":{\"type\":\"es_rejected\",\"reason\":\"full\","
        "\"caused_by\":{\"type\":\"x\",\"reason\":\"y\"}}}},{\"create\":{\"error\":{\"reason\":\"bad "
        "\\u00e4\\n\\\"q\\\"\","
        "\"type\":\"mapper\"},\"status\":400}}]}\n",
        BULK_COMPLETE, BULK_STORED, 429, 400);
    cr_assert_str_eq(reply.refused.error, "mapper: bad \xc3\xa4\n\"q\"");
    cr_assert_str_eq(reply.again.error, "es_rejected: full");
    cr_assert(reply.refused.count == 1 && reply.again.count == 1);
}

Test(http_bulk_reply, a_conflict_means_stored_for_create_only)
{
    check("{\"errors\":true,\"items\":[{\"create\":{\"status\":409}},{\"index\":{\"status\":409}},{\"index\":{"
          "\"status\":200}}]}",
          BULK_COMPLETE, BULK_STORED, 409, BULK_STORED);
}

Test(http_bulk_reply, a_response_without_items_and_errors_is_a_success)
{
    check("{\"errors\":false}", BULK_COMPLETE, BULK_STORED, BULK_STORED, BULK_STORED);
    check(" {\"took\": 3, \"errors\" : false } ", BULK_COMPLETE, BULK_STORED, BULK_STORED, BULK_STORED);
    check("{\"errors\":true}", BULK_INVALID, 0, 0, 0);
    check("{}", BULK_INVALID, 0, 0, 0);
    check("[{\"errors\":false}]", BULK_INVALID, 0, 0, 0);
}

Test(http_bulk_reply, a_wrong_number_of_items_is_no_verdict)
{
    check("{\"errors\":false,\"items\":[]}", BULK_WRONG_COUNT, 0, 0, 0);
    check("{\"errors\":true,\"items\":[{\"create\":{\"status\":400}},{\"create\":{\"status\":201}}]}",
          BULK_WRONG_COUNT, 0, 0, 0);
    check("{\"items\":[{\"index\":{\"status\":200}},{\"index\":{\"status\":200}},{\"index\":{\"status\":200}},{"
          "\"index\":{}}]}",
          BULK_WRONG_COUNT, 0, 0, 0);
    cr_assert_eq(reply.refused.count, 0);
}

Test(http_bulk_reply, of_a_response_that_breaks_off_complete_items_count)
{
    const char *whole = "{\"errors\":true,\"items\":[{\"create\":{\"status\":201}},{\"create\":{\"status\":400,"
                        "\"error\":\"no\"}},"
                        "{\"create\":{\"status\":429}}]}";
    char text[200];
    for (size_t length = 0; length < strlen(whole); length++) {
        memcpy(text, whole, length);
        text[length] = '\0';
        enum bulk_end end = read_in(text, 7);
        cr_assert(end == BULK_CUT || (end == BULK_INVALID && !reply.read), "%s", text);
        cr_assert(verdicts[0] == (reply.read > 0 ? BULK_STORED : 0) &&
                      verdicts[1] == (reply.read > 1 ? 400 : 0) && verdicts[2] == (reply.read > 2 ? 429 : 0),
                  "%s", text);
    }
    cr_assert_eq(reply.read, 3);
    cr_assert_str_eq(reply.refused.error, "no");
}

Test(http_bulk_reply, anything_else_is_no_response)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "null",
                                        "<html>",
                                        "{\"errors\":fal",
                                        "{\"errors\":false}x",
                                        "{\"errors\":false,}",
                                        "{errors:false}",
                                        "{\"items\":[}",
                                        "{\"errors\":false]",
                                        "\"",
                                        "\"\\x\"",
                                        "[\"\\ud8zz\"]",
                                        "}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(texts[i], BULK_INVALID, 0, 0, 0);
    char deep[200];
    memset(deep, '[', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    check(deep, BULK_INVALID, 0, 0, 0);
}

Test(http_bulk_reply, items_of_any_form_are_read_and_have_no_status_of_their_own_making)
{
    check("{\"items\":[{\"create\":{\"status\":\"201\"}},{\"create\":{\"status\":99999999999999999999}},{"
          "\"create\":5}]}",
          BULK_COMPLETE, BULK_STORED, 0, 0);
    check("{\"items\":[{},{\"create\":{\"status\":-1}},{\"create\":{\"error\":{\"status\":200}}}]}",
          BULK_COMPLETE, 0, 0, 0);
    char text[2000] = "{\"items\":[{\"create\":{\"status\":400,\"error\":{\"reason\":\"";
    memset(text + strlen(text), 'r', 1000);
    strcat(text, "\"}}},{},{}]}");
    check(text, BULK_COMPLETE, 400, 0, 0);
    cr_assert_eq(strlen(reply.refused.error), JSON_SCAN_TEXT, "only the beginning is kept");
}
