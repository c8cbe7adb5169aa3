/* The parts of the handler type nats that need no server: subjects, replies, and what waits for them. */
#include "../../../plugins/nats/nats_reply.h"
#include "../../../plugins/nats/nats_subjects.h"
#include "../../../plugins/nats/nats_window.h"
#include "../format/batch_fixture.h"

/* ---- Subjects -------------------------------------------------------------------------------- */

static struct nats_subjects subjects;

static const char *subject_of(const char *template, const char *group, const char *name,
                              const weir_label *labels, size_t count)
{
    uint32_t id = add_series(group, name, labels, count);
    wr_nats_subjects_fini(&subjects);
    wr_nats_subjects_init(&subjects, template);
    const weir_batch *batch = fixture_batch();
    wr_nats_subjects_begin(&subjects, batch);
    return wr_nats_subjects_get(&subjects, batch, &fixture.series[id]);
}

Test(nats_messages, a_subject_has_no_blanks_wildcards_or_empty_tokens)
{
    static const weir_label labels[] = {{"empty", ""}, {"host", "a.b c"}};
    cr_assert_str_eq(subject_of("m.{group}.{name}", "my app.d>b", "x.*", NULL, 0), "m.my_app.d_b.x__");
    cr_assert_str_eq(subject_of("{label.host}.{label.empty}.{label.no}", "g", "n", labels, 2), "a_b_c._._");
    cr_assert_str_eq(subject_of("m", "g", "n", NULL, 0), "m");
}

Test(nats_messages, a_subject_that_is_too_long_is_empty)
{
    static char text[NATS_SUBJECT_MAX + 1];
    memset(text, 'x', NATS_SUBJECT_MAX - 1);
    cr_assert_str_eq(subject_of(text, "g", "n", NULL, 0), text);
    text[NATS_SUBJECT_MAX - 1] = 'x';
    cr_assert_str_eq(subject_of(text, "g", "n", NULL, 0), "");
}

Test(nats_messages, a_subject_follows_the_labels_of_the_configuration)
{
    static const weir_label before[] = {{"host", "a"}}, after[] = {{"host", "b"}};
    set_labels(before, 1);
    cr_assert_str_eq(subject_of("m.{label.host}", "g", "n", NULL, 0), "m.a");
    set_labels(after, 1);
    wr_nats_subjects_begin(&subjects, fixture_batch());
    cr_assert_str_eq(wr_nats_subjects_get(&subjects, fixture_batch(), &fixture.series[0]), "m.b");
}

static const char *filter_of(const char *template)
{
    static char filter[NATS_SUBJECT_MAX];
    wr_nats_subjects_filter(template, filter, sizeof filter);
    return filter;
}

Test(nats_messages, a_stream_is_created_with_what_a_subject_can_become)
{
    cr_assert_str_eq(filter_of("weir.{group}"), "weir.>");
    cr_assert_str_eq(filter_of("a.b-{name}.c"), "a.>");
    cr_assert_str_eq(filter_of("{group}"), ">");
    cr_assert_str_eq(filter_of("weir.all"), "weir.all");
    cr_assert_str_eq(filter_of("a{{.{name}"), "a{.>");
}

/* ---- Replies --------------------------------------------------------------------------------- */

static struct nats_reply read_reply(const char *text)
{
    struct nats_reply reply;
    wr_nats_reply_read(&reply, NATS_REPLY_OF_PUBLISH, text, strlen(text));
    return reply;
}

Test(nats_messages, a_reply_tells_what_is_stored_and_what_was)
{
    cr_assert_eq(read_reply("{\"stream\":\"S\", \"seq\":22}").kind, NATS_REPLY_STORED);
    cr_assert_eq(read_reply("{\"stream\":\"S\", \"seq\":22,\"duplicate\": true}").kind, NATS_REPLY_DUPLICATE);
    cr_assert_eq(read_reply("{\"stream\":\"\\\"error\\\"\",\"seq\":1,\"duplicate\":true}").kind,
                 NATS_REPLY_DUPLICATE);
}

Test(nats_messages, an_error_is_final_only_if_the_message_is_at_fault)
{
    struct nats_reply reply = read_reply("{\"error\":{\"code\":400,\"err_code\":10054,\"description\":\"too "
                                         "large\"},\"stream\":\"S\",\"seq\":0}");
    cr_assert_eq(reply.kind, NATS_REPLY_REFUSED);
    cr_assert_str_eq(reply.text, "too large (error 10054)");
    reply = read_reply(
        "{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"maximum messages exceeded\"}}");
    cr_assert_eq(reply.kind, NATS_REPLY_FAILED);
    cr_assert_eq(reply.code, 10077);
    cr_assert_eq(read_reply("{\"error\":5}").kind, NATS_REPLY_FAILED);
    cr_assert_eq(read_reply("{\"error\":{\"err_code\":\"x\",\"description\":7},\"stream\":1}").kind,
                 NATS_REPLY_FAILED);
}

