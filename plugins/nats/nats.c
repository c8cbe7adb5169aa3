/* nats: publishes events to NATS JetStream, and settles them by its acknowledgements.
 *
 * Messages are sent ahead of their acknowledgements. Each has an id made of its first sample's origin and
 * sequence, so the server recognises one that comes again. Without JetStream, a message that the server sends
 * back shows that it has received all before it. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../output.h"
#include "nats_link.h"
#include "nats_reply.h"
#include "nats_settings.h"
#include "nats_stream.h"
#include "nats_subjects.h"
#include "nats_window.h"

enum {
    PROGRESS_MS = 100,    /* emit reports what is settled at least this often */
    KEEP_ALIVE_MS = 20000 /* how often an idle connection is read, to reply to the server's PINGs */
};

/* A batch waits for acknowledgements: large batches make up for that. */
static const weir_default nats_defaults[] = {{"queue", "8MiB"},   {"batch", "20000"}, {"batch_bytes", "2MiB"},
                                             {"retry_max", "5s"}, {"format", "json"}, {NULL, NULL}};

struct nats {
    const weir_host *host;
    const struct nats_options *options;
    const weir_encoder *encoder;
    struct nats_link link;
    struct nats_window window;
    struct nats_subjects subjects;
    int64_t connect_timeout_ms, ack_timeout_ms;
    uint32_t resume_at; /* events in flight at which more are published */
    char refusal[200];  /* why the last event was refused, which may be settled by a later call of emit */
};

/* What happens in one call of emit. */
struct delivery {
    struct nats *nats;
    const weir_batch *batch;
    weir_outcome *outcome;
    uint32_t sent; /* samples of the batch that are published, or need not be */
    uint32_t progress;
    bool has_failed; /* the outcome is set */
};

/* ---- Creating -------------------------------------------------------------------------------- */

static void declare_timeout(const struct nats *nats)
{
    const weir_try_timeout *timeout = nats->host->service(nats->host, WEIR_SERVICE_TRY_TIMEOUT);
    int64_t connecting_ms = nats->connect_timeout_ms * (int64_t)wr_nats_settings_servers(nats->options).count;
    if (timeout)
        timeout->set(nats->host, connecting_ms > nats->ack_timeout_ms ? connecting_ms : nats->ack_timeout_ms);
}

static bool init(struct nats *nats, const weir_host *host, const struct nats_options *options)
{
    nats->host = host;
    nats->options = options;
    nats->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    nats->connect_timeout_ms = wr_output_to_ms(options->connect_timeout_ns);
    nats->ack_timeout_ms = wr_output_to_ms(options->ack_timeout_ns);
    nats->resume_at = (uint32_t)options->max_pending - (uint32_t)options->max_pending / 4;
    if (!wr_nats_settings_check(host, options) || !wr_nats_link_init(&nats->link, host, options))
        return false;
    wr_nats_subjects_init(&nats->subjects, options->subject);
    declare_timeout(nats);
    if (wr_nats_window_init(&nats->window, (uint32_t)options->max_pending))
        return true;
    host->refuse(host, "", "out of memory");
    return false;
}

static void *nats_create(const weir_host *host, const void *options)
{
    struct nats *nats = wr_system_allocate(host, sizeof *nats);
    if (nats && init(nats, host, options))
        return nats;
    free(nats);
    return NULL;
}

static void nats_destroy(void *self)
{
    struct nats *nats = self;
    wr_nats_subjects_fini(&nats->subjects);
    wr_nats_window_fini(&nats->window);
    free(nats);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* The option's timeout, or the time left until a stop if that is shorter. */
static int64_t limit_timeout(const struct nats *nats, int64_t timeout_ms)
{
    const weir_blocking_call *blocking = nats->host->service(nats->host, WEIR_SERVICE_BLOCKING_CALL);
    int64_t left_ms = blocking ? blocking->remaining_ms(nats->host) : -1;
    return left_ms >= 0 ? wr_output_least(left_ms, timeout_ms) : timeout_ms;
}

static bool open_within(struct nats *nats, int64_t timeout_ms, bool may_create, weir_outcome *outcome)
{
    timeout_ms = limit_timeout(nats, wr_output_least(timeout_ms, nats->connect_timeout_ms));
    if (!wr_nats_link_open(&nats->link, timeout_ms, outcome))
        return false;
    if (!nats->options->stream || wr_nats_stream_ensure(&nats->link, may_create, timeout_ms, outcome))
        return true;
    wr_nats_link_close(&nats->link);
    return false;
}

/* Nothing here is for good: users, permissions and streams are made on a server while its clients wait. */
static void nats_open(void *self, weir_outcome *outcome)
{
    struct nats *nats = self;
    if (open_within(nats, INT64_MAX, true, outcome))
        nats->host->wake_in(nats->host, KEEP_ALIVE_MS);
}

static void nats_close(void *self)
{
    struct nats *nats = self;
    wr_nats_window_clear(&nats->window);
    wr_nats_link_close(&nats->link);
}

static void nats_abandon(void *self)
{
    const struct nats *nats = self;
    wr_own_fd_abandon(&nats->link.own);
}

static void nats_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct nats *nats = self;
    nats->link.is_probing = true;
    if (open_within(nats, timeout_ms, false, outcome)) {
        wr_nats_link_close(&nats->link);
        snprintf(outcome->reason, sizeof outcome->reason, "the server accepts connections");
    }
    nats->link.is_probing = false;
}

