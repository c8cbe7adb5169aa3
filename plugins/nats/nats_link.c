#include "nats_link.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "../system.h"

enum { WRITE_AT = 64 * 1024 }; /* bytes that wait to be sent */

bool wr_nats_link_init(struct nats_link *link, const weir_host *host, const struct nats_options *options)
{
    *link = (struct nats_link){.host = host, .options = options, .own.fd = -1};
    link->waiting = host->service(host, WEIR_SERVICE_WAITING);
    if (!link->waiting)
        host->refuse(host, "", "it needs a newer version of weir: the service " WEIR_SERVICE_WAITING);
    return link->waiting;
}

/* ---- The event loop that libnats sees -------------------------------------------------------- */

static natsStatus attach(void **data, void *loop, natsConnection *connection, natsSock socket)
{
    struct nats_link *link = loop;
    (void)connection;
    *data = link;
    return fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 && wr_own_fd_set(&link->own, socket) ? NATS_OK
                                                                                        : NATS_SYS_ERROR;
}

/* The worker always reads, and looks for itself whether there is something to write. */
static natsStatus ignore_change(void *data, bool add)
{
    (void)data, (void)add;
    return NATS_OK;
}

/* The socket is closed. */
static natsStatus detach(void *data)
{
    struct nats_link *link = data;
    link->own.fd = -1;
    return NATS_OK;
}

/* libnats' own prints to standard error. */
static void ignore_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                         void *closure)
{
    (void)connection, (void)subscription, (void)status, (void)closure;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static natsStatus set_login(natsOptions *target, const struct nats_options *options)
{
    if (options->user)
        return natsOptions_SetUserInfo(target, options->user, options->password ? options->password : "");
    if (options->token)
        return natsOptions_SetToken(target, options->token);
    if (options->credentials_file)
        return natsOptions_SetUserCredentialsFromFiles(target, options->credentials_file, NULL);
    return NATS_OK;
}

static natsStatus set_tls(natsOptions *target, const struct nats_options *options)
{
    if (!wr_nats_settings_is_tls(options))
        return NATS_OK;
    natsStatus status = natsOptions_SetSecure(target, true);
    if (status == NATS_OK && options->ca_file)
        status = natsOptions_LoadCATrustedCertificates(target, options->ca_file);
    if (status == NATS_OK && options->cert_file)
        status = natsOptions_LoadCertificatesChain(target, options->cert_file, options->key_file);
    if (status == NATS_OK && !options->verify)
        status = natsOptions_SkipServerVerification(target, true);
    return status;
}

/* libnats must not reconnect by itself: the core does, and must see the failure. Without PINGs of its own, and
 * with what is to be sent flushed at once, to the event loop, no thread of libnats has anything to do for it.
 */
static natsStatus set_options(natsOptions *target, struct nats_link *link, int64_t timeout_ms)
{
    weir_list servers = wr_nats_settings_servers(link->options);
    natsStatus status =
        natsOptions_SetServers(target, (const char **)(uintptr_t)servers.items, (int)servers.count);
    if (status == NATS_OK)
        status = natsOptions_SetAllowReconnect(target, false);
    if (status == NATS_OK)
        status = natsOptions_SetTimeout(target, timeout_ms > 0 ? timeout_ms : 1);
    if (status == NATS_OK)
        status = natsOptions_SetPingInterval(target, 0);
    if (status == NATS_OK)
        status = natsOptions_SetSendAsap(target, true);
    if (status == NATS_OK)
        status = natsOptions_SetName(target, "weir");
    if (status == NATS_OK)
        status = natsOptions_SetErrorHandler(target, ignore_error, NULL);
    if (status == NATS_OK)
        status = natsOptions_SetEventLoop(target, link, attach, ignore_change, ignore_change, detach);
    if (status == NATS_OK)
        status = set_login(target, link->options);
    return status == NATS_OK ? set_tls(target, link->options) : status;
}

static natsStatus subscribe(struct nats_link *link)
{
    char subject[NATS_LINK_INBOX + 2];
    natsInbox *inbox = NULL;
    natsStatus status = natsInbox_Create(&inbox);
    if (status != NATS_OK)
        return status;
    snprintf(link->inbox, sizeof link->inbox, "%s%s.", link->options->inbox_prefix, strchr(inbox, '.'));
    natsInbox_Destroy(inbox);
    snprintf(subject, sizeof subject, "%s>", link->inbox);
    status = natsConnection_SubscribeSync(&link->replies, link->connection, subject);
    return status == NATS_OK ? natsSubscription_SetPendingLimits(link->replies, -1, -1) : status;
}

/* libnats sets the action of SIGPIPE when it is used for the first time, which is the program's. */
static natsStatus start_library(void)
{
    struct sigaction action;
    sigaction(SIGPIPE, NULL, &action);
    natsStatus status = nats_Open(-1);
    sigaction(SIGPIPE, &action, NULL);
    return status;
}

static natsStatus connect_to_one(struct nats_link *link, int64_t timeout_ms)
{
    natsOptions *options = NULL;
    natsStatus status = start_library();
    if (status == NATS_OK)
        status = natsOptions_Create(&options);
    if (status == NATS_OK)
        status = set_options(options, link, timeout_ms);
    if (status == NATS_OK)
        status = natsConnection_Connect(&link->connection, options);
    natsOptions_Destroy(options);
    if (status == NATS_OK)
        status = subscribe(link);
    return status;
}

/* The detail of libnats has no secrets: it quotes the server, and names of files. */
static void fail(const struct nats_link *link, natsStatus status, weir_outcome *outcome)
{
    const char *server = wr_nats_settings_servers(link->options).items[0];
    size_t others = wr_nats_settings_servers(link->options).count - 1;
    const char *detail = nats_GetLastError(NULL);
    const char *text = natsStatus_GetText(status);
    char more[32] = "";
    if (others)
        snprintf(more, sizeof more, " and %zu more", others);
    bool adds = detail && *detail && strcmp(detail, text) != 0;
    wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "connect %.100s%s: %s%s%.80s%s", server, more, text,
                   adds ? " (" : "", adds ? detail : "", adds ? ")" : "");
}

