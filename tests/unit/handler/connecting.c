/* The service connecting/1 on a handler's lane: what it connects to, why it does not, and what a forked child
 * closes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/test_clock.h>
#include <weir/test_source.h>

#include "../../support/host_fixture.h"
#include "../../support/temp_folder.h"
#include "lane/lane_stop.h"
#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"

enum { LONG_MS = 3600 * 1000 };

static struct wr_error refusal;
static char reason[256];

TestSuite(connecting, .init = setup, .fini = remove_folder, .timeout = 120);

static const weir_connecting *service(void)
{
    const weir_connecting *found = host->service(host, WEIR_SERVICE_CONNECTING);
    cr_assert(found && found->size == sizeof *found);
    return found;
}

static int connect_within(const char *to, int64_t timeout_ms)
{
    const weir_connect what = {.size = sizeof what, .to = to, .timeout_ms = timeout_ms};
    *reason = '\0';
    return service()->connect(host, &what, reason, sizeof reason);
}

/* ---- Peers ----------------------------------------------------------------------------------- */

/* A socket of 127.0.0.1 with a port of its own; to: gets its text. */
static int bind_port(int kind, char *to, size_t room)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, kind, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(to, room, "%s://127.0.0.1:%d", kind == SOCK_STREAM ? "tcp" : "udp", ntohs(address.sin_port));
    return fd;
}