Test(nats_messages, what_is_no_reply_settles_nothing)
{
    static const char *const texts[] = {"", "{", "[]", "null", "5", "hello", "{\"error\":"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_assert_eq(read_reply(texts[i]).kind, NATS_REPLY_FAILED, "%s", texts[i]);
}

Test(nats_messages, only_a_streams_acknowledgement_shows_that_an_event_is_stored)
{
    static const char *const texts[] = {
        "{}",          "{\"status\":\"ok\"}",      "{\"stream\":\"S\"}",
        "{\"seq\":1}", "{\"stream\":1,\"seq\":1}", "{ \"stream\": \"S\", \"seq\": \"1\" }"};
    struct nats_reply reply;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cr_assert_eq(read_reply(texts[i]).kind, NATS_REPLY_FAILED, "%s", texts[i]);
        wr_nats_reply_read(&reply, NATS_REPLY_OF_REQUEST, texts[i], strlen(texts[i]));
        cr_assert_eq(reply.kind, NATS_REPLY_STORED, "%s", texts[i]);
    }
    cr_assert_eq(read_reply("{ \"seq\": 1, \"stream\": \"S\" }").kind, NATS_REPLY_STORED);
    cr_assert_eq(read_reply("{ \"seq\": 1, \"stream\": \"S\", \"duplicate\": true }").kind,
                 NATS_REPLY_DUPLICATE);
}

/* ---- The window ------------------------------------------------------------------------------ */

static struct nats_window window;

static weir_batch batch_from(uint64_t sequence, uint32_t count)
{
    return (weir_batch){.size = sizeof(weir_batch),
                        .count = count,
                        .sequence = sequence,
                        .origin = "00112233445566778899aabbccddeeff"};
}

static void begin(uint64_t sequence, uint32_t count, uint32_t expected)
{
    weir_batch batch = batch_from(sequence, count);
    cr_assert_eq(wr_nats_window_begin(&window, &batch), expected);
}

static void add_events(uint32_t count, uint32_t samples)
{
    for (uint32_t i = 0; i < count; i++)
        wr_nats_window_add(&window, samples, false, false);
}

Test(nats_messages, events_are_settled_in_order_whatever_order_replies_come_in)
{
    uint32_t refused = 0;
    cr_assert(wr_nats_window_init(&window, 5));
    begin(100, 10, 0);
    add_events(5, 2);
    cr_assert_eq(wr_nats_window_free(&window), 0);
    cr_assert(wr_nats_window_settle(&window, 1, true));
    cr_assert_not(wr_nats_window_settle(&window, 1, false));
    cr_assert_not(wr_nats_window_settle(&window, 5, false));
    cr_assert_eq(wr_nats_window_take(&window, &refused), 0);
    cr_assert(wr_nats_window_settle(&window, 0, false));
    cr_assert_eq(wr_nats_window_take(&window, &refused), 4);
    cr_assert_eq(refused, 2);
    cr_assert_not(wr_nats_window_settle(&window, 0, false));
    cr_assert_eq(wr_nats_window_free(&window), 2);
    wr_nats_window_fini(&window);
}

Test(nats_messages, refused_events_are_the_last_ones_that_are_taken_at_once)
{
    uint32_t refused = 0;
    cr_assert(wr_nats_window_init(&window, 8));
    begin(0, 12, 0);
    add_events(4, 3);
    for (uint64_t number = 0; number < 4; number++)
        cr_assert(wr_nats_window_settle(&window, number, number == 1 || number == 2));
    cr_assert_eq(wr_nats_window_take(&window, &refused), 9);
    cr_assert_eq(refused, 6);
    cr_assert_eq(wr_nats_window_take(&window, &refused), 0);
    begin(9, 3, 3);
    refused = 0;
    cr_assert_eq(wr_nats_window_take(&window, &refused), 3);
    cr_assert_eq(refused, 0);
    wr_nats_window_fini(&window);
}

Test(nats_messages, what_is_offered_again_is_not_published_again)
{
    uint32_t refused = 0;
    cr_assert(wr_nats_window_init(&window, 8));
    begin(0, 6, 0);
    add_events(6, 1);
    wr_nats_window_settle_before(&window, 2);
    cr_assert_eq(wr_nats_window_take(&window, &refused), 2);
    begin(2, 10, 4);
    begin(2, 4, 4);
    wr_nats_window_fini(&window);
}

Test(nats_messages, another_batch_forgets_what_was_published)
{
    uint32_t refused = 0;
    cr_assert(wr_nats_window_init(&window, 8));
    begin(0, 6, 0);
    add_events(6, 1);
    begin(3, 6, 0);
    cr_assert_not(wr_nats_window_settle(&window, 3, false));
    add_events(2, 1);
    begin(3, 1, 0);
    add_events(1, 1);
    cr_assert(wr_nats_window_settle(&window, 8, false));
    cr_assert_eq(wr_nats_window_take(&window, &refused), 1);
    cr_assert_eq(refused, 0);
    wr_nats_window_fini(&window);
}
