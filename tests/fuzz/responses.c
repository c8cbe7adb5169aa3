/* Responses of HTTP servers: whatever is received, in pieces of any size, gives the same verdicts, and none
 * that was not received.
 *
 * The input: the number of documents, the size of pieces, then the response. */

#include "../../plugins/http/bulk_reply.h"
#include "../../plugins/http/otlp_reply.h"
#include "fuzz.h"

enum { DOCUMENTS = 16 };

static enum bulk_end read_bulk(struct bulk_reply *reply, uint16_t verdicts[DOCUMENTS], uint32_t count,
                               const char *text, size_t length, size_t piece)
{
    wr_bulk_reply_begin(reply, verdicts, count);
    for (size_t at = 0; at < length; at += piece)
        if (!wr_bulk_reply_take(reply, text + at, piece < length - at ? piece : length - at))
            break;
    return wr_bulk_reply_end(reply);
}

static void check_verdicts(const struct bulk_reply *reply, const uint16_t verdicts[DOCUMENTS], uint32_t count,
                           enum bulk_end end)
{
    uint32_t known = end == BULK_COMPLETE ? count : end == BULK_CUT ? reply->read : 0;
    FUZZ_CHECK(known <= count && (end != BULK_CUT || known));
    for (uint32_t i = 0; i < count; i++)
        FUZZ_CHECK(verdicts[i] <= BULK_STATUS_MAX && (i < known || verdicts[i] == BULK_NONE));
    FUZZ_CHECK(reply->refused.count + reply->again.count <= known);
    FUZZ_CHECK(strlen(reply->refused.error) < sizeof reply->refused.error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct bulk_reply whole, pieces;
    uint16_t verdicts[DOCUMENTS], again[DOCUMENTS];
    struct otlp_reply read;
    if (size < 2)
        return 0;
    uint32_t count = data[0] % (DOCUMENTS + 1);
    size_t piece = data[1] % 32 + 1, length = size - 2;
    char *text = malloc(length + 1); /* what is read beyond the end is noticed */
    FUZZ_CHECK(text);
    memcpy(text, data + 2, length);
    enum bulk_end end = read_bulk(&whole, verdicts, count, text, length, length + 1);
    FUZZ_CHECK(read_bulk(&pieces, again, count, text, length, piece) == end);
    FUZZ_CHECK(memcmp(verdicts, again, count * sizeof *verdicts) == 0);
    FUZZ_CHECK(strcmp(whole.refused.error, pieces.refused.error) == 0);
    check_verdicts(&whole, verdicts, count, end);
    wr_otlp_read_success(&read, text, length);
    FUZZ_CHECK(strlen(read.message) < sizeof read.message);
    wr_otlp_read_status(&read, text, length);
    FUZZ_CHECK(strlen(read.message) < sizeof read.message && !read.rejected);
    free(text);
    return 0;
}