bool wr_nats_link_open(struct nats_link *link, int64_t timeout_ms, weir_outcome *outcome)
{
    natsStatus status = connect_to_one(link, timeout_ms);
    if (status != NATS_OK) {
        fail(link, status, outcome);
        wr_nats_link_close(link);
        return false;
    }
    link->has_no_responder = false;
    link->max_payload = natsConnection_GetMaxPayload(link->connection);
    return true;
}

/* If the program has closed the socket, closing the connection would close another file: then its memory is
 * given up. */
void wr_nats_link_close(struct nats_link *link)
{
    bool is_foreign = link->own.fd >= 0 && link->connection && !natsConnection_IsClosed(link->connection) &&
                      !wr_own_fd_is_open(&link->own);
    if (!is_foreign) {
        natsSubscription_Destroy(link->replies);
        natsConnection_Destroy(link->connection);
    }
    link->replies = NULL;
    link->connection = NULL;
    link->own.fd = -1;
    nats_ReleaseThreadMemory();
}

bool wr_nats_link_is_open(const struct nats_link *link)
{
    return !natsConnection_IsClosed(link->connection) && wr_own_fd_is_open(&link->own);
}

/* ---- Sending and receiving ------------------------------------------------------------------- */

bool wr_nats_link_is_full(const struct nats_link *link)
{
    return natsConnection_Buffered(link->connection) >= WRITE_AT;
}

static enum nats_link_state find_state(const struct nats_link *link)
{
    return natsConnection_IsClosed(link->connection) ? NATS_LINK_LOST : NATS_LINK_READY;
}

