/* How the http handler classifies responses. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../../plugins/http/address.h"
#include "../../../plugins/http/response.h"

static const char *const secrets[] = {"geheim", "abc", NULL};
static const struct response_request request = {.method = "POST",
                                                .url = "http://h:8086/write",
                                                .host = "h",
                                                .peer = "h:8086",
                                                .timeout_ms = 30000,
                                                .connect_timeout_ms = 10000,
                                                .secrets = secrets};
static struct client_reply reply;
static struct response response;

static const struct response *classify(void)
{
    wr_response_classify(&request, &reply, &response);
    return &response;
}

static const struct response *classify_status(long status, const char *text)
{
    reply = (struct client_reply){.end = CLIENT_RESPONDED, .status = status, .text_length = strlen(text)};
    strcpy(reply.text, text);
    return classify();
}

static const struct response *classify_transport_error(CURLcode result)
{
    reply = (struct client_reply){.end = CLIENT_FAILED, .result = result, .resolved = true, .connected = true};
    return classify();
}

/* ---- Responses ------------------------------------------------------------------------------- */

Test(http_response, every_status_has_an_outcome)
{
    for (long status = 200; status < 1000; status++) {
        enum response_kind expected = RESPONSE_RETRY;
        if (status < 300)
            expected = RESPONSE_DELIVERED;
        else if (status == 413)
            expected = RESPONSE_TOO_LARGE;
        else if (status >= 400 && status < 500 && status != 401 && status != 403 && status != 407 &&
                 status != 408 && status != 429)
            expected = RESPONSE_REFUSED;
        cr_assert_eq(classify_status(status, "")->kind, expected, "%ld", status);
        cr_assert_eq(response.status, status);
    }
}

Test(http_response, errors_that_need_an_operator_use_the_longest_delay)
{
    static const long statuses[] = {301, 302, 308, 401, 403, 407};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        cr_assert_eq(classify_status(statuses[i], "")->retry_after_ms, RESPONSE_DELAY_MAX);
    cr_assert_eq(classify_status(503, "")->retry_after_ms, 0);
}

Test(http_response, the_requested_delay_is_at_most_a_day)
{
    reply = (struct client_reply){.end = CLIENT_RESPONDED, .status = 503, .retry_after_s = 7};
    cr_assert_eq(classify()->retry_after_ms, 7000);
    reply.retry_after_s = INT64_MAX;
    cr_assert_eq(classify()->retry_after_ms, 86400000);
}

Test(http_response, the_end_of_the_longest_text_is_shortened_within_its_room)
{
    char text[CLIENT_TEXT], expected[200] = "POST http://h:8086/write: returned 400: ";
    memset(text, ' ', sizeof text);
    memset(text + sizeof text - 122, 'x', 121);
    text[sizeof text - 1] = '\0';
    size_t length = strlen(expected);
    memset(expected + length, 'x', 120);
    strcpy(expected + length + 120, "...");
    cr_assert_str_eq(classify_status(400, text)->message, expected);
    cr_assert_eq(reply.text_length, CLIENT_TEXT - 1); /* the member behind the text */
}

Test(http_response, a_response_is_shown_in_one_line_without_surrounding_whitespace)
{
    cr_assert_str_eq(classify_status(400, "  bad\nline \r\n")->message,
                     "POST http://h:8086/write: returned 400: bad\nline");
    cr_assert_str_eq(classify_status(503, "")->message, "POST http://h:8086/write: returned 503");
    cr_assert_str_eq(classify_status(503, " \n")->message, "POST http://h:8086/write: returned 503");
}

Test(http_response, a_long_response_is_truncated_between_two_characters)
{
    char text[1000] = "x";
    for (int i = 0; i < 100; i++)
        strcat(text, "a\xe2\x82\xac");
    classify_status(400, text + 1);
    const char *shown = strstr(response.message, "400: ") + 5;
    cr_assert_eq(memcmp(shown, text + 1, 120), 0);
    cr_assert_str_eq(shown + 120, "...");
    classify_status(400, text);
    shown = strstr(response.message, "400: ") + 5;
    cr_assert_eq(memcmp(shown, text, 118), 0);
    cr_assert_str_eq(shown + 118, "...");
}

Test(http_response, points_that_were_not_stored_are_counted_if_the_reply_is_complete)
{
    const char *text =
        "{\"error\":\"partial write: unable to parse 'x': no\\nunable to parse 'y': no dropped=0\"}";
    cr_assert_eq(classify_status(400, text)->dropped_points, 2);
    cr_assert_eq(classify_status(400, "partial write: too old dropped=17")->dropped_points, 17);
    cr_assert_eq(classify_status(400, "unable to parse 'x': no dropped=1")->dropped_points, 0);
    cr_assert_eq(classify_status(422, text)->dropped_points, 0);
    classify_status(400, text);
    reply.text_is_cut = true;
    cr_assert_eq(classify()->dropped_points, 0);
    cr_assert_eq(response.kind, RESPONSE_REFUSED);
}

