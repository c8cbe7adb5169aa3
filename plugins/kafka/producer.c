#include "producer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "../system.h"

/* How long a wait lasts at most, in case that librdkafka's signal is missed. */
enum { SLICE_MS = 100, CLOSE_MS = 1000, ERROR_ROOM = 512 };

void wr_producer_init(struct producer *producer, const weir_host *host)
{
    *producer = (struct producer){.host = host, .event_fd = -1};
    producer->waiting = host->service(host, WEIR_SERVICE_WAITING);
    for (size_t i = 0; i < PRODUCER_SOCKETS; i++)
        atomic_init(&producer->sockets[i], -1);
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

/* [librdkafka's threads] A socket that does not fit into the record is used, too: only a forked child does not
 * know it. For a broker that librdkafka has learned of it has made a pipe before. */
static int open_socket(int domain, int type, int protocol, void *opaque)
{
    struct producer *producer = opaque;
    if (atomic_load(&producer->knows_pipes))
        wr_pipes_close_on_exec();
    int fd = wr_fd_above_stdio(socket(domain, type | SOCK_CLOEXEC, protocol));
    for (size_t i = 0; fd >= 0 && i < PRODUCER_SOCKETS; i++) {
        int none = -1;
        if (atomic_compare_exchange_strong(&producer->sockets[i], &none, fd))
            break;
    }
    return fd;
}

/* [librdkafka's threads] The record ends before the number can be reused. */
static int close_socket(int fd, void *opaque)
{
    struct producer *producer = opaque;
    for (size_t i = 0; i < PRODUCER_SOCKETS; i++) {
        int recorded = fd;
        if (atomic_compare_exchange_strong(&producer->sockets[i], &recorded, -1))
            break;
    }
    return close(fd);
}

void wr_producer_abandon(const struct producer *producer)
{
    for (size_t i = 0; i < PRODUCER_SOCKETS; i++) {
        int fd = atomic_load(&producer->sockets[i]);
        if (fd >= 0)
            close(fd);
    }
    if (producer->event_fd >= 0)
        close(producer->event_fd);
    wr_pipes_abandon(&producer->pipes);
}

void wr_producer_tend(struct producer *producer)
{
    wr_pipes_forget_closed(&producer->pipes);
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

/* [librdkafka's threads] Failures reach people by the outcomes, so librdkafka's words are for those who look
 * for more. */
static void write_log(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
    const struct producer *producer = rd_kafka_opaque(client);
    if (producer)
        producer->host->log(producer->host,
                            level <= LOG_CRIT     ? WEIR_LOG_ERROR
                            : level <= LOG_NOTICE ? WEIR_LOG_INFO
                                                  : WEIR_LOG_DEBUG,
                            "librdkafka: %s: %s", facility, text);
}

static void set_state(struct producer *producer, enum producer_state state, rd_kafka_resp_err_t error)
{
    if (producer->state == PRODUCER_FATAL)
        return;
    producer->state = state;
    producer->error = error;
}

static void set_problem(struct producer *producer, const char *text)
{
    snprintf(producer->problem, sizeof producer->problem, "%.*s", PRODUCER_TEXT - 1, text);
}

bool wr_producer_check_fatal(struct producer *producer)
{
    char text[ERROR_ROOM];
    rd_kafka_resp_err_t error = rd_kafka_fatal_error(producer->client, text, sizeof text);
    if (!error)
        return false;
    set_state(producer, PRODUCER_FATAL, error);
    set_problem(producer, text);
    return true;
}

static void note_error(rd_kafka_t *client, int error, const char *reason, void *opaque)
{
    struct producer *producer = opaque;
    (void)client;
    switch (error) {
    case RD_KAFKA_RESP_ERR__FATAL: wr_producer_check_fatal(producer); break;
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
        if (producer->state == PRODUCER_WORKS)
            set_state(producer, PRODUCER_ALL_DOWN, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
        if (!*producer->problem)
            set_problem(producer, reason);
        break;
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
        set_state(producer, PRODUCER_REFUSED, RD_KAFKA_RESP_ERR__AUTHENTICATION);
        set_problem(producer, reason);
        break;
    default: set_problem(producer, reason);
    }
}

static void take_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    struct producer *producer = opaque;
    (void)client;
    producer->reports++;
    if (!message->err) { /* a broker works */
        set_state(producer, PRODUCER_WORKS, RD_KAFKA_RESP_ERR_NO_ERROR);
        *producer->problem = '\0';
    }
    producer->report(producer->context, message);
}

static int take_statistics(rd_kafka_t *client, char *json, size_t length, void *opaque)
{
    struct producer *producer = opaque;
    (void)client;
    wr_statistics_read(&producer->statistics, producer->host, json, length);
    return 0; /* librdkafka frees the text */
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static rd_kafka_conf_t *make_conf(struct producer *producer, const rd_kafka_conf_t *from)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(from);
    if (!conf)
        return NULL;
    rd_kafka_conf_set_opaque(conf, producer);
    rd_kafka_conf_set_log_cb(conf, write_log);
    rd_kafka_conf_set_error_cb(conf, note_error);
    rd_kafka_conf_set_dr_msg_cb(conf, take_report);
    rd_kafka_conf_set_stats_cb(conf, take_statistics);
    rd_kafka_conf_set_socket_cb(conf, open_socket);
    rd_kafka_conf_set_closesocket_cb(conf, close_socket);
    return conf;
}

/* A report makes event_fd readable. */
static void watch_queue(struct producer *producer)
{
    static const uint64_t one = 1;
    producer->queue = rd_kafka_queue_get_main(producer->client);
    rd_kafka_queue_io_event_enable(producer->queue, producer->event_fd, &one, sizeof one);
}

bool wr_producer_open(struct producer *producer, const rd_kafka_conf_t *from)
{
    char error[ERROR_ROOM] = "out of memory";
    producer->state = PRODUCER_WORKS;
    producer->error = RD_KAFKA_RESP_ERR_NO_ERROR;
    producer->problem[0] = '\0';
    producer->statistics = (struct statistics){0};
    producer->event_fd = wr_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    rd_kafka_conf_t *conf = producer->event_fd >= 0 ? make_conf(producer, from) : NULL;
    if (producer->event_fd < 0)
        snprintf(error, sizeof error, "eventfd: %s", wr_system_strerror(errno));
    struct pipes before;
    wr_pipes_list(&before);
    if (conf)
        producer->client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    wr_pipes_take(&producer->pipes, &before);
    atomic_store(&producer->knows_pipes, true);
    if (producer->client) {
        watch_queue(producer);
        return true;
    }
    if (conf)
        rd_kafka_conf_destroy(conf);
    wr_producer_close(producer);
    set_problem(producer, error);
    return false;
}

static void forget_all(struct producer *producer)
{
    rd_kafka_purge(producer->client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    int64_t end_ms = wr_producer_now_ms(producer) + CLOSE_MS;
    while (rd_kafka_outq_len(producer->client) > 0 && wr_producer_now_ms(producer) < end_ms)
        rd_kafka_poll(producer->client, 10);
}

void wr_producer_close(struct producer *producer)
{
    if (producer->client) {
        forget_all(producer);
        rd_kafka_queue_io_event_enable(producer->queue, -1, NULL, 0);
        rd_kafka_queue_destroy(producer->queue);
        rd_kafka_destroy(producer->client);
    }
    if (producer->event_fd >= 0)
        close(producer->event_fd);
    producer->event_fd = -1;
    producer->pipes.count = 0;
    atomic_store(&producer->knows_pipes, false);
    producer->client = NULL;
    producer->queue = NULL;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

int64_t wr_producer_now_ms(const struct producer *producer)
{
    return producer->waiting ? producer->waiting->now_ms(producer->host)
                             : wr_system_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

void wr_producer_poll(struct producer *producer)
{
    while (rd_kafka_poll(producer->client, 0) > 0)
        ;
}

/* Without the service, a stop ends the wait at once. */
static bool wait_for_event(struct producer *producer, int64_t timeout_ms)
{
    struct pollfd fd = {.fd = producer->event_fd, .events = POLLIN};
    uint64_t count;
    if (!producer->waiting)
        return producer->host->wait(producer->host, timeout_ms < 10 ? timeout_ms : 10);
    unsigned bits = producer->waiting->wait(producer->host, &fd, 1, timeout_ms);
    if (bits & WEIR_WAIT_READY && read(producer->event_fd, &count, sizeof count) < 0 && errno != EAGAIN)
        return false;
    return !(bits & WEIR_WAIT_STOP);
}

bool wr_producer_wait(struct producer *producer, int64_t timeout_ms)
{
    bool goes_on = wait_for_event(producer, timeout_ms < SLICE_MS ? timeout_ms : SLICE_MS);
    wr_producer_poll(producer);
    return goes_on;
}

bool wr_producer_probe(struct producer *producer, int64_t timeout_ms, int *brokers)
{
    const struct rd_kafka_metadata *metadata;
    int timeout = timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms;
    rd_kafka_resp_err_t error = rd_kafka_metadata(producer->client, 0, NULL, &metadata, timeout);
    if (!error) {
        *brokers = metadata->broker_cnt;
        rd_kafka_metadata_destroy(metadata);
        return true;
    }
    wr_producer_poll(producer); /* the reason */
    if (!*producer->problem)
        set_problem(producer, rd_kafka_err2str(error));
    return false;
}
