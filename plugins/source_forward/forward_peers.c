#include "forward_peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/handler.h> /* WEIR_SAMPLE_MORE */

#include "../forwarding/forward_identity.h"
#include "../output.h"
#include "../system.h"
#include "text/array.h"
#include "text/utf8.h"

enum {
    ACCEPTS_AT_ONCE = 64,
    FIRST_ROOM = WIRE_HEADER + WIRE_HELLO_MOST, /* of a connection's memory for what it sends */
    LARGEST_ROOM = WIRE_HEADER + WIRE_PAYLOAD,
    READ_ROOM = 128 * 1024,   /* what it grows to at first */
    LOG_AGAIN_MS = 60 * 1000, /* how often refused connections are logged, for each reason */
    MOST_BLOCKS = 256,        /* of a connection, that are not acknowledged: then nothing is read */
};

/* ---- Life ------------------------------------------------------------------------------------ */

bool wr_peers_init(struct peers *peers, size_t most)
{
    peers->epoll_fd = -1;
    peers->most = most;
    peers->all = calloc(most, sizeof *peers->all);
    for (size_t i = most; peers->all && i > 0; i--) {
        struct peer *peer = &peers->all[i - 1];
        *peer = (struct peer){.kind = READY_BYTES, .own.fd = -1, .after = peers->free};
        peers->free = peer;
    }
    return peers->all;
}

void wr_peers_fini(struct peers *peers)
{
    free(peers->all);
    wr_senders_fini(&peers->senders);
}

/* The id is another one in a forked child. */
void wr_peers_open(struct peers *peers, int epoll_fd)
{
    peers->epoll_fd = epoll_fd;
    peers->accepting.is_short = false;
    peers->intake = peers->host->service(peers->host, WEIR_SERVICE_INTAKE);
    peers->blocks = peers->host->service(peers->host, WEIR_SERVICE_BLOCKS);
    peers->upstream = peers->host->service(peers->host, WEIR_SERVICE_UPSTREAM);
    peers->relaying = peers->host->service(peers->host, WR_SERVICE_RELAYING);
    peers->showing = peers->host->service(peers->host, WEIR_SERVICE_SENDERS);
    wr_forward_id(peers->id);
}

static void close_peer(struct peers *peers, struct peer *peer)
{
    struct wr_own_fd own = peer->own;
    if (peer->sender)
        wr_senders_end(&peers->senders, peer->sender, peer->has_ended);
    if (peer->levels)
        peers->relaying->leave(peers->host, peer->levels);
    if (peer->sender && !peer->has_ended)
        peers->host->count(peers->host, "senders.vanished", 1);
    *(peer->before ? &peer->before->after : &peers->first) = peer->after;
    if (peer->after)
        peer->after->before = peer->before;
    peers->held_count -= peer->is_held;
    peers->pending_count -= peer->block_count;
    free(peer->in);
    free(peer->series);
    free(peer->path);
    free(peer->weights);
    free(peer->blocks);
    wr_buffer_fini(&peer->out);
    *peer = (struct peer){.kind = READY_BYTES, .own.fd = -1, .after = peers->free};
    peers->free = peer;
    peers->count--;
    wr_listener_close_connection(peers->epoll_fd, &own);
}

static void log_refusal(const struct peers *peers, struct refusal *one)
{
    if (one->unlogged)
        peers->host->log(peers->host, WEIR_LOG_WARNING, "%llu more connections were refused: %s",
                         (unsigned long long)one->unlogged, one->reason);
    one->unlogged = 0;
}

void wr_peers_close(struct peers *peers)
{
    while (peers->first)
        close_peer(peers, peers->first);
    for (size_t i = 0; i < PEERS_REFUSALS; i++)
        log_refusal(peers, &peers->refusals[i]);
    memset(peers->refusals, 0, sizeof peers->refusals);
    peers->is_asking = false;
}