static int bind_path(int kind, char *to, size_t room)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path_in_folder("socket"));
    snprintf(to, room, "%s:%s", kind == SOCK_STREAM ? "unix" : "unix-dgram", address.sun_path);
    int fd = socket(AF_UNIX, kind, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Listens, and fills the queue, so that no further connection is made. */
static void fill_backlog(int listener, const char *to)
{
    cr_assert_eq(listen(listener, 0), 0);
    while (connect_within(to, 1) >= 0)
        continue;
    cr_assert(strstr(reason, ": no connection within 1 ms"), "%s", reason);
}

static int option_of(int fd, int level, int name)
{
    int value = 0;
    socklen_t size = sizeof value;
    cr_assert_eq(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

static void assert_passes(int sender, int receiver)
{
    char byte = 0;
    cr_assert_eq(send(sender, "x", 1, 0), 1);
    cr_assert_eq(recv(receiver, &byte, 1, 0), 1);
    cr_assert_eq(byte, 'x');
}

/* ---- Connecting ------------------------------------------------------------------------------ */

Test(connecting, a_tcp_connection_is_non_blocking_closed_on_exec_and_without_delay)
{
    char to[64];
    int listener = bind_port(SOCK_STREAM, to, sizeof to);
    cr_assert_eq(listen(listener, 1), 0);
    close(STDIN_FILENO); /* whose number must not be used */
    int fd = connect_within(to, LONG_MS);
    cr_assert_gt(fd, STDERR_FILENO, "%s", reason);
    cr_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    cr_assert(option_of(fd, IPPROTO_TCP, TCP_NODELAY));
    cr_assert(option_of(fd, SOL_SOCKET, SO_KEEPALIVE));
    assert_passes(fd, accept(listener, NULL, NULL));
}

Test(connecting, datagrams_and_unix_sockets_are_connected)
{
    char to[128];
    int receiver = bind_port(SOCK_DGRAM, to, sizeof to);
    assert_passes(connect_within(to, LONG_MS), receiver);
    receiver = bind_path(SOCK_DGRAM, to, sizeof to);
    assert_passes(connect_within(to, LONG_MS), receiver);
}

Test(connecting, a_unix_stream_is_connected)
{
    char to[128];
    int listener = bind_path(SOCK_STREAM, to, sizeof to);
    cr_assert_eq(listen(listener, 1), 0);
    int fd = connect_within(to, LONG_MS);
    assert_passes(fd, accept(listener, NULL, NULL));
}

Test(connecting, what_cannot_be_reached_has_a_reason)
{
    char to[64], expected[128];
    close(bind_port(SOCK_STREAM, to, sizeof to));
    cr_assert_eq(connect_within(to, LONG_MS), -1);
    snprintf(expected, sizeof expected, "connect %s: Connection refused", to + 6);
    cr_assert_str_eq(reason, expected);
    cr_assert_eq(connect_within("unix:/nowhere/socket", LONG_MS), -1);
    cr_assert_str_eq(reason, "connect /nowhere/socket: No such file or directory");
    cr_assert_eq(connect_within("tcp://[1:2]:80", LONG_MS), -1);
    cr_assert_str_eq(reason, "resolve [1:2]:80: no such host");
}

Test(connecting, what_is_not_allowed_is_not_connected)
{
    char to[64];
    cr_assert_eq(listen(bind_port(SOCK_STREAM, to, sizeof to), 1), 0);
    const weir_connect what = {
        .size = sizeof what, .to = to, .timeout_ms = LONG_MS, .kinds = WEIR_CONNECT_UDP | WEIR_CONNECT_UNIX};
    cr_assert_eq(service()->connect(host, &what, reason, sizeof reason), -1);
    cr_assert(strstr(reason, "has no scheme that is known; allowed: udp://HOST:PORT, unix:/PATH"), "%s",
              reason);
}

/* A plugin that was built with a shorter struct: what it does not have is not read. */
Test(connecting, a_shorter_struct_is_read_as_far_as_it_goes)
{
    char to[64];
    cr_assert_eq(listen(bind_port(SOCK_STREAM, to, sizeof to), 1), 0);
    const weir_connect what = {
        .size = offsetof(weir_connect, kinds), .to = to, .timeout_ms = LONG_MS, .kinds = WEIR_CONNECT_UDP};
    cr_assert_gt(service()->connect(host, &what, reason, sizeof reason), STDERR_FILENO, "%s", reason);
}

Test(connecting, a_full_backlog_takes_the_time_that_is_given)
{
    char to[128];
    fill_backlog(bind_port(SOCK_STREAM, to, sizeof to), to);
    fill_backlog(bind_path(SOCK_STREAM, to, sizeof to), to);
}

Test(connecting, a_stop_ends_it_when_no_time_is_left)
{
    char to[2][128];
    fill_backlog(bind_port(SOCK_STREAM, to[0], sizeof to[0]), to[0]);
    fill_backlog(bind_path(SOCK_STREAM, to[1], sizeof to[1]), to[1]);
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, wr_clock_deadline_ns(1));
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(connect_within(to[i], LONG_MS), -1);
        cr_assert(strstr(reason, ": stopped"), "%s", reason);
    }
}

/* ---- Where it is not allowed ----------------------------------------------------------------- */

Test(connecting, in_create_nothing_is_connected)
{
    char to[64];
    cr_assert_eq(listen(bind_port(SOCK_STREAM, to, sizeof to), 1), 0);
    core.lane = NULL;
    core.refusal = &refusal;
    cr_assert_eq(connect_within(to, LONG_MS), -1);
    cr_assert(strstr(reason, ": this callback must not wait"), "%s", reason);
}

Test(connecting, a_handler_without_a_worker_waits_for_its_connection)
{
    char to[64];
    fill_backlog(bind_port(SOCK_STREAM, to, sizeof to), to);
    core.lane = NULL; /* as for weir check --open */
    cr_assert_eq(connect_within(to, 1), -1);
    cr_assert(strstr(reason, ": no connection within 1 ms"), "%s", reason);
}

Test(connecting, types_that_share_nothing_do_not_have_it)
{
    struct wr_type alone = type;
    alone.is.flags = WEIR_TYPE_SHARES_NOTHING;
    wr_host_api_init(&core, "push", &alone);
    cr_assert_null(host->service(host, WEIR_SERVICE_CONNECTING));
}

/* ---- Checking -------------------------------------------------------------------------------- */

Test(connecting, a_text_is_checked_without_connecting)
{
    static const struct {
        const char *to;
        uint32_t what;
    } rows[] = {
        {"tcp://collector:80", WEIR_CONNECT_TCP | WEIR_CONNECT_NAME},
        {"udp://192.0.2.1:8125", WEIR_CONNECT_UDP},
        {"tcp://[2001:db8::1]:80", WEIR_CONNECT_TCP},
        {"tcp://localhost:80", WEIR_CONNECT_TCP | WEIR_CONNECT_NAME | WEIR_CONNECT_LOCAL},
        {"tcp://127.0.0.2:80", WEIR_CONNECT_TCP | WEIR_CONNECT_LOCAL},
        {"tcp://[::1]:80", WEIR_CONNECT_TCP | WEIR_CONNECT_LOCAL},
        {"unix:/run/x@y", WEIR_CONNECT_UNIX | WEIR_CONNECT_LOCAL},
        {"unix-dgram:/run/x", WEIR_CONNECT_UNIX_DGRAM | WEIR_CONNECT_LOCAL},
    };
    core.refusal = &refusal;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(service()->check(host, "to", rows[i].to, 0), rows[i].what, "%s", rows[i].to);
    cr_expect_eq(refusal.code, 0);
}

Test(connecting, a_wrong_text_is_refused_with_what_is_allowed)
{
    static const char *const rows[][2] = {
        {"tcp://host", "\"tcp://host\" has no port"},
        {"tcp://host:0", "something other than a port, 1..65535"},
        {"tcp://::1:80", "an IPv6 address without brackets"},
        {"tcp://host:80/path", "has a path"},
        {"unix:relative", "has no absolute path"},
        {"host:80", "has no scheme that is known"},
        {"udp://host:80", "has no scheme that is known"}, /* not of the kinds */
    };
    core.refusal = &refusal;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refusal = (struct wr_error){0};
        cr_expect_eq(service()->check(host, "to", rows[i][0], WEIR_CONNECT_TCP | WEIR_CONNECT_UNIX), 0);
        cr_expect(strstr(refusal.text, rows[i][1]) &&
                      strstr(refusal.text, "; allowed: tcp://HOST:PORT, unix:/PATH"),
                  "%s", refusal.text);
    }
}

