/* Checks of a source in a program: it runs in the real core, through the public API. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "lane/losses.h"
#include "program.h"
#include "specimen.h"
#include "subject.h"
#include "text/buffer.h"
#include "thread.h"

/* ---- Where its values go --------------------------------------------------------------------- */

static void *create_sink(const weir_host *host, const void *options)
{
    (void)options;
    return (void *)(uintptr_t)host;
}

static void take_batch(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    (void)outcome; /* all of it is delivered */
}

static void destroy_sink(void *self)
{
    (void)self;
}

static const weir_handler_type sink = {
    .size = sizeof sink,
    .abi = WEIR_ABI,
    .name = "vet_sink",
    .summary = "takes all values",
    .create = create_sink,
    .emit = take_batch,
    .destroy = destroy_sink,
};

/* ---- The program ----------------------------------------------------------------------------- */

/* A common option that --options do not have, with another value than its default. */
static const char *choose_change(const struct vet_subject *subject)
{
    static const char *const changes[] = {"\"series_limit\":9999", "\"retry_max\":\"29s\"",
                                          "\"retry_min\":\"99ms\""};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char key[20];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(changes[i], ":"), changes[i]);
        if (!subject->options || !strstr(subject->options, key))
            return changes[i];
    }
    return "";
}

static void configure(const struct vet_subject *subject, const char *change)
{
    struct wr_buffer text = {0};
    char *source = vet_subject_object(subject, change);
    wr_buffer_put_format(
        &text,
        "{\"settings\":{\"shutdown_timeout\":\"%" PRId64 "ms\"},\"handlers\":{\"sink\":{\"type\":"
        "\"vet_sink\",\"linger\":\"0s\"}},\"groups\":{\"*\":\"sink\"},\"sources\":{\"vet\":%s}}",
        subject->deadline_ms / 2, source ? source : "");
    free(source);
    if (text.failed)
        vet_skip("vet itself: out of memory");
    vet_enter(VET_CREATE, "configuring a program with it");
    if (weir_configure_text(text.data, text.length))
        vet_fail("%s", weir_last_error());
    vet_leave();
    wr_buffer_fini(&text);
}

static weir_source_stats read_stats(void)
{
    weir_source_stats stats = {.size = sizeof stats};
    const char *name = weir_get_source_name(0);
    if (!name || weir_get_source_stats(name, &stats, sizeof stats))
        vet_fail("%s", weir_last_error());
    return stats;
}

static void sleep_shortly(void)
{
    vet_thread_sleep_ms(5);
    atomic_fetch_add(&vet_page->progress, 1);
}

static void await_start(const struct vet_subject *subject)
{
    int64_t end_ms = vet_now_ms() + subject->deadline_ms / 4;
    while (read_stats().state != WEIR_SOURCE_RUNNING && read_stats().state != WEIR_SOURCE_ENDED &&
           vet_now_ms() < end_ms)
        sleep_shortly();
    if (read_stats().state == WEIR_SOURCE_WAITING)
        vet_skip("in a program it does not open; WEIR_LOG=warning shows why");
}

static void check_ledger(void)
{
    weir_handler_stats stats = {.size = sizeof stats};
    if (weir_get_handler_stats("sink", &stats, sizeof stats))
        vet_fail("%s", weir_last_error());
    uint64_t dropped = wr_losses_sum(stats.dropped);
    if (dropped || stats.offered != stats.delivered)
        vet_fail("the ledger does not balance: %" PRIu64 " offered, %" PRIu64 " delivered, %" PRIu64 " dropped",
                 stats.offered, stats.delivered, dropped);
    if (read_stats().added > stats.delivered)
        vet_fail("%" PRIu64 " values were added, but %" PRIu64 " delivered", read_stats().added,
                 stats.delivered);
}

/* Sends values once, and waits until some are added. */
static void send(const struct vet_subject *subject, struct vet_sender *sender)
{
    int64_t end_ms = vet_now_ms() + subject->deadline_ms / 4;
    uint64_t before = read_stats().added;
    vet_sender_start(sender, subject);
    while (subject->write && vet_now_ms() < end_ms &&
           (!vet_sender_has_ended(sender) || read_stats().added == before))
        sleep_shortly();
}

void vet_check_source_program(const struct vet_subject *subject)
{
    struct vet_sender sender;
    vet_program_clear_environment();
    if (weir_register_handler_type(&sink, NULL))
        vet_skip("vet itself: %s", weir_last_error());
    vet_sender_open(&sender);
    configure(subject, "");
    vet_enter(VET_OPEN, "starting it in a program");
    if (weir_start_sources())
        vet_fail("%s", weir_last_error());
    vet_leave();
    await_start(subject);
    vet_program_fork(NULL);
    configure(subject, "");
    send(subject, &sender);
    vet_enter(VET_RUN, "replacing it in a program");
    configure(subject, choose_change(subject));
    vet_leave();
    vet_enter(VET_RUN, "stopping it in a program");
    int result = weir_stop_sources(subject->deadline_ms / 4);
    vet_leave();
    if (result)
        vet_fail("in a program it does not stop: %s", weir_last_error());
    vet_sender_close(&sender);
    weir_flush(subject->deadline_ms / 4);
    check_ledger();
    vet_note_pass(
        "a fork, a reload with equal and with changed options, a stop; the ledger balances; the program "
        "exits");
}
