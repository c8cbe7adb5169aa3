/* A handler and a source that connect by the service connecting/1, in the whole core: to a peer, to none, with
 * a stop, and with a fork while the connection is half open. */

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/source.h>
#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"
#include "plugins/scripted_source.h"

enum { PATIENCE_MS = 60000, LONG_MS = 3600 * 1000, SHORT_MS = 100, VALUES = 100 };

static struct source_script *script;
static char to[128];     /* what both connect to */
static char reason[256]; /* why they did not; complete when is_refused is set */
static _Atomic bool is_refused, is_connecting;
static char path[] = "/tmp/weir-connecting-XXXXXX";

/* ---- Connecting ------------------------------------------------------------------------------ */

static int connect_from(const weir_host *host, char *text, size_t room)
{
    const weir_connecting *connecting = host->service(host, WEIR_SERVICE_CONNECTING);
    const weir_connect what = {.size = sizeof what, .to = to, .timeout_ms = LONG_MS};
    atomic_store(&is_connecting, true);
    int fd = connecting->connect(host, &what, text, room);
    if (fd < 0 && !atomic_load(&is_refused)) {
        snprintf(reason, sizeof reason, "%s", text);
        atomic_store(&is_refused, true);
    }
    return fd;
}

/* ---- The handler type: sends a byte for each value ------------------------------------------- */

struct joiner {
    const weir_host *host;
    int fd;
};

static void *create(const weir_host *host, const void *options)
{
    static struct joiner joiner = {.fd = -1};
    const weir_connecting *connecting = host->service(host, WEIR_SERVICE_CONNECTING);
    (void)options;
    joiner.host = host;
    return connecting->check(host, "", to, 0) ? &joiner : NULL;
}

static void open_joiner(void *self, weir_outcome *outcome)
{
    struct joiner *joiner = self;
    joiner->fd = connect_from(joiner->host, outcome->reason, sizeof outcome->reason);
    if (joiner->fd < 0)
        outcome->code = WEIR_OUTCOME_RETRY;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    const struct joiner *joiner = self;
    for (outcome->done = 0; outcome->done < batch->count; outcome->done++)
        if (send(joiner->fd, "x", 1, MSG_NOSIGNAL) != 1) {
            outcome->code = WEIR_OUTCOME_REOPEN;
            return;
        }
}

static void close_joiner(void *self)
{
    struct joiner *joiner = self;
    close(joiner->fd);
    joiner->fd = -1;
}

static void destroy(void *self)
{
    (void)self;
}

static void abandon(void *self)
{
    const struct joiner *joiner = self;
    if (joiner->fd >= 0)
        close(joiner->fd);
}

static const weir_handler_type joining = {
    .size = sizeof joining,
    .abi = WEIR_ABI,
    .name = "joining",
    .summary = "connects, for tests",
    .create = create,
    .open = open_joiner,
    .emit = emit,
    .close = close_joiner,
    .destroy = destroy,
    .abandon = abandon,
};

/* ---- The source: adds a value for each byte -------------------------------------------------- */

static int source_fd = -1;

static void open_source(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag;
    source_fd = connect_from(host, outcome->reason, sizeof outcome->reason);
    if (source_fd < 0)
        outcome->code = WEIR_OUTCOME_RETRY;
}

static int add_one(const weir_host *host)
{
    const weir_intake *intake = host->service(host, WEIR_SERVICE_INTAKE);
    const weir_typed_value value = {"read", WEIR_DOUBLE(1)};
    const weir_record record = {.size = sizeof record, .group = "g", .values = &value, .count = 1};
    return intake->add(host, &record);
}

static void read_bytes(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    const weir_intake *intake = host->service(host, WEIR_SERVICE_INTAKE);
    struct pollfd entry = {.fd = source_fd, .events = POLLIN};
    char byte;
    (void)tag, (void)outcome;
    while (!(intake->wait(host, &entry, 1, -1) & WEIR_WAIT_STOP)) {
        ssize_t count = recv(source_fd, &byte, 1, 0);
        if (count == 0)
            return;
        if (count == 1)
            cr_assert_eq(add_one(host), WEIR_ADD_TAKEN);
    }
}

/* ---- Peers ----------------------------------------------------------------------------------- */

