#include "forward_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../forwarding/forward_identity.h"
#include "../output.h"
#include "registry/labels_walk.h"
#include "text/array.h"

enum {
    POLL_MS = 20, /* interval of fork points in a wait */
    ENOUGH = 64 * 1024 /* bytes that are encoded before they are sent */,
    WINDOW = 64 * 1024 /* samples that may wait for their acknowledgement, if the batch has no more */,
    WINDOW_BLOCKS = 200 /* the same of blocks: a receiver stops reading at 256 */,
};

void wr_forward_link_init(struct forward_link *link, const weir_host *host)
{
    wr_connection_init(&link->connection, host);
    link->ledger = host->service(host, WEIR_SERVICE_LEDGER);
    link->upstream = host->service(host, WEIR_SERVICE_UPSTREAM);
    link->ahead = host->service(host, WEIR_SERVICE_AHEAD);
}

void wr_forward_link_fini(struct forward_link *link)
{
    wr_buffer_fini(&link->out);
    free(link->ids);
    free(link->flights);
}

/* ---- What waits for its acknowledgement ------------------------------------------------------ */

static bool add_flight(struct forward_link *link, struct flight flight)
{
    if (link->flight_first && link->flight_count == link->flight_room) {
        link->flight_count -= link->flight_first;
        memmove(link->flights, link->flights + link->flight_first, link->flight_count * sizeof *link->flights);
        link->flight_first = 0;
    }
    if (!WR_ARRAY_HAS_ROOM(&link->flights, &link->flight_room, (uint32_t)link->flight_count + 1))
        return false;
    link->flights[link->flight_count++] = flight;
    return true;
}

static void settle(struct forward_link *link, struct flight *flight)
{
    if (!flight->is_old) {
        link->settled_end = flight->end;
        link->refused += flight->refused;
    }
    link->flight_first++;
}

static void settle_local(struct forward_link *link)
{
    while (link->flight_first < link->flight_count && link->flights[link->flight_first].is_local)
        settle(link, &link->flights[link->flight_first]);
}

/* ---- The path ---------------------------------------------------------------------------------- */

_Static_assert((int)WIRE_ID == (int)WEIR_UPSTREAM_ID && (int)WIRE_PATH == (int)WEIR_UPSTREAM_MOST, "they fit");

static struct wire_path find_path(const struct forward_link *link)
{
    struct wire_path path = {0};
    unsigned depth = 0;
    path.count = (uint8_t)link->upstream->get(link->connection.host, path.ids[0], WIRE_PATH, &depth);
    path.depth = (uint8_t)(depth < WIRE_DEPTH ? depth : WIRE_DEPTH);
    return path;
}