Test(http_response, secrets_in_a_response_are_masked_and_short_words_are_not_secrets)
{
    cr_assert_str_eq(classify_status(400, "geheim abc geheimgeheim")->message,
                     "POST http://h:8086/write: returned 400: ****** abc ************");
}

Test(http_response, the_target_of_a_redirect_is_shown)
{
    reply = (struct client_reply){.end = CLIENT_RESPONDED, .status = 302, .redirect = "file:///etc/passwd"};
    cr_assert_str_eq(classify()->message, "POST http://h:8086/write: returned 302, a redirect to file:///...; "
                                          "redirects are not followed");
    reply.redirect[0] = '\0';
    cr_assert_str_eq(classify()->message, "POST http://h:8086/write: returned 302; redirects are not followed");
}

/* ---- No response ----------------------------------------------------------------------------- */

Test(http_response, each_transport_error_is_retried_and_has_a_message)
{
    for (int result = 1; result < CURL_LAST; result++) {
        classify_transport_error((CURLcode)result);
        cr_assert_eq(response.kind, RESPONSE_RETRY);
        cr_assert_eq(response.retry_after_ms, 0);
        cr_assert(strchr(response.message, ':'), "%d: %s", result, response.message);
    }
}

Test(http_response, a_refused_connection_names_the_peer)
{
    classify_transport_error(CURLE_COULDNT_CONNECT);
    reply.system_error = ECONNREFUSED;
    cr_assert_str_eq(classify()->message, "connect h:8086: Connection refused");
}

Test(http_response, a_timeout_names_what_took_too_long)
{
    classify_transport_error(CURLE_OPERATION_TIMEDOUT);
    cr_assert_str_eq(response.message, "POST http://h:8086/write: no complete response within 30000 ms");
    reply.connected = false;
    cr_assert_str_eq(classify()->message, "connect h:8086: no connection within 10000 ms");
    reply.resolved = false;
    cr_assert_str_eq(classify()->message, "resolve h:8086: no response within 10000 ms");
}

Test(http_response, a_certificate_that_is_not_accepted_names_the_host_and_the_reason)
{
    classify_transport_error(CURLE_PEER_FAILED_VERIFICATION);
    strcpy(reply.error, "SSL certificate problem: certificate has expired");
    cr_assert_str_eq(classify()->message,
                     "http://h:8086/write: the certificate of h is not trusted: SSL certificate "
                     "problem: certificate has expired");
}

Test(http_response, other_results_have_messages)
{
    static const enum client_end ends[] = {CLIENT_HEADERS_TOO_LARGE, CLIENT_STOPPED, CLIENT_NO_MEMORY};
    static const char *const words[] = {"the response headers exceed 64 KiB",
                                        "no response before the time limit for stopping", "out of memory"};
    for (size_t i = 0; i < 3; i++) {
        reply = (struct client_reply){.end = ends[i]};
        cr_assert_eq(classify()->kind, RESPONSE_RETRY);
        cr_assert(strstr(response.message, words[i]), "%s", response.message);
    }
}

/* ---- Addresses ------------------------------------------------------------------------------- */

Test(http_address, a_url_is_parsed)
{
    struct address address;
    cr_assert(wr_address_parse(&address, "http://u:p@db.example/write?db=x#y"));
    cr_assert_str_eq(address.host, "db.example");
    cr_assert_str_eq(address.peer, "db.example:80");
    cr_assert_str_eq(address.display, "http://db.example/write");
    cr_assert(address.is_http && address.has_user);
    cr_assert(wr_address_parse(&address, "https://[::1]:8428"));
    cr_assert_str_eq(address.peer, "[::1]:8428");
    cr_assert_str_eq(address.display, "https://[::1]:8428/");
    cr_assert(address.is_http && !address.has_user);
    cr_assert(wr_address_parse(&address, "ftp://h/"));
    cr_assert_not(address.is_http);
}

Test(http_address, an_invalid_url_is_refused)
{
    static const char *const wrong[] = {
        "", "h", "h:80", "/path", "http://", "http://a b/", "http://h:99999/", "http://h\n/", "http://h:x/"};
    struct address address;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not(wr_address_parse(&address, wrong[i]), "%s", wrong[i]);
}

Test(http_address, a_long_url_is_truncated_when_shown)
{
    char url[3000] = "http://h/", shown[50];
    memset(url + 9, 'x', 2900);
    wr_address_format(url, shown, sizeof shown);
    cr_assert_eq(strlen(shown), 49);
    cr_assert_str_eq(shown + 46, "...");
    wr_address_format("no url", shown, sizeof shown);
    cr_assert_str_eq(shown, "");
}