static void lose(struct nats *nats, weir_outcome *outcome)
{
    wr_nats_link_fail(&nats->link, "publish", "the connection was closed", WEIR_OUTCOME_REOPEN, outcome);
}

static void nats_wake(void *self, int why, weir_outcome *outcome)
{
    struct nats *nats = self;
    enum nats_link_state state = NATS_LINK_READY;
    if (why != WEIR_WAKE_TIMER)
        return;
    while (state == NATS_LINK_READY)
        state = wr_nats_link_wait(&nats->link, 0);
    if (state == NATS_LINK_LOST)
        lose(nats, outcome);
    else
        nats->host->wake_in(nats->host, KEEP_ALIVE_MS);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* What is published and not acknowledged is published again, under the same ids. */
static void WEIR_PRINTF(3, 4) fail(struct delivery *delivery, int code, const char *format, ...)
{
    weir_outcome *outcome = delivery->outcome;
    va_list arguments;
    if (delivery->has_failed)
        return;
    delivery->has_failed = true;
    outcome->code = code;
    va_start(arguments, format);
    vsnprintf(outcome->reason, sizeof outcome->reason, format, arguments);
    va_end(arguments);
}

static void fail_if_lost(struct delivery *delivery, enum nats_link_state state)
{
    if (state == NATS_LINK_STOPPED) {
        fail(delivery, WEIR_OUTCOME_RETRY, "stopped while waiting for acknowledgements");
    } else if (state == NATS_LINK_LOST && !delivery->has_failed) {
        delivery->has_failed = true;
        lose(delivery->nats, delivery->outcome);
    }
}

/* A message that the user may not publish gets no acknowledgement. */
static bool fails_as_forbidden(struct delivery *delivery)
{
    char reason[256];
    if (!wr_nats_link_is_forbidden(&delivery->nats->link, reason, sizeof reason))
        return false;
    fail(delivery, WEIR_OUTCOME_REOPEN, "publish: %s", reason);
    return true;
}

static void fail_for_silence(struct delivery *delivery)
{
    long long ms = (long long)delivery->nats->ack_timeout_ms;
    if (!fails_as_forbidden(delivery))
        fail(delivery, WEIR_OUTCOME_REOPEN, "no acknowledgement for %lld ms", ms);
}

static void note_refusal(struct nats *nats, const char *text)
{
    snprintf(nats->refusal, sizeof nats->refusal, "%s", text);
}

/* The reason of a failure, and that calls need not wait for the rest, is more important. */
static void report_refused(const struct delivery *delivery)
{
    weir_outcome *outcome = delivery->outcome;
    if (!outcome->rejected || delivery->has_failed)
        return;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", delivery->nats->refusal);
    outcome->error = WEIR_ERR_TOO_LARGE;
}

/* ---- Publishing ------------------------------------------------------------------------------ */

static natsStatus set_headers(natsMsg *message, const struct nats *nats, const weir_batch *batch,
                              uint32_t start)
{
    char id[64];
    snprintf(id, sizeof id, "%s-%llu", batch->origin, (unsigned long long)(batch->sequence + start));
    natsStatus status = natsMsgHeader_Set(message, "Nats-Msg-Id", id);
    if (status == NATS_OK && nats->options->stream)
        status = natsMsgHeader_Set(message, "Nats-Expected-Stream", nats->options->stream);
    return status;
}

/* Publishes the text of the event at `start`, which gets the window's next number. */
static natsStatus publish(struct nats *nats, const weir_batch *batch, uint32_t start, const char *subject,
                          const char *text, size_t length)
{
    char reply[NATS_LINK_INBOX + 24];
    natsMsg *message = NULL;
    bool acknowledged = nats->options->jetstream;
    snprintf(reply, sizeof reply, "%s%llu", nats->link.inbox, (unsigned long long)nats->window.next);
    natsStatus status = natsMsg_Create(&message, subject, acknowledged ? reply : NULL, text, (int)length);
    if (status == NATS_OK && acknowledged)
        status = set_headers(message, nats, batch, start);
    if (status == NATS_OK)
        status = natsConnection_PublishMsg(nats->link.connection, message);
    natsMsg_Destroy(message);
    return status;
}

static void refuse_event(struct delivery *delivery, const weir_encoded *event, const char *subject)
{
    char text[200];
    if (*subject)
        snprintf(text, sizeof text, "publish %.60s: %zu bytes%s are more than the server's max_payload, %lld",
                 subject, event->length, delivery->nats->options->jetstream ? " and the headers" : "",
                 (long long)delivery->nats->link.max_payload);
    else
        snprintf(text, sizeof text, "publish: the subject is longer than %d bytes", NATS_SUBJECT_MAX - 1);
    note_refusal(delivery->nats, text);
    wr_nats_window_add(&delivery->nats->window, event->count, true, true);
}

static void send_text(struct delivery *delivery, const char *subject, const weir_encoded *event)
{
    struct nats *nats = delivery->nats;
    size_t length = event->length - (event->length && event->data[event->length - 1] == '\n');
    if (!*subject || (int64_t)length > nats->link.max_payload) {
        refuse_event(delivery, event, subject);
        return;
    }
    natsStatus status = publish(nats, delivery->batch, delivery->sent, subject, event->data, length);
    if (status == NATS_OK)
        wr_nats_window_add(&nats->window, event->count, false, false);
    else if (status == NATS_MAX_PAYLOAD) /* with its headers */
        refuse_event(delivery, event, subject);
    else
        fail(delivery, status == NATS_NO_MEMORY ? WEIR_OUTCOME_RETRY : WEIR_OUTCOME_REOPEN, "publish: %s",
             natsStatus_GetText(status));
}

/* An event that the format cannot represent has no text; the core counts it. */
static void send_event(struct delivery *delivery)
{
    struct nats *nats = delivery->nats;
    const weir_batch *batch = delivery->batch;
    weir_encoded event;
    const char *subject =
        wr_nats_subjects_get(&nats->subjects, batch, weir_batch_series(batch, &batch->samples[delivery->sent]));
    if (!subject || !nats->encoder->encode(nats->host, batch, delivery->sent, 1, &event)) {
        fail(delivery, WEIR_OUTCOME_RETRY, "out of memory");
        return;
    }
    if (event.length == 0)
        wr_nats_window_add(&nats->window, event.count, true, false);
    else
        send_text(delivery, subject, &event);
    if (!delivery->has_failed)
        delivery->sent += event.count;
}

/* Without JetStream: a message to ourselves, numbered as the events that have been sent before it. */
static void send_marker(struct delivery *delivery)
{
    struct nats *nats = delivery->nats;
    char subject[NATS_LINK_INBOX + 24];
    snprintf(subject, sizeof subject, "%s%llu", nats->link.inbox, (unsigned long long)nats->window.next);
    natsStatus status = natsConnection_PublishString(nats->link.connection, subject, "");
    if (status != NATS_OK)
        fail(delivery, WEIR_OUTCOME_REOPEN, "publish: %s", natsStatus_GetText(status));
}

/* Few large writes cost less than one for each acknowledgement: so a full window waits until a part of it is
 * free.
 */
static void send_events(struct delivery *delivery)
{
    struct nats *nats = delivery->nats;
    uint32_t before = delivery->sent;
    bool resumes = nats->window.room - wr_nats_window_free(&nats->window) <= nats->resume_at;
    while (resumes && !delivery->has_failed && delivery->sent < delivery->batch->count &&
           wr_nats_window_free(&nats->window) && !wr_nats_link_is_full(&nats->link))
        send_event(delivery);
    if (delivery->sent > before && !nats->options->jetstream && !delivery->has_failed)
        send_marker(delivery);
}

/* ---- Acknowledgements ------------------------------------------------------------------------ */

static void read_acknowledgement(struct delivery *delivery, natsMsg *message, uint64_t number)
{
    struct nats *nats = delivery->nats;
    struct nats_reply reply;
    if (number < nats->window.first || number >= nats->window.next)
        return; /* of an earlier attempt */
    wr_nats_reply_read(&reply, NATS_REPLY_OF_PUBLISH, natsMsg_GetData(message),
                       (size_t)natsMsg_GetDataLength(message));
    if (reply.kind == NATS_REPLY_FAILED) {
        fail(delivery, WEIR_OUTCOME_RETRY, "publish: %s", reply.text);
        return;
    }
    wr_nats_window_settle(&nats->window, number, reply.kind == NATS_REPLY_REFUSED);
    if (reply.kind == NATS_REPLY_REFUSED)
        note_refusal(nats, reply.text);
    else if (reply.kind == NATS_REPLY_DUPLICATE)
        nats->host->count(nats->host, "duplicates", 1);
}

/* On a new connection, what still arrives for the events of this attempt is not taken for those of the next. */
static void fail_without_stream(struct delivery *delivery)
{
    fail(delivery, WEIR_OUTCOME_REOPEN,
         "publish: no stream takes the subject \"%.100s\": create one, or set \"stream\" and \"create\"",
         delivery->nats->options->subject);
}

/* Of an event that has been published, or the marker behind it. */
static void read_message(struct delivery *delivery, natsMsg *message, uint64_t number)
{
    if (delivery->nats->options->jetstream)
        read_acknowledgement(delivery, message, number);
    else
        wr_nats_window_settle_before(&delivery->nats->window, number);
}

static void read_replies(struct delivery *delivery)
{
    struct nats *nats = delivery->nats;
    size_t prefix = strlen(nats->link.inbox);
    natsMsg *message;
    while ((message = wr_nats_link_take(&nats->link))) {
        const char *subject = natsMsg_GetSubject(message);
        if (strncmp(subject, nats->link.inbox, prefix) == 0) /* a server may send anything */
            read_message(delivery, message, strtoull(subject + prefix, NULL, 10));
        natsMsg_Destroy(message);
        delivery->progress++;
    }
    if (nats->link.has_no_responder)
        fail_without_stream(delivery);
    if (!nats->options->jetstream && fails_as_forbidden(delivery))
        return; /* which of the messages is not known */
    delivery->outcome->done += wr_nats_window_take(&nats->window, &delivery->outcome->rejected);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

/* Whether emit has something to report. Nothing is lost by an early return: the window stays, and the core
 * offers the rest at once. Refused samples must be the last ones that are settled. */
static bool is_done(const struct delivery *delivery, int64_t progress_at_ms, int64_t now_ms)
{
    uint32_t done = delivery->outcome->done;
    bool ends = delivery->has_failed || delivery->outcome->rejected;
    return ends || done == delivery->batch->count || (done && now_ms >= progress_at_ms);
}

static void deliver(struct delivery *delivery)
{
    struct nats *nats = delivery->nats;
    const weir_waiting *clock = nats->link.waiting;
    int64_t now_ms = clock->now_ms(nats->host), progress_at_ms = now_ms + PROGRESS_MS;
    int64_t silent_at_ms = now_ms + nats->ack_timeout_ms;
    while (!is_done(delivery, progress_at_ms, now_ms)) {
        uint32_t progress = delivery->progress;
        send_events(delivery);
        read_replies(delivery);
        if (is_done(delivery, progress_at_ms, now_ms))
            break;
        int64_t until_ms =
            delivery->outcome->done ? wr_output_least(progress_at_ms, silent_at_ms) : silent_at_ms;
        fail_if_lost(delivery, wr_nats_link_wait(&nats->link, until_ms - now_ms));
        now_ms = clock->now_ms(nats->host);
        if (delivery->progress != progress)
            silent_at_ms = now_ms + nats->ack_timeout_ms;
        else if (now_ms >= silent_at_ms)
            fail_for_silence(delivery);
    }
    read_replies(delivery);
}

static void nats_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct nats *nats = self;
    outcome->done = 0;
    if (!wr_nats_link_is_open(&nats->link)) {
        wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "the connection was closed");
        return;
    }
    struct delivery delivery = {nats, batch, outcome, wr_nats_window_begin(&nats->window, batch), 0, false};
    wr_nats_subjects_begin(&nats->subjects, batch);
    deliver(&delivery);
    report_refused(&delivery);
    if (outcome->code != WEIR_OUTCOME_OK)
        wr_nats_window_clear(&nats->window);
}

static const weir_handler_type nats_type = {
    .size = sizeof nats_type,
    .abi = WEIR_ABI,
    .name = "nats",
    .summary = "publishes events to NATS JetStream",
    .formats = WEIR_FORMAT_LINES,
    .options = wr_nats_settings_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct nats_options),
    .defaults = nats_defaults,
    .create = nats_create,
    .open = nats_open,
    .emit = nats_emit,
    .close = nats_close,
    .destroy = nats_destroy,
    .wake = nats_wake,
    .abandon = nats_abandon,
    .probe = nats_probe,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &nats_type : NULL;
}
