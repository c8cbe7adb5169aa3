/* How the http handler reads responses of OpenTelemetry receivers. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../../plugins/http/client.h"
#include "../../../plugins/http/otlp_reply.h"
#include "../../../plugins/http/response.h"

static struct otlp_reply reply;

/* The bytes are read from memory of their own size, so that what is read beyond them is noticed. */
static void read_success(const char *bytes, size_t length)
{
    char *copy = malloc(length + !length);
    memcpy(copy, bytes, length);
    wr_otlp_read_success(&reply, copy, length);
    free(copy);
}

static void check(const char *bytes, size_t length, uint32_t rejected, const char *message)
{
    read_success(bytes, length);
    cr_assert_eq(reply.rejected, rejected);
    cr_assert_str_eq(reply.message, message);
}

#define CHECK(bytes, rejected, message) check(bytes, sizeof(bytes) - 1, rejected, message)

Test(http_otlp_reply, a_partial_success_is_read_from_protobuf_and_json)
{
    CHECK("\x0a\x0b\x08\x03\x12\x07too old", 3, "too old");
    CHECK("\x12\x01x\x18\x05\x0a\x02\x08\x03", 3, "");
    CHECK("\x0a\x06\x12\x04warn", 0, "warn");
    CHECK("{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"too old\"}}", 3, "too old");
    CHECK(" \n{\"partialSuccess\" : {\"rejectedDataPoints\":3}}", 3, "");
    CHECK("{\"partial_success\":{\"error_message\":\"a\",\"rejected_data_points\":\"4\"}}", 4, "a");
}

Test(http_otlp_reply, other_bodies_are_whole_successes)
{
    CHECK("", 0, "");
    CHECK("{}", 0, "");
    CHECK("null", 0, "");
    CHECK("{\"a\":{\"rejectedDataPoints\":3},\"rejectedDataPoints\":3}", 0, "");
    CHECK("{\"partialSuccess\":{\"x\":{\"rejectedDataPoints\":3}}}", 0, "");
    CHECK("{\"partialSuccess\":{\"rejectedDataPoints\":\"-3\"}}", 0, "");
    CHECK("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, "");
    CHECK("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 0, "");
    CHECK("<html>", 0, "");
}

Test(http_otlp_reply, any_beginning_of_a_body_is_read_without_reading_on)
{
    static const char whole[] = "\x0a\x0b\x08\x03\x12\x07too old\x11"
                                "12345678\x1d"
                                "1234";
    for (size_t length = 0; length < sizeof whole; length++) {
        read_success(whole, length);
        cr_assert(reply.rejected == (length > 3 ? 3 : 0) &&
                  strncmp("too old", reply.message, strlen(reply.message)) == 0);
    }
}

Test(http_otlp_reply, a_number_beyond_32_bits_is_all_points)
{
    CHECK("\x0a\x07\x08\x80\x80\x80\x80\x80\x10", UINT32_MAX, "");
    CHECK("{\"partialSuccess\":{\"rejectedDataPoints\":\"99999999999999\"}}", UINT32_MAX, "");
}

/* ---- Statuses -------------------------------------------------------------------------------- */

static const char *const secrets[] = {NULL};
static const struct response_request request = {
    .method = "POST", .url = "http://h/v1/metrics", .host = "h", .peer = "h:80", .secrets = secrets};

static struct response classify(long status, const char *body, size_t length)
{
    static struct client_reply received;
    struct response response;
    received = (struct client_reply){
        .end = CLIENT_RESPONDED, .status = status, .retry_after_s = 7, .text_length = length};
    memcpy(received.text, body, length);
    wr_otlp_classify(&request, &received, &response);
    return response;
}

Test(http_otlp_reply, only_some_statuses_are_sent_again)
{
    for (long status = 200; status < 600; status++) {
        enum response_kind kind = classify(status, "", 0).kind;
        bool again = status == 429 || status == 502 || status == 503 || status == 504;
        if (again) {
            cr_assert_eq(classify(status, "", 0).retry_after_ms, 7000);
        }
        if (status < 300)
            cr_assert_eq(kind, RESPONSE_DELIVERED);
        else if (status < 400 || status == 407 || again)
            cr_assert_eq(kind, RESPONSE_RETRY, "%ld", status);
        else
            cr_assert_eq(kind, status == 413 ? RESPONSE_TOO_LARGE : RESPONSE_REFUSED, "%ld", status);
    }
}

Test(http_otlp_reply, the_message_of_a_status_is_shown_and_text_as_it_is)
{
    struct response response = classify(400, "\x08\x03\x12\x05wrong", 9);
    cr_assert_str_eq(response.message, "POST http://h/v1/metrics: returned 400: wrong");
    response = classify(400, "plain", 5);
    cr_assert_str_eq(response.message, "POST http://h/v1/metrics: returned 400: plain");
}

Test(http_otlp_reply, rejected_points_make_a_refusal_with_their_number)
{
    struct response response = classify(200, "\x0a\x0b\x08\x03\x12\x07too old", 13);
    cr_assert_eq(response.kind, RESPONSE_REFUSED);
    cr_assert_eq(response.dropped_points, 3);
    cr_assert_str_eq(response.message, "POST http://h/v1/metrics: partial success: too old");
    response = classify(200, "\x0a\x06\x12\x04warn", 8);
    cr_assert_eq(response.kind, RESPONSE_DELIVERED);
    cr_assert_str_eq(response.message, "POST http://h/v1/metrics: a warning: warn");
}
