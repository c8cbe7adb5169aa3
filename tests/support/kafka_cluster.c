/* kafka_cluster: a cluster of librdkafka's mock brokers, with a consumer, for tests of the handler type kafka.
 *
 *     kafka_cluster PORT[=OTHER]...   a broker on each port of 127.0.0.1; prints their addresses as one line.
 *                                     With =OTHER it listens on that port, and tells clients that it is at
 * PORT: for a proxy there
 *
 * Executes commands from standard input, one per line, and answers each with "ok" or an error:
 *
 *     create TOPIC PARTITIONS
 *     topic_error TOPIC ERROR            metadata of the topic has this error; 0: none
 *     error API COUNT ERROR              the next COUNT requests of that number fail (Produce: 0)
 *     rtt BROKER MS                      delays answers
 *     leader TOPIC PARTITION BROKER
 *     down BROKER, up BROKER             closes all connections and refuses new ones; accepts them again
 *     watch TOPIC PARTITIONS FILE        appends what arrives to FILE, a line for each message: partition,
 *                                        offset, timestamp, key, headers and value, separated by tabs
 *
 * The brokers keep 5 MB of a partition. The offsets in FILE have no gaps if nothing was removed. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_BROKERS = 8, LINE = 512, MOST_ERRORS = 10000 };

static struct {
    in_port_t ports[MOST_BROKERS], others[MOST_BROKERS];
    int count, bound;
} brokers;
static rd_kafka_t *owner;
static rd_kafka_mock_cluster_t *cluster;

/* The three functions are in place of the C library's: the mock brokers ask for any port, and get ours, so that
 * a cluster can be started again at the same place. */
__attribute__((visibility("default"))) int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    int (*real)(int, const struct sockaddr *, socklen_t);
    struct sockaddr_in wanted;
    int yes = 1;
    *(void **)&real = dlsym(RTLD_NEXT, "bind");
    if (address->sa_family != AF_INET || brokers.bound >= brokers.count)
        return real(fd, address, length);
    memcpy(&wanted, address, sizeof wanted);
    wanted.sin_port = htons(brokers.others[brokers.bound++]);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return real(fd, (const struct sockaddr *)&wanted, sizeof wanted);
}

/* Replaces a port that is in `from` by the one at its place in `to`. */
static void replace_port(struct sockaddr_in *address, const in_port_t *from, const in_port_t *to)
{
    for (int i = 0; i < brokers.count; i++)
        if (address->sin_family == AF_INET && ntohs(address->sin_port) == from[i]) {
            address->sin_port = htons(to[i]);
            return;
        }
}

/* Where a broker says that it is. */
__attribute__((visibility("default"))) int getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    int (*real)(int, struct sockaddr *, socklen_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "getsockname");
    int result = real(fd, address, length);
    if (result == 0 && *length >= sizeof(struct sockaddr_in))
        replace_port((struct sockaddr_in *)(void *)address, brokers.others, brokers.ports);
    return result;
}

/* The consumer reads from the brokers themselves. */
__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    int (*real)(int, const struct sockaddr *, socklen_t);
    struct sockaddr_in wanted;
    *(void **)&real = dlsym(RTLD_NEXT, "connect");
    if (length != sizeof wanted)
        return real(fd, address, length);
    memcpy(&wanted, address, sizeof wanted);
    replace_port(&wanted, brokers.ports, brokers.others);
    return real(fd, (const struct sockaddr *)&wanted, sizeof wanted);
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "kafka_cluster: %s: %s\n", what, why);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK)
        die(name, error);
}

/* ---- The consumer ---------------------------------------------------------------------------- */

struct watch {
    char topic[LINE];
    int partitions;
    FILE *file;
};

static void put_headers(FILE *file, const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t size;
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0; i++)
        fprintf(file, "%s%s=%.*s", i ? "," : "", name, (int)size, (const char *)value);
}

static void put_message(FILE *file, const rd_kafka_message_t *message)
{
    fprintf(file, "%d\t%lld\t%lld\t%.*s\t", message->partition, (long long)message->offset,
            (long long)rd_kafka_message_timestamp(message, NULL), (int)message->key_len,
            message->key ? (const char *)message->key : "");
    put_headers(file, message);
    fprintf(file, "\t%.*s\n", (int)message->len, (const char *)message->payload);
}