Test(connecting, a_password_is_not_repeated)
{
    static const char *const rows[] = {"tcp://me:secret@host:80", "redis://me:secret@host:80", "me:secret@host",
                                       "tcp://host:secret@80", "udp://secret@host/path"};
    core.refusal = &refusal;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refusal = (struct wr_error){0};
        cr_expect_eq(service()->check(host, "to", rows[i], 0), 0, "%s", rows[i]);
        cr_expect(strstr(refusal.text, "names a user") && !strstr(refusal.text, "secret"), "%s", refusal.text);
        cr_expect_eq(connect_within(rows[i], 0), -1);
        cr_expect(strstr(reason, "names a user") && !strstr(reason, "secret"), "%s", reason);
    }
}

/* ---- The test kit ---------------------------------------------------------------------------- */

static int connect_pair(weir_test_clock *clock, const weir_connect *what, char *text, size_t room)
{
    int *ends = clock->context;
    (void)text, (void)room;
    cr_assert_str_eq(what->to, "tcp://collector:80");
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0 ? ends[0] : -1;
}

Test(connecting, in_a_test_of_a_handler_the_test_connects)
{
    int ends[2];
    weir_test_clock clock;
    weir_test_clock_init(&clock, NULL, "push");
    clock.context = ends;
    host = &clock.host;
    cr_assert_eq(connect_within("tcp://collector:80", LONG_MS), -1);
    cr_assert_str_eq(reason, "connect tcp://collector:80: Connection refused");
    clock.on_connect = connect_pair;
    int fd = connect_within("tcp://collector:80", LONG_MS);
    assert_passes(fd, ends[1]);
    cr_assert_eq(service()->check(host, "to", "unix:/run/x", 0), WEIR_CONNECT_UNIX);
    cr_assert_eq(service()->check(host, "to", "unix:/run/x", WEIR_CONNECT_TCP), 0);
    cr_assert_str_eq(clock.reason, "\"unix:/run/x\" has no scheme that is known");
}

Test(connecting, in_a_test_of_a_source_the_test_connects)
{
    int ends[2];
    static weir_test_source source;
    weir_test_source_init(&source, "in");
    source.clock.context = ends;
    source.clock.on_connect = connect_pair;
    host = &source.clock.host;
    int fd = connect_within("tcp://collector:80", LONG_MS);
    assert_passes(fd, ends[1]);
    cr_assert(host->service(host, WEIR_SERVICE_NUMBERS));
}

/* ---- Forked children ------------------------------------------------------------------------- */

static void *connect_for_ever(void *to)
{
    connect_within(to, LONG_MS);
    return NULL;
}

/* Whether a child that is forked now has closed the socket; another one of that number is left alone. */
static bool is_closed_in_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        int fd = core.connecting.last.fd;
        wr_connecting_abandon(&core.connecting);
        bool is_closed = fd > STDERR_FILENO && fcntl(fd, F_GETFD) < 0;
        dup2(STDERR_FILENO, fd);
        wr_connecting_abandon(&core.connecting);
        _exit(is_closed && fcntl(fd, F_GETFD) >= 0 ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Test(connecting, a_child_that_is_forked_meanwhile_closes_the_half_open_socket)
{
    static char to[2][128];
    pthread_t threads[2];
    fill_backlog(bind_port(SOCK_STREAM, to[0], sizeof to[0]), to[0]);
    fill_backlog(bind_path(SOCK_STREAM, to[1], sizeof to[1]), to[1]);
    for (int i = 0; i < 2; i++) {
        core.connecting.last.fd = -1;
        lane->worker.state = WR_THREAD_CALLING;
        pthread_create(&threads[i], NULL, connect_for_ever, to[i]);
        while (core.connecting.last.fd < 0) /* its number is there before it waits */
            sched_yield();
        cr_assert(is_closed_in_child());
    }
    wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, wr_clock_deadline_ns(1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

Test(connecting, before_the_first_connection_a_child_closes_nothing)
{
    wr_connecting_abandon(&core.connecting);
    cr_assert_geq(fcntl(STDIN_FILENO, F_GETFD), 0);
    cr_assert_geq(fcntl(STDERR_FILENO, F_GETFD), 0);
}