static unsigned wait_for_socket(const struct nats_link *link, struct pollfd *entry, int64_t timeout_ms)
{
    if (timeout_ms < 0)
        timeout_ms = 0;
    if (!link->is_probing)
        return link->waiting->wait(link->host, entry, 1, timeout_ms);
    return poll(entry, 1, timeout_ms < INT32_MAX ? (int)timeout_ms : INT32_MAX) > 0 ? WEIR_WAIT_READY : 0u;
}

enum nats_link_state wr_nats_link_wait(struct nats_link *link, int64_t timeout_ms)
{
    struct pollfd entry = {.fd = link->own.fd, .events = POLLIN};
    if (natsConnection_IsClosed(link->connection))
        return NATS_LINK_LOST;
    if (natsConnection_Buffered(link->connection) > 0)
        entry.events |= POLLOUT;
    unsigned woke = wait_for_socket(link, &entry, timeout_ms);
    if (woke & WEIR_WAIT_READY && !wr_own_fd_is_open(&link->own))
        return NATS_LINK_LOST;
    if (woke & WEIR_WAIT_READY && entry.revents & POLLOUT)
        natsConnection_ProcessWriteEvent(link->connection);
    if (woke & WEIR_WAIT_READY && entry.revents & ~POLLOUT)
        natsConnection_ProcessReadEvent(link->connection);
    if (woke & WEIR_WAIT_READY)
        return find_state(link);
    return woke & WEIR_WAIT_STOP ? NATS_LINK_STOPPED : NATS_LINK_BUSY;
}

natsMsg *wr_nats_link_take(struct nats_link *link)
{
    natsMsg *message = NULL;
    natsStatus status;
    while ((status = natsSubscription_NextMsg(&message, link->replies, 0)) == NATS_NO_RESPONDERS)
        link->has_no_responder = true;
    return status == NATS_OK ? message : NULL;
}

/* ---- Requests -------------------------------------------------------------------------------- */

natsMsg *wr_nats_link_request(struct nats_link *link, const char *subject, const char *text, int64_t timeout_ms,
                              weir_outcome *outcome)
{
    char inbox[NATS_LINK_INBOX + 8];
    int64_t until_ms = link->waiting->now_ms(link->host) + timeout_ms;
    enum nats_link_state state = NATS_LINK_READY;
    natsMsg *reply = NULL;
    snprintf(inbox, sizeof inbox, "%sr", link->inbox);
    if (natsConnection_PublishRequestString(link->connection, subject, inbox, text) != NATS_OK)
        state = NATS_LINK_LOST;
    while (state == NATS_LINK_READY && !link->has_no_responder) {
        state = wr_nats_link_wait(link, until_ms - link->waiting->now_ms(link->host));
        if ((reply = wr_nats_link_take(link)))
            return reply;
    }
    if (link->has_no_responder)
        wr_system_fail(outcome, WEIR_OUTCOME_RETRY,
                       "the server has no JetStream: start it with -js, or set \"jetstream\": false");
    else
        wr_nats_link_fail(link, subject, state == NATS_LINK_STOPPED ? "stopped while waiting" : "no reply",
                          WEIR_OUTCOME_RETRY, outcome);
    return NULL;
}

/* ---- Descriptions ---------------------------------------------------------------------------- */

void wr_nats_link_fail(const struct nats_link *link, const char *operation, const char *fallback, int code,
                       weir_outcome *outcome)
{
    const char *text = NULL;
    if (link->connection)
        natsConnection_GetLastError(link->connection, &text);
    wr_system_fail(outcome, code, "%.80s: %.150s", operation, text && *text ? text : fallback);
}

bool wr_nats_link_is_forbidden(const struct nats_link *link, char *reason, size_t room)
{
    const char *text = NULL;
    if (natsConnection_GetLastError(link->connection, &text) != NATS_NOT_PERMITTED)
        return false;
    snprintf(reason, room, "%.200s", text ? text : "the user is not permitted to publish");
    return true;
}