/* The receiver learns when values begin to come from elsewhere, and refuses those that it has sent itself. */
static void update_path(struct forward_link *link)
{
    const struct wire_path path = find_path(link);
    if (memcmp(&path, &link->path, sizeof path) == 0)
        return;
    link->path = path;
    wr_wire_put_path(&link->out, &path);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

/* Gets the handler's ledger, which the receiver shows, since the last leave. */
static void update_totals(struct forward_link *link)
{
    const weir_host *host = link->connection.host;
    const struct wire_totals *since = &link->reported->since;
    weir_handler_stats stats = {0};
    if (!link->ledger->get(host, &stats, sizeof stats))
        return;
    uint64_t filtered = stats.dropped[WEIR_DROPPED_FILTERED]; /* it was never to be sent */
    link->totals.added = stats.offered - filtered - since->added;
    link->totals.recovered = stats.recovered - since->recovered;
    link->totals.delivered = stats.delivered - since->delivered;
    link->totals.lost = 0 - filtered - since->lost;
    for (size_t i = 0; i < WEIR_DROPPED_MAX; i++)
        link->totals.lost += stats.dropped[i];
}

/* The receiver adds up what is reported at each leave. What waits then is reported again as recovered. */
static void begin_anew(struct forward_link *link)
{
    const struct wire_totals *now = &link->totals;
    struct wire_totals *since = &link->reported->since;
    since->added += now->added;
    since->recovered -= now->added - now->delivered - now->lost;
    since->delivered += now->delivered;
    since->lost += now->lost;
}

/* What a handler of another type has delivered in its place is not reported. Returns false if out of memory. */
static bool begin_first(struct forward_link *link)
{
    if (!link->reported)
        link->reported = wr_forward_reported(link->connection.host->name);
    if (!link->reported || link->reported->has_begun)
        return link->reported;
    link->reported->has_begun = true;
    update_totals(link);
    if (link->totals.delivered)
        begin_anew(link);
    return true;
}

/* ---- Receiving ------------------------------------------------------------------------------- */

static bool fail(struct forward_link *link, const char *reason)
{
    snprintf(link->reason, sizeof link->reason, "%s", reason);
    return false;
}

static bool take_ack(struct forward_link *link, const struct wire_frame *frame)
{
    static const char *const counters[] = {"acks.taken", "acks.stored", "acks.delivered", "acks.dropped"};
    struct wire_acknowledgement ack;
    const char *fault = wr_wire_get_ack(frame, &ack);
    struct flight *flight = &link->flights[link->flight_first];
    if (fault)
        return fail(link, fault);
    if (link->flight_first == link->flight_count || flight->sequence != ack.sequence ||
        flight->end != ack.end || (!flight->is_old && strcmp(link->origin, ack.origin) != 0))
        return fail(link, "ACK is not the one for the block that was sent first");
    flight->refused = ack.refused;
    link->connection.host->count(link->connection.host, counters[ack.state], 1);
    settle(link, flight);
    settle_local(link);
    return true;
}

#define LATE "the receiver has no journal and acknowledges at the end of its interval of \"aggregate\""
#define REMEDY "set settings.journal there, or \"ack\": \"taken\" here"

/* Once: of many children that end, each waits. */
static void note_late(struct forward_link *link)
{
    const weir_host *host = link->connection.host;
    if (link->is_late && !link->has_warned)
        host->log(host, WEIR_LOG_WARNING, "%s: " LATE ", which a process that ends waits for; " REMEDY,
                  link->connection.peer);
    link->has_warned |= link->is_late;
}

static bool take_welcome(struct forward_link *link, const struct wire_frame *frame)
{
    struct wire_welcome welcome;
    const char *fault = wr_wire_get_welcome(frame, &welcome);
    if (fault)
        return fail(link, fault);
    if (welcome.major != WIRE_MAJOR) {
        snprintf(link->reason, sizeof link->reason, "the receiver has version %u.%u, and this is version %d.%d",
                 welcome.major, welcome.minor, WIRE_MAJOR, WIRE_MINOR);
        return false;
    }
    link->is_welcome = true;
    link->has_weights = welcome.minor >= WIRE_MINOR_WEIGHTS;
    link->is_late = welcome.is_late && link->ack == WIRE_ACK_STORED;
    note_late(link);
    return true;
}

static bool take_frame(struct forward_link *link, const struct wire_frame *frame)
{
    const char *reason;
    const char *fault = NULL;
    if (frame->type == WIRE_REFUSE) {
        fault = wr_wire_get_refuse(frame, &reason);
        return fail(link, fault ? fault : reason);
    }
    if (!link->is_welcome)
        return take_welcome(link, frame);
    if (frame->type == WIRE_ACK)
        return take_ack(link, frame);
    return fail(link, "a frame has a type that this version does not know");
}

static bool take_frames(struct forward_link *link)
{
    struct wire_frame frame;
    const char *fault;
    size_t at = 0, length;
    while ((length = wr_wire_find(link->in + at, link->in_length - at, sizeof link->in - WIRE_HEADER, &frame,
                                  &fault)) > 0) {
        at += length;
        if (!take_frame(link, &frame))
            return false;
    }
    link->in_length -= at;
    memmove(link->in, link->in + at, link->in_length);
    return !fault || fail(link, fault);
}

static enum connection_state receive(struct forward_link *link)
{
    struct connection *connection = &link->connection;
    for (;;) {
        ssize_t count = recv(connection->own.fd, link->in + link->in_length, sizeof link->in - link->in_length,
                             MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            return CONNECTION_READY;
        connection->error = count ? errno : EPIPE;
        if (count <= 0)
            return CONNECTION_LOST;
        link->in_length += (size_t)count;
        if (!take_frames(link))
            return CONNECTION_LOST;
    }
}

/* ---- Failures ------------------------------------------------------------------------------- */

bool wr_forward_link_fail(const struct forward_link *link, enum connection_state state, int code,
                          weir_outcome *outcome)
{
    const char *peer = link->connection.peer;
    if (*link->reason)
        return wr_system_fail(outcome, code, "%s: %s", peer, link->reason);
    if (link->is_late && (state == CONNECTION_BUSY || state == CONNECTION_STOPPED))
        return wr_system_fail(outcome, code, "%.80s: not acknowledged yet: " LATE "; " REMEDY, peer);
    if (state == CONNECTION_BUSY)
        return wr_system_fail(outcome, code, "%s: %s within the time limit", peer,
                              link->is_welcome ? "no acknowledgement" : "no welcome");
    wr_connection_fail(&link->connection, state, code, outcome);
    return false;
}

/* ---- Series ---------------------------------------------------------------------------------- */

/* All series are described again: their labels have changed, ids may stand for others, or there may be too few
 * of them for a block. */
static void renew_ids(struct forward_link *link)
{
    if (link->ids)
        memset(link->ids, 0, link->id_room * sizeof *link->ids);
    link->id_count = 0;
}

/* Returns false if they are too many. */
static bool set_labels(struct wire_series *to, const weir_batch *batch, const weir_series *series)
{
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    while ((label = wr_labels_next(&walk, series, batch)) && to->label_count < WIRE_LABELS)
        to->labels[to->label_count++] = *label;
    return !label;
}

enum known { IS_KNOWN, IS_TOO_LONG, IS_OUT_OF_MEMORY };

/* Sends the description of a series once. */
static enum known know(struct forward_link *link, const weir_batch *batch, uint32_t id)
{
    if (!WR_ARRAY_HAS_ROOM(&link->ids, &link->id_room, id + 1))
        return IS_OUT_OF_MEMORY;
    if (link->ids[id])
        return IS_KNOWN;
    const weir_series *series = batch->series(batch, id);
    struct wire_series wire = {
        .id = link->id_count,
        .instrument = (uint8_t)series->instrument,
        .is_cumulative = series->cumulative,
        .group = series->group,
        .name = series->name,
        .unit = series->unit ? series->unit : "",
        .help = series->help ? series->help : "",
    };
    if (!set_labels(&wire, batch, series) || !wr_wire_put_series(&link->out, &wire))
        return IS_TOO_LONG;
    link->ids[id] = ++link->id_count;
    return IS_KNOWN;
}

/* ---- Batches --------------------------------------------------------------------------------- */

static size_t text_length(const weir_batch *batch, const weir_sample *sample)
{
    return sample->note && batch->notes ? strlen(batch->notes[sample->note]) : 0;
}

/* A part of the batch: samples that are sent as one block, or that are left out for one reason. */
struct part {
    uint32_t first, end;
    enum { PART_SENT, PART_TOO_LONG, PART_FAILED } is;
    uint32_t slots;
    bool is_plain; /* each is an event of its own, without metadata */
};

/* What is to be done with the event that begins there, and where it ends. */
static struct part look_at(struct forward_link *link, const weir_batch *batch, uint32_t first)
{
    struct part part = {.first = first, .end = first};
    bool more = true;
    for (; more && part.end < batch->count; part.end++) {
        const weir_sample *sample = &batch->samples[part.end];
        size_t length = text_length(batch, sample);
        uint32_t slots = length < (size_t)32 * WIRE_SLOTS ? wr_wire_slots(length) : WIRE_SLOTS + 1;
        enum known known = part.is == PART_SENT ? know(link, batch, sample->series) : IS_KNOWN;
        /* an event that is longer than a block is divided */
        if (part.slots + slots > WIRE_SLOTS && part.end > first)
            break;
        if (known == IS_OUT_OF_MEMORY)
            part.is = PART_FAILED;
        else if (known == IS_TOO_LONG || (part.is == PART_SENT && slots > WIRE_SLOTS))
            part.is = PART_TOO_LONG;
        part.slots += slots;
        more = sample->flags & WEIR_SAMPLE_MORE;
    }
    return part;
}

/* What the receiver compares with the ledger: samples may be parts of summaries, which the ledger counts as the
 * values that they are of. */
static void put_weights(struct forward_link *link, const weir_batch *batch, const struct part *part)
{
    uint64_t values[WIRE_SLOTS];
    const uint32_t count = part->end - part->first;
    if (link->has_weights &&
        link->ledger->values(link->connection.host, batch->samples + part->first, count, values))
        wr_wire_put_weights(&link->out, values, count);
}

static bool put_part(struct forward_link *link, const weir_batch *batch, const struct part *part)
{
    const uint32_t count = part->end - part->first;
    struct flight flight = {
        .sequence = batch->sequence + part->first,
        .end = batch->sequence + part->end,
        .is_local = part->is != PART_SENT,
        .refused = part->is == PART_TOO_LONG ? count : 0,
    };
    if (part->is == PART_FAILED || !add_flight(link, flight))
        return false;
    if (part->is != PART_SENT)
        return true;
    put_weights(link, batch, part);
    size_t begin = wr_wire_begin_block(&link->out, batch->origin, flight.sequence);
    uint32_t end = part->is_plain ? part->first : part->end;
    if (part->is_plain)
        wr_wire_put_plain(&link->out, batch->samples + part->first, count, link->ids);
    for (uint32_t i = part->first; i < end; i++) {
        const weir_sample *sample = &batch->samples[i];
        struct wire_sample wire = {
            .series = link->ids[sample->series] - 1,
            .kind = (uint8_t)sample->kind,
            .more = sample->flags & WEIR_SAMPLE_MORE && i + 1 < part->end,
            .time_ns = sample->time_ns,
            .text_length = (uint32_t)text_length(batch, sample),
        };
        wire.text = wire.text_length ? batch->notes[sample->note] : "";
        memcpy(&wire.bits, &sample->value, sizeof wire.bits);
        wr_wire_put_sample(&link->out, &wire);
    }
    link->totals.sent += count;
    wr_wire_end_block(&link->out, begin, count, &link->totals);
    return !link->out.failed;
}

static bool has_more(const struct forward_link *link, const weir_batch *batch)
{
    return link->sent_end < batch->sequence + batch->count;
}

static bool is_settled(const struct forward_link *link, const weir_batch *batch)
{
    return link->settled_end >= batch->sequence + batch->count;
}

/* Sets which of the batch's numbers are sent already. */
static void relate(struct forward_link *link, const weir_batch *batch)
{
    if (strcmp(link->origin, batch->origin) == 0 && batch->sequence >= link->begin &&
        batch->sequence <= link->sent_end)
        return;
    for (size_t i = link->flight_first; i < link->flight_count; i++)
        link->flights[i].is_old = true;
    snprintf(link->origin, sizeof link->origin, "%s", batch->origin);
    link->begin = link->sent_end = link->settled_end = batch->sequence;
    link->refused = 0;
}

/* Whether the next event can be in the same block. */
static bool can_join(const struct part *part, const struct part *event)
{
    return part->is == PART_SENT && event->is == PART_SENT && part->slots + event->slots <= WIRE_SLOTS;
}

/* Events of one sample without metadata, of series that the receiver knows, are what most batches have. Adds
 * those that come next to the part. */
static void join_plain(const struct forward_link *link, const weir_batch *batch, struct part *part)
{
    uint32_t room = part->is == PART_SENT ? WIRE_SLOTS - part->slots : 0, i = part->end;
    const uint32_t end = room < batch->count - i ? i + room : batch->count;
    for (; i < end; i++) {
        const weir_sample *sample = &batch->samples[i];
        if (sample->flags & WEIR_SAMPLE_MORE || sample->note || sample->series >= link->id_room ||
            !link->ids[sample->series])
            break;
    }
    part->slots += i - part->end;
    part->end = i;
}

/* From the sample on that is not sent yet. */
static struct part next_part(struct forward_link *link, const weir_batch *batch)
{
    struct part part = look_at(link, batch, (uint32_t)(link->sent_end - batch->sequence));
    part.is_plain = part.end == part.first + 1 && part.slots == 1;
    for (;;) {
        join_plain(link, batch, &part);
        if (part.end == batch->count)
            break;
        struct part event = look_at(link, batch, part.end);
        if (!can_join(&part, &event))
            break;
        part.is_plain &= event.end == event.first + 1 && event.slots == 1;
        part.end = event.end;
        part.slots += event.slots;
    }
    return part;
}

/* Puts what the batch has beyond what was sent already, until there is enough. Returns false if out of memory.
 */
static bool put_some(struct forward_link *link, const weir_batch *batch)
{
    while (has_more(link, batch) && link->out.length - link->out_at < ENOUGH) {
        if (link->id_count > WIRE_SERIES - 4 * WIRE_SLOTS)
            renew_ids(link);
        struct part part = next_part(link, batch);
        if (!put_part(link, batch, &part))
            return false;
        link->sent_end = batch->sequence + part.end;
    }
    return true;
}

/* ---- Ahead of the batch ---------------------------------------------------------------------- */

static bool has_window(const struct forward_link *link)
{
    return link->sent_end - link->settled_end < WINDOW &&
           link->flight_count - link->flight_first < WINDOW_BLOCKS;
}

/* Gets what the next emit is going to offer. What does not continue what was sent has to wait for that. */
static bool look_ahead(struct forward_link *link)
{
    struct weir_batch *next = &link->next;
    *next = (weir_batch){.size = sizeof *next};
    if (!has_window(link) || !link->ahead->next(link->connection.host, next))
        return false;
    bool continues = strcmp(link->origin, next->origin) == 0 && next->sequence <= link->sent_end &&
                     wr_labels_hash(next) == link->labels_hash && next->definitions == link->definitions;
    if (!continues)
        link->next_is_other = true;
    return continues;
}

/* Puts what is to be sent next. Returns false if out of memory. */
static bool fill(struct forward_link *link, const weir_batch *batch)
{
    bool has_put = put_some(link, batch);
    while (has_put && link->out.length - link->out_at < ENOUGH && !link->next_is_other &&
           !is_settled(link, batch) && (has_more(link, &link->next) || look_ahead(link)))
        has_put = put_some(link, &link->next);
    settle_local(link);
    return has_put;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static enum connection_state send_out(struct forward_link *link)
{
    enum connection_state state = CONNECTION_READY;
    while (link->out_at < link->out.length && state == CONNECTION_READY) {
        size_t count;
        state = wr_connection_send(&link->connection, link->out.data + link->out_at,
                                   link->out.length - link->out_at, &count);
        link->out_at += count;
    }
    if (link->out_at >= ENOUGH || link->out_at == link->out.length) {
        link->out.length -= link->out_at;
        memmove(link->out.data, link->out.data + link->out_at, link->out.length);
        link->out_at = 0;
    }
    return state;
}

/* What has come is read before a failure of sending is reported: it may be the reason. */
static enum connection_state exchange(struct forward_link *link)
{
    struct connection *connection = &link->connection;
    struct pollfd entry = {.fd = connection->own.fd, .events = POLLIN};
    bool goes_on = link->out.length - link->out_at >= ENOUGH; /* there may be more to put */
    enum connection_state sent = send_out(link);
    int error = connection->error;
    if (sent == CONNECTION_BUSY)
        entry.events |= POLLOUT;
    connection->host->wait(connection->host, 0); /* a fork point */
    goes_on &= sent != CONNECTION_BUSY;
    int count = poll(&entry, 1, sent == CONNECTION_LOST || goes_on ? 0 : POLL_MS);
    if (count > 0 && !wr_own_fd_is_open(&connection->own)) {
        connection->error = EBADF;
        return CONNECTION_LOST;
    }
    if (count > 0 && entry.revents & ~POLLOUT && receive(link) == CONNECTION_LOST)
        return CONNECTION_LOST;
    connection->error = error;
    return sent == CONNECTION_LOST ? CONNECTION_LOST : CONNECTION_READY;
}

/* Sends and receives until the batch is settled and all that was put is sent; NULL: until the receiver's
 * welcome. */
static enum connection_state await(struct forward_link *link, const weir_batch *batch, int64_t until_ms)
{
    const uint64_t settled_end = link->settled_end;
    const int64_t begin_ms = wr_output_now_ms();
    for (;;) {
        bool progress = link->settled_end != settled_end;
        if (batch && !fill(link, batch)) {
            fail(link, "out of memory");
            return CONNECTION_LOST;
        }
        if (link->is_welcome && !link->out.length && (!batch || is_settled(link, batch)))
            return CONNECTION_READY;
        if (wr_output_now_ms() >= wr_output_wait_end_ms(until_ms, progress, begin_ms))
            return CONNECTION_BUSY;
        if (exchange(link) == CONNECTION_LOST)
            return CONNECTION_LOST;
        /* after an exchange: a stop without a limit of time calls again and again */
        if (!wr_output_may_wait(link->connection.host))
            return CONNECTION_STOPPED;
    }
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* Returns what is wrong, or NULL. Blanks and newlines at the end are no part of the token. */
static const char *read_token(const char *path, char token[WIRE_TOKEN + 2])
{
    struct stat status;
    int fd = wr_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return wr_system_strerror(errno);
    ssize_t length = fstat(fd, &status) == 0 ? read(fd, token, WIRE_TOKEN + 1) : -1;
    int error = errno;
    close(fd);
    if (length < 0)
        return wr_system_strerror(error);
    while (length && strchr(" \r\n", token[length - 1]))
        length--;
    token[length] = '\0';
    if (!S_ISREG(status.st_mode))
        return "is not a regular file";
    return length < 8 || length > WIRE_TOKEN || memchr(token, 0, (size_t)length)
               ? "has a token of a length that is not allowed (8 to 512 characters)"
               : NULL;
}

static void forget(struct forward_link *link)
{
    wr_buffer_clear(&link->out);
    link->out_at = link->in_length = 0;
    link->reason[0] = '\0';
    link->is_welcome = link->has_weights = link->is_late = link->is_lost = false;
    link->id_count = 0;
    if (link->ids)
        memset(link->ids, 0, link->id_room * sizeof *link->ids);
    link->flight_count = link->flight_first = 0;
    link->origin[0] = '\0';
    link->refused = 0;
    link->totals = (struct wire_totals){0};
}

static void greet(struct forward_link *link, const char *token)
{
    char process[WIRE_NAME + 1] = "", machine[WIRE_NAME + 1] = "";
    struct wire_hello hello = {
        .major = WIRE_MAJOR,
        .minor = WIRE_MINOR,
        .ack = (uint8_t)link->ack,
        .pid = (uint32_t)getpid(),
        .process = process,
        .machine = machine,
        .handler = link->connection.host->name,
        .token = token,
    };
    update_totals(link);
    hello.totals = link->totals;
    wr_forward_id(hello.id);
    hello.path = link->path = find_path(link);
    wr_forward_names(process, machine);
    wr_wire_put_hello(&link->out, &hello);
}

/* A receiver without room is waited for as long as its system responds. There is no limit for what TCP has not
 * acknowledged, since a response that has no room would count as none. */
static void keep_alive(const struct forward_link *link)
{
    static const int idle_s = 30, interval_s = 10, probes = 6;
    const int fd = link->connection.own.fd;
    if (!(link->connection.kind & WEIR_CONNECT_TCP))
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

bool wr_forward_link_open(struct forward_link *link, int64_t timeout_ms, weir_outcome *outcome)
{
    const int64_t until_ms = wr_output_now_ms() + timeout_ms;
    char token[WIRE_TOKEN + 2] = "";
    const char *fault = link->token_file ? read_token(link->token_file, token) : NULL;
    forget(link);
    if (fault)
        return wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "token_file %.150s: %s", link->token_file, fault);
    bool has_begun = begin_first(link);
    if (has_begun)
        greet(link, token);
    if (!has_begun || link->out.failed)
        return wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "out of memory");
    if (!wr_connection_open(&link->connection, timeout_ms, outcome))
        return false;
    keep_alive(link);
    enum connection_state state = await(link, NULL, until_ms);
    if (state == CONNECTION_READY)
        return true;
    wr_forward_link_fail(link, state, WEIR_OUTCOME_RETRY, outcome);
    wr_own_fd_close(&link->connection.own);
    return false;
}

/* The ledger begins anew only if the receiver gets to know it: one that is gone, or the one that takes its
 * place, gets all of it with the next greeting. */
static void take_leave(struct forward_link *link)
{
    update_totals(link);
    wr_wire_put_bye(&link->out, &link->totals);
    if (!link->out.failed && send_out(link) == CONNECTION_READY && !link->out.length)
        begin_anew(link);
}

void wr_forward_link_close(struct forward_link *link)
{
    if (wr_own_fd_is_open(&link->connection.own) && link->is_welcome && !link->is_lost)
        take_leave(link);
    wr_own_fd_close(&link->connection.own);
    forget(link);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

enum connection_state wr_forward_link_deliver(struct forward_link *link, const weir_batch *batch,
                                              int64_t timeout_ms)
{
    const uint64_t hash = wr_labels_hash(batch);
    relate(link, batch);
    if (hash != link->labels_hash || batch->definitions != link->definitions)
        renew_ids(link);
    link->labels_hash = hash;
    link->definitions = batch->definitions;
    link->next = (weir_batch){.size = sizeof link->next};
    link->next_is_other = false;
    update_totals(link);
    update_path(link);
    enum connection_state state = await(link, batch, wr_output_now_ms() + timeout_ms);
    link->is_lost = state == CONNECTION_LOST;
    return state;
}

/* Samples that were sent ahead and refused are reported with the batch before them, if it is large enough. */
uint32_t wr_forward_link_settled(struct forward_link *link, const weir_batch *batch, uint32_t *refused)
{
    uint64_t end = batch->sequence + batch->count;
    if (link->settled_end < end)
        end = link->settled_end > batch->sequence ? link->settled_end : batch->sequence;
    uint64_t done = end - batch->sequence;
    *refused = (uint32_t)(link->refused < done ? link->refused : done);
    link->refused -= *refused;
    return (uint32_t)done;
}