void wr_peers_abandon(const struct peers *peers)
{
    for (size_t i = 0; i < peers->most; i++)
        wr_own_fd_abandon(&peers->all[i].own);
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* What a peer does not read is limited by what is read from it. Returns false if it is gone. */
static bool send_out(struct peer *peer)
{
    if (peer->out.length && !wr_own_fd_is_open(&peer->own))
        return false;
    while (peer->out_at < peer->out.length) {
        ssize_t count = send(peer->own.fd, peer->out.data + peer->out_at, peer->out.length - peer->out_at,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno == EAGAIN;
        peer->out_at += (size_t)count;
    }
    peer->out.length = peer->out_at = 0;
    return !peer->out.failed;
}

/* Whether something is read from it now. */
static bool is_reading(const struct peer *peer)
{
    return !peer->is_held && !peer->is_ending && peer->block_count < MOST_BLOCKS && !peer->out.length;
}

/* A peer that is refused is closed only when it has closed its end: closing a socket with bytes that were not
 * read makes the system forget those that were sent, the reason of the refusal. Returns false if it is to be
 * closed. */
static bool end(struct peer *peer)
{
    if (peer->has_ended)
        return false;
    if (!peer->is_deaf && shutdown(peer->own.fd, SHUT_WR) != 0)
        return false;
    peer->is_deaf = true;
    return true;
}

/* Sends, and sets what the epoll set reports. Closes a peer that is gone, or that has ended. */
static void go_on(struct peers *peers, struct peer *peer)
{
    if (!send_out(peer) || (peer->is_ending && !peer->out.length && !end(peer))) {
        close_peer(peers, peer);
        return;
    }
    uint32_t events = (is_reading(peer) || peer->is_deaf ? EPOLLIN : 0u) | (peer->out.length ? EPOLLOUT : 0u);
    struct epoll_event event = {.events = events, .data.ptr = peer};
    if (events != peer->events)
        epoll_ctl(peers->epoll_fd, EPOLL_CTL_MOD, peer->own.fd, &event);
    peer->events = events;
}

/* One that does not come again is forgotten, and logged at once when it comes later. */
void wr_peers_log_refusals(struct peers *peers, int64_t now_ms)
{
    for (size_t i = 0; i < PEERS_REFUSALS; i++) {
        struct refusal *one = &peers->refusals[i];
        if (!*one->reason || now_ms - one->logged_ms < LOG_AGAIN_MS)
            continue;
        if (!one->unlogged)
            one->reason[0] = '\0';
        log_refusal(peers, one);
        one->logged_ms = now_ms;
    }
}

/* Of a reason, or a free one for it. The last one is for all that find no other: reasons have numbers that the
 * peer chooses. */
static struct refusal *find_refusal(struct peers *peers, const char *reason)
{
    struct refusal *found = &peers->refusals[PEERS_REFUSALS - 1];
    for (struct refusal *one = found; one-- > peers->refusals;) {
        if (strncmp(one->reason, reason, sizeof one->reason - 1) == 0)
            return one;
        if (!*one->reason)
            found = one;
    }
    return found;
}

/* The first one of a reason is logged, and once a minute how many there were besides: anybody who can connect
 * can cause them. */
static void note_refusal(struct peers *peers, const struct peer *peer, const char *reason)
{
    struct refusal *one = find_refusal(peers, reason);
    if (*one->reason) {
        one->unlogged++;
        return;
    }
    peers->host->log(peers->host, WEIR_LOG_WARNING, "%s: refused: %s", peer->where, reason);
    snprintf(one->reason, sizeof one->reason, "%s",
             one == &peers->refusals[PEERS_REFUSALS - 1] ? "for other reasons" : reason);
    one->logged_ms = wr_output_now_ms();
}

/* It is told why, and closed. */
static bool refuse(struct peers *peers, struct peer *peer, const char *reason)
{
    peers->host->count(peers->host, "refused_connections", 1);
    note_refusal(peers, peer, reason);
    wr_wire_put_refuse(&peer->out, reason);
    peer->is_ending = true;
    return false;
}

/* ---- Accepting ------------------------------------------------------------------------------- */

static bool may_connect(const struct peers *peers, int fd, const struct ucred *user)
{
    for (size_t i = 0; i < peers->uid_count; i++)
        if (peers->uids[i] == user->uid)
            return true;
    return peers->group != SOCKET_GROUP_NONE && socket_group_has(fd, user->gid, peers->group);
}

/* Who is at the other end of a Unix socket. */
static void check_user(struct peers *peers, struct peer *peer)
{
    struct ucred user = {0};
    char reason[128];
    socklen_t length = sizeof user;
    if (getsockopt(peer->own.fd, SOL_SOCKET, SO_PEERCRED, &user, &length) != 0) {
        snprintf(peer->where, sizeof peer->where, "unknown user");
        refuse(peers, peer, "the user is not known");
        return;
    }
    snprintf(peer->where, sizeof peer->where, "process %ld", (long)user.pid);
    if (may_connect(peers, peer->own.fd, &user))
        return;
    snprintf(reason, sizeof reason, "the user %lu is not one of allow_uids%s", (unsigned long)user.uid,
             peers->group == SOCKET_GROUP_NONE ? "" : ", and not in allow_group");
    refuse(peers, peer, reason);
}

/* Adds the first free one, whose socket is set. Returns false if it cannot be served. */
static bool add_peer(struct peers *peers, const struct sockaddr_storage *address, bool is_tcp, int64_t now_ms)
{
    const int on = 1;
    struct peer *peer = peers->free;
    int fd = peer->own.fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    uint8_t *in = malloc(FIRST_ROOM);
    if (!in || epoll_ctl(peers->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(in);
        return false;
    }
    peers->free = peer->after;
    *peer = (struct peer){.kind = READY_BYTES,
                          .own = peer->own,
                          .events = EPOLLIN,
                          .is_tcp = is_tcp,
                          .in = in,
                          .in_room = FIRST_ROOM,
                          .active_ms = now_ms,
                          .after = peers->first};
    if (peers->first)
        peers->first->before = peer;
    peers->first = peer;
    peers->count++;
    peers->host->count(peers->host, "connections", 1);
    if (is_tcp) {
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        wr_listener_format(address, peer->where, sizeof peer->where);
        return true;
    }
    check_user(peers, peer);
    go_on(peers, peer);
    return true;
}

/* Returns whether to accept another one. */
static bool accept_one(struct peers *peers, const struct listener *from, int64_t now_ms)
{
    struct sockaddr_storage address;
    bool again;
    int fd = wr_listener_accept(from, peers->host, &peers->accepting, &address, &again);
    if (fd < 0)
        return again;
    struct wr_own_fd *own = &peers->free->own;
    if (!wr_own_fd_set(own, fd) || !add_peer(peers, &address, !from->at.path, now_ms)) {
        wr_listener_note_short(from, peers->host, &peers->accepting);
        wr_own_fd_close(own);
    }
    return !peers->accepting.is_short;
}

bool wr_peers_has_room(const struct peers *peers)
{
    return peers->free && !peers->accepting.is_short;
}

void wr_peers_accept(struct peers *peers, const struct listener *from, int64_t now_ms)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE && peers->free; i++)
        if (!accept_one(peers, from, now_ms))
            return;
    if (!peers->free)
        wr_listener_note_full(from, peers->host, &peers->accepting, peers->count);
}

/* ---- Greeting -------------------------------------------------------------------------------- */

static void check_tokens(struct peers *peers)
{
    char fault[512];
    bool is_read = tenants_read(peers->tenants, fault, sizeof fault);
    if (!is_read && !peers->logged_token)
        peers->host->log(peers->host, WEIR_LOG_ERROR, "%s", fault);
    peers->logged_token = !is_read;
}

/* Returns what is wrong with the path of a sender, or NULL. */
static const char *check_path(const struct peers *peers, const uint8_t *id, const struct wire_path *path)
{
    bool is_loop = memcmp(id, peers->id, WIRE_ID) == 0;
    for (size_t i = 0; i < path->count; i++)
        is_loop |= memcmp(path->ids[i], peers->id, WIRE_ID) == 0;
    if (is_loop)
        return "the values would come back to where they come from: a loop";
    return path->depth < WIRE_DEPTH
               ? NULL
               : "the values have come through 8 processes, which is the most that is allowed";
}

/* Returns false if out of memory. */
static bool set_path(struct peer *peer, const struct wire_path *path)
{
    free(peer->path);
    peer->path = NULL;
    if (!path->depth)
        return true;
    peer->path = malloc(sizeof *peer->path);
    if (peer->path)
        *peer->path = *path;
    return peer->path;
}

/* Through how many processes values may have come that are here. */
static unsigned find_depth(const struct peers *peers)
{
    unsigned depth = 0;
    for (const struct peer *peer = peers->first; peer; peer = peer->after)
        if (peer->path && peer->path->depth > depth)
            depth = peer->path->depth;
    return depth + 1;
}

void wr_peers_report_upstream(struct peers *peers)
{
    const weir_upstream *upstream = peers->upstream;
    unsigned depth = find_depth(peers);
    if (!upstream)
        return;
    upstream->add(peers->host, NULL, 0, depth);
    for (const struct peer *peer = peers->first; peer; peer = peer->after) {
        if (!peer->path)
            continue;
        upstream->add(peers->host, peer->id, 1, depth);
        upstream->add(peers->host, peer->path->ids[0], peer->path->count, depth);
    }
}

static bool take_path(struct peers *peers, struct peer *peer, const struct wire_frame *frame)
{
    struct wire_path path;
    const char *fault = wr_wire_get_path(frame, &path);
    if (!fault)
        fault = check_path(peers, peer->id, &path);
    if (!fault && !set_path(peer, &path))
        fault = "out of memory";
    if (fault)
        return refuse(peers, peer, fault);
    wr_peers_report_upstream(peers);
    return true;
}

/* Returns what is wrong with a sender, or NULL. */
static const char *check_hello(struct peers *peers, const struct peer *peer, const struct wire_hello *hello)
{
    const char *fault = check_path(peers, hello->id, &hello->path);
    if (fault)
        return fault;
    if (!peer->is_tcp || !peers->has_token)
        return NULL;
    check_tokens(peers);
    if (!*hello->token)
        return "there is no token; set token_file";
    return tenants_find(peers->tenants, hello->token) ? NULL : "the token is not known";
}

/* A handler has one connection. If it makes another one, it has lost the first, which the system does not
 * always report, and sends again what was not acknowledged there. */
static void close_lost(struct peers *peers, const struct wire_hello *hello)
{
    const struct sender *sender = wr_senders_find(&peers->senders, hello);
    struct peer *peer = sender ? peers->first : NULL;
    while (peer && peer->sender != sender)
        peer = peer->after;
    if (peer)
        close_peer(peers, peer);
}

/* What the sender shares in the levels of gauges. Returns false if out of memory. */
static bool enter(const struct peers *peers, struct peer *peer, const struct wire_hello *hello)
{
    char id[2 * WIRE_ID + 1 + WIRE_NAME + 1];
    if (!peers->relaying)
        return true;
    for (size_t i = 0; i < WIRE_ID; i++)
        snprintf(id + 2 * i, 3, "%02x", hello->id[i]);
    snprintf(id + 2 * WIRE_ID, sizeof id - 2 * WIRE_ID, "/%s", hello->handler);
    peer->levels = peers->relaying->enter(peers->host, id);
    return peer->levels;
}

static bool take_hello(struct peers *peers, struct peer *peer, const struct wire_frame *frame)
{
    struct wire_welcome welcome = {.major = WIRE_MAJOR, .minor = WIRE_MINOR};
    struct wire_hello hello;
    char text[128];
    const char *fault = wr_wire_get_hello(frame, &hello);
    if (!fault && hello.major != WIRE_MAJOR) {
        snprintf(text, sizeof text, "the sender has version %u.%u of the link, and this is version %d.%d",
                 hello.major, hello.minor, WIRE_MAJOR, WIRE_MINOR);
        fault = text;
    }
    if (!fault)
        fault = check_hello(peers, peer, &hello);
    if (fault)
        return refuse(peers, peer, fault);
    wr_utf8_show_part(text, 40, hello.process);
    snprintf(peer->where + strlen(peer->where), sizeof peer->where - strlen(peer->where), " (%s)", text);
    close_lost(peers, &hello);
    peer->sender = wr_senders_begin(&peers->senders, &hello);
    if (!peer->sender || !enter(peers, peer, &hello) || !set_path(peer, &hello.path))
        return refuse(peers, peer, "out of memory");
    memcpy(peer->id, hello.id, WIRE_ID);
    if (peer->path)
        wr_peers_report_upstream(peers);
    memcpy(welcome.id, peers->id, WIRE_ID);
    welcome.is_late = peers->relaying && peers->relaying->is_late(peers->host);
    wr_wire_put_welcome(&peer->out, &welcome);
    peer->ack = (enum wire_ack)hello.ack;
    peer->is_welcome = true;
    peers->host->count(peers->host, "senders", 1);
    return true;
}

/* ---- Series ---------------------------------------------------------------------------------- */

static bool take_series(struct peers *peers, struct peer *peer, const struct wire_frame *frame)
{
    struct wire_series *series = &peers->described;
    const char *fault = wr_wire_get_series(frame, series);
    if (fault)
        return refuse(peers, peer, fault);
    if (!WR_ARRAY_HAS_ROOM(&peer->series, &peer->series_room, series->id + 1))
        return refuse(peers, peer, "out of memory");
    const weir_typed_value value = {series->name, WEIR_DOUBLE(0)};
    const weir_record record = {
        .size = sizeof record,
        .group = series->group,
        .labels = series->labels,
        .label_count = series->label_count,
        .values = &value,
        .count = 1,
        .instrument = series->instrument,
        .flags = series->is_cumulative ? WEIR_RECORD_CUMULATIVE : 0,
        .unit = *series->unit ? series->unit : NULL,
        .help = *series->help ? series->help : NULL,
    };
    struct peer_series *place = &peer->series[series->id];
    bool is_known = place->series != NULL;
    bool has_room = is_known || !peers->most_series || peer->series_count < peers->most_series;
    const weir_source_series *found = has_room ? peers->blocks->resolve(peers->host, &record) : NULL;
    peer->series_count = peer->series_count - is_known + (found != NULL);
    peer->is_full |= !has_room;
    *place = (struct peer_series){found, true};
    return true;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Returns what is wrong with the block, or NULL. *is_allowed: all of its series are. */
static const char *check_block(const struct peer *peer, const struct wire_block *block, bool *is_allowed)
{
    size_t where;
    *is_allowed = true;
    for (uint32_t i = 0; i < block->count; i++) {
        const struct wire_sample *sample = &block->samples[i];
        if (sample->series >= peer->series_room || !peer->series[sample->series].is_known)
            return "BLOCK has a series that was not described";
        *is_allowed &= peer->series[sample->series].series != NULL;
        if (sample->text_length && !wr_utf8_is_valid(sample->text, sample->text_length, &where))
            return "BLOCK has metadata that is not valid UTF-8";
    }
    return NULL;
}

/* Finds the next events from *at on of which all series are allowed, or not. Returns whether they are. */
static bool find_run(const struct peer *peer, const struct wire_block *block, uint32_t end, uint32_t at,
                     uint32_t *run_end)
{
    bool is_allowed = true;
    *run_end = at;
    if (peer->all_allowed) {
        *run_end = end;
        return true;
    }
    while (at < end) {
        uint32_t next = at;
        bool is_whole = true;
        do
            is_whole = is_whole && peer->series[block->samples[next].series].series;
        while (block->samples[next++].more && next < end);
        if (*run_end == at)
            is_allowed = is_whole;
        else if (is_whole != is_allowed)
            break;
        at = *run_end = next;
    }
    return is_allowed;
}

static int add_run(struct peers *peers, struct peer *peer, const struct wire_block *block, uint32_t first,
                   uint32_t end)
{
    uint64_t refused = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct wire_sample *from = &block->samples[i];
        weir_block_sample *to = &peers->samples[i - first];
        *to = (weir_block_sample){
            .series = peer->series[from->series].series,
            .time_ns = from->time_ns,
            .kind = from->kind,
            .flags = from->more && i + 1 < end ? WEIR_SAMPLE_MORE : 0,
            .text_length = from->text_length,
            .text = from->text,
        };
        memcpy(&to->value, &from->bits, sizeof to->value);
    }
    const weir_block run = {
        .size = sizeof run,
        .origin = block->origin,
        .sequence = block->sequence + first,
        .samples = peers->samples,
        .count = end - first,
    };
    int result = peer->levels ? peers->relaying->add(peers->host, peer->levels, peers->samples, &run, &refused)
                              : peers->blocks->add(peers->host, &run, &refused);
    peer->refused += (uint32_t)refused;
    return result;
}

/* How many values samples of the present block are. */
static uint64_t count_values(const struct peer *peer, uint32_t first, uint32_t end)
{
    uint64_t values = peer->has_weights || end < first ? 0 : end - first;
    for (uint32_t i = first; peer->has_weights && i < end; i++)
        values += peer->weights->values[i];
    return values;
}

/* From where on the samples of a block are behind all that has come of their origin. */
static uint32_t index_of_known(const struct peer *peer, const struct wire_block *block)
{
    uint64_t known = wr_sender_front(peer->sender, block->origin, 0);
    uint64_t count = known > block->sequence ? known - block->sequence : 0;
    return count < block->count ? (uint32_t)count : block->count;
}

/* Notes that the samples up to there are looked at. Returns how many of them were not before: a block that
 * finds no room comes here again. Numbers that come out of order are noted for count_received. */
static uint32_t see(struct peer *peer, const struct wire_block *block, uint32_t first, uint32_t end)
{
    const uint32_t known = index_of_known(peer, block);
    uint32_t from = first > peer->seen ? first : peer->seen;
    uint32_t count = end > from ? end - from : 0;
    peer->late += count_values(peer, from, from + count < known ? from + count : known);
    peer->seen = from + count;
    peer->fresh += count;
    return count;
}

/* Adds what of the block was not taken yet. Returns false if there is no room. */
static bool add_block(struct peers *peers, struct peer *peer, const struct wire_block *block)
{
    const uint32_t known = index_of_known(peer, block);
    uint64_t from, to;
    uint32_t at = 0, end, run_end;
    while (at < block->count && peers->blocks->missing(peers->host, block->origin, block->sequence + at,
                                                       block->sequence + block->count, &from, &to)) {
        at = (uint32_t)(from - block->sequence);
        end = (uint32_t)(to - block->sequence);
        for (; at < end; at = run_end) {
            bool is_allowed = find_run(peer, block, end, at, &run_end);
            int result = is_allowed ? add_run(peers, peer, block, at, run_end) : WEIR_ADD_REFUSED;
            if (result == WEIR_ADD_FULL)
                return false;
            uint32_t count = see(peer, block, at, run_end);
            /* what came on an earlier connection was refused there */
            uint32_t unknown = run_end > known ? run_end - known : 0;
            if (!is_allowed && count && unknown)
                peers->intake->refuse(peers->host, count < unknown ? count : unknown, peer->where,
                                      peer->is_full ? "values of more series than sender_series allows a sender"
                                                    : "values of names that are not allowed or exceed a limit");
            peer->refused += result == WEIR_ADD_REFUSED ? count : 0;
        }
    }
    return true;
}

/* There is room: no frame is looked at otherwise. */
static bool push_block(struct peers *peers, struct peer *peer, const struct peer_block *block)
{
    if (!peer->blocks)
        peer->blocks = malloc(MOST_BLOCKS * sizeof *peer->blocks);
    if (!peer->blocks)
        return false;
    peer->blocks[(peer->block_first + peer->block_count++) % MOST_BLOCKS] = *block;
    peers->pending_count++;
    return true;
}

static void set_held(struct peers *peers, struct peer *peer, bool is_held)
{
    peers->held_count += (size_t)is_held - (size_t)peer->is_held;
    if (peer->is_held)
        peer->active_ms = wr_output_now_ms(); /* the time in which nothing was read from it does not count */
    peer->is_held = is_held;
}

static void note_origin(struct peer *peer, const char *origin)
{
    peer->has_more_origins |= *peer->origin && strcmp(peer->origin, origin) != 0;
    memcpy(peer->origin, origin, sizeof peer->origin);
}

/* Returns false if the peer is refused. */
static bool take_weights(struct peers *peers, struct peer *peer, const struct wire_frame *frame)
{
    if (!peer->weights)
        peer->weights = malloc(sizeof *peer->weights);
    const char *fault = peer->weights ? wr_wire_get_weights(frame, peer->weights) : "out of memory";
    peer->has_weights = true;
    return fault ? refuse(peers, peer, fault) : true;
}

/* What its sender has not sent to this process before was received by it, or by the process before it. */
static void count_received(struct peer *peer, const struct wire_block *block)
{
    const uint32_t known = index_of_known(peer, block);
    const uint64_t received = peer->late + count_values(peer, known, block->count);
    wr_sender_front(peer->sender, block->origin, block->sequence + block->count);
    peer->sender->received += received;
    peer->sender->repeats += count_values(peer, 0, block->count) - received;
    peer->late = 0;
    peer->has_weights = false;
}

/* Returns false if the frame is to be looked at again, or the peer is refused. */
static bool take_block(struct peers *peers, struct peer *peer, const struct wire_frame *frame)
{
    struct wire_block *block = &peers->decoded;
    const char *fault = wr_wire_get_block(frame, block);
    if (!fault)
        fault = check_block(peer, block, &peer->all_allowed);
    if (!fault && peer->has_weights && peer->weights->count != block->count)
        fault = "WEIGHTS are of another number of samples than BLOCK has";
    if (fault)
        return refuse(peers, peer, fault);
    peer->sender->totals = block->totals;
    peers->senders.has_changed = true;
    note_origin(peer, block->origin);
    bool is_added = add_block(peers, peer, block);
    set_held(peers, peer, !is_added);
    if (!is_added)
        return false;
    const bool is_repeat = peer->fresh < block->count;
    if (is_repeat)
        peers->host->count(peers->host, "repeats", block->count - peer->fresh);
    peers->host->count(peers->host, "blocks", 1);
    count_received(peer, block);
    peer->received += block->count;
    struct peer_block done = {
        .ack = {.sequence = block->sequence,
                .end = block->sequence + block->count,
                .refused = peer->refused,
                .state = WIRE_IS_TAKEN},
        .mark = is_repeat ? peers->blocks->mark_repeat(peers->host) : peers->intake->mark(peers->host),
    };
    memcpy(done.ack.origin, block->origin, sizeof done.ack.origin);
    peer->seen = peer->fresh = peer->refused = 0;
    if (peer->ack == WIRE_ACK_TAKEN)
        wr_wire_put_ack(&peer->out, &done.ack);
    else if (!push_block(peers, peer, &done))
        return refuse(peers, peer, "out of memory");
    return true;
}

/* The sender ends: what it says that it has sent, and what has come. */
static bool take_bye(struct peers *peers, struct peer *peer, const struct wire_frame *frame)
{
    struct wire_totals totals;
    const char *fault = wr_wire_get_bye(frame, &totals);
    if (fault)
        return refuse(peers, peer, fault);
    bool agrees = totals.sent == peer->received;
    peer->sender->totals = totals;
    peer->sender->missing += totals.sent > peer->received ? totals.sent - peer->received : 0;
    peers->host->count(peers->host, agrees ? "senders.agree" : "senders.differ", 1);
    if (!agrees)
        peers->host->log(peers->host, WEIR_LOG_WARNING, "%s: has sent %llu values, and %llu have come",
                         peer->where, (unsigned long long)totals.sent, (unsigned long long)peer->received);
    /* all was acknowledged, and nothing is left that could be sent again */
    if (*peer->origin && !peer->has_more_origins && !peer->block_count &&
        totals.added + totals.recovered == totals.delivered + totals.lost)
        peers->blocks->forget(peers->host, peer->origin);
    peer->has_ended = true;
    peer->is_ending = true;
    return false;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Returns whether the next frame is looked at. */
static bool take_frame(struct peers *peers, struct peer *peer, const struct wire_frame *frame)
{
    if (!peer->is_welcome)
        return take_hello(peers, peer, frame);
    switch (frame->type) {
    case WIRE_SERIES_IS: return take_series(peers, peer, frame);
    case WIRE_BLOCK: return take_block(peers, peer, frame);
    case WIRE_WEIGHTS: return take_weights(peers, peer, frame);
    case WIRE_PATH_IS: return take_path(peers, peer, frame);
    case WIRE_BYE: return take_bye(peers, peer, frame);
    default: return refuse(peers, peer, "a frame has a type that this version does not know");
    }
}

static bool grow_in(struct peer *peer, size_t room)
{
    if (room <= peer->in_room)
        return true;
    uint8_t *grown = realloc(peer->in, room);
    if (!grown)
        return false;
    peer->in = grown;
    peer->in_room = room;
    return true;
}

/* Returns whether there was a whole one. */
static bool take_frames(struct peers *peers, struct peer *peer)
{
    size_t at = 0;
    bool goes_on = true;
    while (goes_on && !peer->is_ending && peer->block_count < MOST_BLOCKS) {
        struct wire_frame frame;
        const char *fault;
        size_t length = wr_wire_find(peer->in + at, peer->in_length - at,
                                     peer->is_welcome ? WIRE_PAYLOAD : WIRE_HELLO_MOST, &frame, &fault);
        if (fault)
            refuse(peers, peer, fault);
        if (!length)
            break;
        goes_on = take_frame(peers, peer, &frame);
        if (!peer->is_held)
            at += length;
    }
    peer->in_length -= at;
    memmove(peer->in, peer->in + at, peer->in_length);
    return at > 0;
}

/* What was read before the end is complete: a sender that is gone gets no reply, but what it has sent is
 * taken. Returns false if it is gone. */
static bool receive(struct peers *peers, struct peer *peer, int64_t now_ms)
{
    bool is_full = peer->in_length == peer->in_room;
    size_t room = peer->is_welcome ? (is_full ? (size_t)LARGEST_ROOM : (size_t)READ_ROOM) : (size_t)FIRST_ROOM;
    if (!grow_in(peer, room)) {
        refuse(peers, peer, "out of memory");
        return true;
    }
    ssize_t count =
        recv(peer->own.fd, peer->in + peer->in_length, peer->in_room - peer->in_length, MSG_DONTWAIT);
    if (count <= 0)
        return count < 0 && (errno == EAGAIN || errno == EINTR);
    if (!peer->in_length)
        peer->active_ms = now_ms; /* a frame begins; more bytes of it do not count */
    peer->in_length += (size_t)count;
    peers->host->count(peers->host, "bytes", (uint64_t)count);
    if (take_frames(peers, peer))
        peer->active_ms = now_ms;
    return true;
}

/* Returns false if the peer has closed its end. */
static bool skip(const struct peer *peer)
{
    ssize_t count = recv(peer->own.fd, peer->in, peer->in_room, MSG_DONTWAIT);
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void wr_peers_serve(struct peers *peers, struct peer *peer, uint32_t events, int64_t now_ms)
{
    if (peer->own.fd < 0)
        return; /* closed since it was reported */
    bool is_there = wr_own_fd_is_open(&peer->own);
    if (is_there && peer->is_deaf)
        is_there = skip(peer);
    else if (is_there && is_reading(peer))
        is_there = receive(peers, peer, now_ms);
    else if (events & (EPOLLERR | EPOLLHUP))
        is_there = false;
    if (is_there)
        go_on(peers, peer);
    else
        close_peer(peers, peer);
}

void wr_peers_resume(struct peers *peers)
{
    struct peer *next;
    for (struct peer *peer = peers->first; peer && peers->held_count; peer = next) {
        next = peer->after;
        if (!peer->is_held)
            continue;
        take_frames(peers, peer);
        go_on(peers, peer);
    }
}

void wr_peers_publish(struct peers *peers)
{
    if (peers->relaying)
        peers->relaying->publish(peers->host);
}

/* ---- Acknowledging --------------------------------------------------------------------------- */

static void acknowledge(struct peers *peers, struct peer *peer, enum wire_state state)
{
    bool was_full = peer->block_count == MOST_BLOCKS;
    while (peer->block_count && peer->blocks[peer->block_first].mark <= peers->asked) {
        struct wire_acknowledgement *ack = &peer->blocks[peer->block_first].ack;
        ack->state = (uint8_t)state;
        wr_wire_put_ack(&peer->out, ack);
        peer->block_first = (peer->block_first + 1) % MOST_BLOCKS;
        peer->block_count--;
        peers->pending_count--;
    }
    if (was_full && !peer->is_held) {
        peer->active_ms = wr_output_now_ms();
        take_frames(peers, peer);
    }
    go_on(peers, peer);
}

bool wr_peers_acknowledge(struct peers *peers)
{
    static const enum wire_state states[] = {WIRE_IS_TAKEN, WIRE_IS_STORED, WIRE_IS_DELIVERED, WIRE_IS_DROPPED};
    struct peer *next;
    if (!peers->pending_count) {
        peers->is_asking = false;
        return false;
    }
    if (!peers->is_asking)
        peers->asked = peers->intake->mark(peers->host);
    int state = peers->intake->settled(peers->host, peers->asked);
    peers->is_asking = state == WEIR_MARK_PENDING;
    if (peers->is_asking)
        return false;
    for (struct peer *peer = peers->first; peer; peer = next) {
        next = peer->after;
        if (peer->block_count)
            acknowledge(peers, peer, states[state]);
    }
    return true;
}

void wr_peers_show(struct peers *peers)
{
    wr_senders_show(&peers->senders, peers->host, peers->showing);
}

void wr_peers_close_idle(struct peers *peers, int64_t now_ms)
{
    struct peer *next;
    for (struct peer *peer = peers->first; peer; peer = next) {
        next = peer->after;
        bool is_due = !peer->is_welcome || peer->is_ending || (peer->in_length && is_reading(peer));
        if (!is_due || now_ms - peer->active_ms < peers->idle_ms)
            continue;
        peers->host->count(peers->host, "idle_connections", 1);
        close_peer(peers, peer);
    }
}