static rd_kafka_t *make_consumer(void)
{
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster));
    set(conf, "group.id", "watch");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.auto.commit", "false");
    set(conf, "fetch.wait.max.ms", "20");
    set(conf, "reconnect.backoff.ms", "10");
    set(conf, "reconnect.backoff.max.ms", "50");
    set(conf, "log_level", "2");
    rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    if (!consumer)
        die("consumer", error);
    rd_kafka_poll_set_consumer(consumer);
    return consumer;
}

/* Until the process ends. */
static void *run_watch(void *argument)
{
    struct watch *watch = argument;
    rd_kafka_t *consumer = make_consumer();
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(watch->partitions);
    rd_kafka_topic_partition_list_add_range(all, watch->topic, 0, watch->partitions - 1);
    for (int i = 0; i < all->cnt; i++)
        all->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(consumer, all);
    for (;;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 5);
        if (!message)
            fflush(watch->file);
        else if (!message->err)
            put_message(watch->file, message);
        if (message)
            rd_kafka_message_destroy(message);
    }
    return NULL;
}

static rd_kafka_resp_err_t start_watch(const char *topic, int partitions, const char *path)
{
    pthread_t thread;
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch || !(watch->file = fopen(path, "ae")))
        return RD_KAFKA_RESP_ERR__FAIL;
    snprintf(watch->topic, sizeof watch->topic, "%s", topic);
    watch->partitions = partitions;
    return pthread_create(&thread, NULL, run_watch, watch) ? RD_KAFKA_RESP_ERR__FAIL
                                                           : RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* ---- Commands -------------------------------------------------------------------------------- */

static rd_kafka_resp_err_t push_errors(int api, int count, int error)
{
    rd_kafka_resp_err_t *errors = calloc(MOST_ERRORS, sizeof *errors);
    if (!errors || count > MOST_ERRORS)
        return RD_KAFKA_RESP_ERR__FAIL;
    for (int i = 0; i < count; i++)
        errors[i] = (rd_kafka_resp_err_t)error;
    if (count)
        rd_kafka_mock_push_request_errors_array(cluster, (int16_t)api, (size_t)count, errors);
    else
        rd_kafka_mock_clear_request_errors(cluster, (int16_t)api);
    free(errors);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t execute(const char *line)
{
    char word[LINE], topic[LINE], path[LINE];
    int a, b, c;
    if (sscanf(line, "create %511s %d", topic, &a) == 2)
        return rd_kafka_mock_topic_create(cluster, topic, a, 1);
    if (sscanf(line, "topic_error %511s %d", topic, &a) == 2)
        return rd_kafka_mock_topic_set_error(cluster, topic, (rd_kafka_resp_err_t)a),
               RD_KAFKA_RESP_ERR_NO_ERROR;
    if (sscanf(line, "error %d %d %d", &a, &b, &c) == 3)
        return push_errors(a, b, c);
    if (sscanf(line, "rtt %d %d", &a, &b) == 2)
        return rd_kafka_mock_broker_set_rtt(cluster, a, b);
    if (sscanf(line, "leader %511s %d %d", topic, &a, &b) == 3)
        return rd_kafka_mock_partition_set_leader(cluster, topic, a, b);
    if (sscanf(line, "watch %511s %d %511s", topic, &a, path) == 3)
        return start_watch(topic, a, path);
    if (sscanf(line, "%511s %d", word, &a) == 2 && strcmp(word, "down") == 0)
        return rd_kafka_mock_broker_set_down(cluster, a);
    if (sscanf(line, "%511s %d", word, &a) == 2 && strcmp(word, "up") == 0)
        return rd_kafka_mock_broker_set_up(cluster, a);
    return RD_KAFKA_RESP_ERR__INVALID_ARG;
}

static void make_cluster(void)
{
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "log_level", "2");
    owner = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    if (!owner)
        die("owner", error);
    cluster = rd_kafka_mock_cluster_new(owner, brokers.count);
    if (!cluster)
        die("cluster", "cannot listen");
}

int main(int count, char **arguments)
{
    char line[LINE * 2];
    for (int i = 1; i < count && i <= MOST_BROKERS; i++) {
        const char *other = strchr(arguments[i], '=');
        brokers.ports[brokers.count] = (in_port_t)atoi(arguments[i]);
        brokers.others[brokers.count++] = (in_port_t)atoi(other ? other + 1 : arguments[i]);
    }
    make_cluster();
    puts(rd_kafka_mock_cluster_bootstraps(cluster));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        rd_kafka_resp_err_t error = execute(line);
        puts(error ? rd_kafka_err2str(error) : "ok");
        fflush(stdout);
    }
    _exit(0); /* consumers never end */
}