static int bind_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(to, sizeof to, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

static int bind_path(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    cr_assert(mkdtemp(path));
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", path);
    snprintf(to, sizeof to, "unix:%s", address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int listen_at(int fd)
{
    cr_assert_eq(listen(fd, 16), 0);
    return fd;
}

/* Of a listening TCP socket these two are the connections that wait to be accepted, and how many may. */
static bool has_full_queue(int listener)
{
    struct tcp_info info;
    socklen_t length = sizeof info;
    cr_assert_eq(getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    return info.tcpi_unacked > info.tcpi_sacked;
}

/* Listens, and fills the queue: every further connection stays half open, or waits for its turn. */
static int fill(int listener)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    struct pollfd entry = {.events = POLLOUT};
    cr_assert_eq(listen(listener, 0), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    do {
        entry.fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(entry.fd, (struct sockaddr *)&address, length);
        while (address.ss_family != AF_UNIX && !has_full_queue(listener))
            usleep(1000);
    } while (address.ss_family == AF_UNIX && poll(&entry, 1, 0) > 0 && entry.revents == POLLOUT);
    if (address.ss_family == AF_UNIX)
        close(entry.fd);
    return listener;
}

static void remove_path(void)
{
    char text[sizeof path + 8];
    snprintf(text, sizeof text, "%s/socket", path);
    unlink(text);
    rmdir(path);
}

static void set_up(void)
{
    char plugin[4096];
    script = load_source_script(plugin, sizeof plugin);
    cr_assert(script, "%s", dlerror());
    script->open = open_source;
    script->run = read_bytes;
    capture_register();
    cr_assert_eq(weir_register_handler_type(&joining, NULL), 0);
}

TestSuite(connecting, .init = set_up, .fini = remove_path, .timeout = 300);

static void configure(const char *text)
{
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
}

static void start_handler(void)
{
    configure("{\"settings\":{\"shutdown_timeout\":\"100ms\"},\"handlers\":{\"out\":{\"type\":\"joining\","
              "\"retry_min\":\"1h\",\"retry_max\":\"1h\"}},\"groups\":{\"*\":\"out\"}}");
    for (int i = 0; i < VALUES; i++)
        weir_add_value(weir_get_stream("g"), "m", i);
}

static void start_source(void)
{
    char text[8192];
    snprintf(text, sizeof text,
             "{\"handlers\":{\"*\":{\"queue\":\"64KiB\",\"block_timeout\":\"1h\"}},\"sources\":{\"in\":{"
             "\"type\":\"scripted\","
             "\"plugin\":\"%s/tests/support/plugins/.libs/scripted.source.so\",\"retry_min\":\"1h\","
             "\"retry_max\":\"1h\"}},\"groups\":{\"*\":\"capture\"}}",
             getenv("WEIR_TEST_BUILD"));
    configure(text);
    cr_assert_eq(weir_start_sources(), 0, "%s", weir_last_error());
}

static void wait_until(bool (*is_true)(void))
{
    for (int i = 0; i < PATIENCE_MS && !is_true(); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    cr_assert(is_true());
}

static bool has_called(void)
{
    return atomic_load(&is_connecting);
}

static bool has_reason(void)
{
    return atomic_load(&is_refused);
}

/* ---- To a peer ------------------------------------------------------------------------------- */

static void read_all(int listener)
{
    char bytes[VALUES];
    start_handler();
    int peer = accept(listener, NULL, NULL);
    cr_assert_eq(recv(peer, bytes, sizeof bytes, MSG_WAITALL), VALUES);
    cr_assert_eq(weir_flush(PATIENCE_MS), 0, "%s", weir_last_error());
    weir_handler_stats stats;
    cr_assert_eq(weir_get_handler_stats("out", &stats, sizeof stats), 0);
    cr_assert_eq(stats.delivered, VALUES);
    assert_ledger("out");
}

Test(connecting, a_handler_delivers_over_tcp)
{
    read_all(listen_at(bind_port()));
}

Test(connecting, a_handler_delivers_over_a_unix_socket)
{
    read_all(listen_at(bind_path()));
}

static void send_all(int listener)
{
    char bytes[VALUES] = "";
    start_source();
    int peer = accept(listener, NULL, NULL);
    cr_assert_eq(send(peer, bytes, sizeof bytes, 0), VALUES);
    close(peer);
    cr_assert_eq(weir_wait_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(weir_flush(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(capture_count(), VALUES);
    assert_ledger("capture");
}

Test(connecting, a_source_reads_over_tcp)
{
    send_all(listen_at(bind_port()));
}

Test(connecting, a_source_reads_over_a_unix_socket)
{
    send_all(listen_at(bind_path()));
}

/* ---- To none --------------------------------------------------------------------------------- */

static void assert_reason(void (*start)(void), const char *expected)
{
    start();
    wait_until(has_reason);
    cr_assert_str_eq(reason, expected);
}

Test(connecting, a_handler_has_the_reason_of_a_refusal)
{
    char expected[256];
    close(bind_port());
    snprintf(expected, sizeof expected, "connect %s: Connection refused", to + 6);
    assert_reason(start_handler, expected);
    assert_ledger("out");
}

Test(connecting, a_source_has_the_reason_of_a_refusal)
{
    char expected[256];
    close(bind_port());
    snprintf(expected, sizeof expected, "connect %s: Connection refused", to + 6);
    assert_reason(start_source, expected);
}

Test(connecting, a_handler_has_the_reason_of_a_host_that_does_not_exist)
{
    snprintf(to, sizeof to, "tcp://[1:2]:80");
    assert_reason(start_handler, "resolve [1:2]:80: no such host");
    assert_ledger("out");
}

Test(connecting, a_source_has_the_reason_of_a_host_that_does_not_exist)
{
    snprintf(to, sizeof to, "tcp://[1:2]:80");
    assert_reason(start_source, "resolve [1:2]:80: no such host");
}

/* ---- A half-open connection ------------------------------------------------------------------ */

/* How many TCP connections of the process are half open. */
static int count_half_open(void)
{
    int count = 0;
    for (int fd = 3; fd < 256; fd++) {
        struct tcp_info info;
        socklen_t size = sizeof info;
        memset(&info, 0, sizeof info);
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_SYN_SENT)
            count++;
    }
    return count;
}

static bool is_half_open(void)
{
    return count_half_open() == 1;
}

static void assert_children_have_none(void)
{
    wait_until(is_half_open);
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(count_half_open());
        cr_assert(child > 0 && waitpid(child, &status, 0) == child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
        cr_assert(is_half_open() && !has_reason());
    }
}

static void assert_stopped(void)
{
    cr_assert(has_reason());
    cr_assert(strstr(reason, ": stopped"), "%s", reason);
}

Test(connecting, a_child_does_not_have_the_half_open_connection_of_a_handler_which_a_stop_ends)
{
    fill(bind_port());
    start_handler();
    assert_children_have_none();
    weir_handler_stats stats;
    cr_assert_eq(weir_shutdown(SHORT_MS), WEIR_ERR_DROPPED, "%s", weir_last_error());
    cr_assert_eq(weir_get_handler_stats("out", &stats, sizeof stats), 0);
    cr_assert_eq(stats.dropped[WEIR_DROPPED_SHUTDOWN], VALUES);
    assert_ledger("out");
}

Test(connecting, a_child_does_not_have_the_half_open_connection_of_a_source_which_a_stop_ends)
{
    fill(bind_port());
    start_source();
    assert_children_have_none();
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    assert_stopped();
}

Test(connecting, a_stop_ends_the_wait_of_a_source_for_its_turn_at_a_unix_socket)
{
    fill(bind_path());
    start_source();
    wait_until(has_called);
    cr_assert_eq(weir_stop_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    assert_stopped();
}

/* ---- Room ------------------------------------------------------------------------------------ */

static _Atomic bool is_full;

/* Connects while a value has no room, and only then waits for the room. */
static void connect_when_full(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    const weir_intake *intake = host->service(host, WEIR_SERVICE_INTAKE);
    (void)tag;
    while (add_one(host) == WEIR_ADD_TAKEN)
        continue;
    atomic_store(&is_full, true);
    cr_assert_geq(connect_from(host, outcome->reason, sizeof outcome->reason), 0, "%s", reason);
    do
        while (!(intake->wait(host, NULL, 0, -1) & WEIR_WAIT_ROOM))
            continue;
    while (add_one(host) == WEIR_ADD_FULL); /* there may be room, not must */
}

static bool has_no_room(void)
{
    return atomic_load(&is_full);
}

Test(connecting, room_that_comes_while_a_source_connects_is_reported_after_that)
{
    int listener = fill(bind_path());
    script->open = NULL;
    script->run = connect_when_full;
    capture_hold();
    start_source();
    wait_until(has_no_room);
    wait_until(has_called);
    capture_release();
    cr_assert_eq(weir_flush(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_geq(accept(listener, NULL, NULL), 0);
    cr_assert_eq(weir_wait_sources(PATIENCE_MS), 0, "%s", weir_last_error());
    cr_assert_eq(weir_flush(PATIENCE_MS), 0, "%s", weir_last_error());
    assert_ledger("capture");
}

/* ---- A reload -------------------------------------------------------------------------------- */

static _Atomic bool may_connect, has_reloaded;

static void connect_after_a_reload(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    const weir_connecting *connecting = host->service(host, WEIR_SERVICE_CONNECTING);
    const weir_connect what = {.size = sizeof what, .to = to, .timeout_ms = 1};
    (void)tag;
    atomic_store(&is_connecting, true);
    while (!atomic_load(&may_connect))
        usleep(1000);
    cr_assert_eq(connecting->connect(host, &what, outcome->reason, sizeof outcome->reason), -1);
}

static void await_reload(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    const weir_intake *intake = host->service(host, WEIR_SERVICE_INTAKE);
    unsigned events = 0;
    (void)tag, (void)outcome;
    while (!(events & (WEIR_WAIT_RELOAD | WEIR_WAIT_STOP)))
        events = intake->wait(host, NULL, 0, -1);
    atomic_store(&has_reloaded, events & WEIR_WAIT_RELOAD);
}

static bool is_told_of_reload(void)
{
    return atomic_load(&has_reloaded);
}

Test(connecting, a_source_is_told_of_a_reload_after_it_has_connected)
{
    fill(bind_path());
    script->open = connect_after_a_reload;
    script->run = await_reload;
    start_source();
    wait_until(has_called);
    cr_assert_eq(weir_reload(), 0, "%s", weir_last_error());
    atomic_store(&may_connect, true);
    wait_until(is_told_of_reload);
}
