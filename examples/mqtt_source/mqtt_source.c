/* mqtt_source: subscribes to topics of an MQTT broker, with libmosquitto.
 *
 * Shows a source whose sender waits for acknowledgements. libmosquitto queues one for each message before it
 * hands over the message; here the queue is written once the message's values are taken. The broker keeps what
 * is not acknowledged, and sends it again. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mosquitto.h>
#include <weir/source.h>

enum { TOPIC_LABEL, TOPIC_GROUP };
enum { QOS = 1, IDLE_S = 60 };
enum { PAIR = 2, DESCRIPTORS = 1 << 16 };

struct options {
    const char *broker, *client_id, *user, *password;
    weir_list topics;
    int64_t port, topic;
};

static const weir_option rows[] = {
    WEIR_OPTION_ROW("broker", STRING, WEIR_OPTION_DESTINATION, "127.0.0.1", NULL,
                    "the broker: a name, an address, or the path of its Unix socket", struct options, broker),
    WEIR_OPTION_ROW("port", INT, 0, "1883", "1..65535", "its port", struct options, port),
    WEIR_OPTION_ROW("topics", LIST, WEIR_OPTION_REQUIRED, NULL, NULL, "what to subscribe to, like sensors/#",
                    struct options, topics),
    WEIR_OPTION_ROW("client_id", STRING, WEIR_OPTION_REQUIRED, NULL, NULL,
                    "by which the broker knows what it has to send again; no other client may have it",
                    struct options, client_id),
    WEIR_OPTION_ROW("user", STRING, 0, NULL, NULL, "the user; default: none", struct options, user),
    WEIR_OPTION_ROW("password", STRING, WEIR_OPTION_SECRET, NULL, NULL, "the user's password", struct options,
                    password),
    WEIR_OPTION_ROW("topic", ENUM, 0, "label", "label|group",
                    "what a message's topic becomes: the label topic, or what precedes the group",
                    struct options, topic),
    {0},
};

struct source {
    const weir_host *host;
    const weir_intake *intake;
    const weir_parser *parser;
    const struct options *options;
    struct mosquitto *client;
    int fds[PAIR + 1];                /* the client's: a pair, and its connection; -1: none */
    struct mosquitto_message message; /* that is read and not taken yet */
    weir_text *text;                  /* NULL: there is none */
    weir_label label;                 /* of the text */
    size_t offset;                    /* of the payload, up to which it is parsed */
    bool is_full;                     /* the text has to be resumed */
    char failure[200];                /* "": none */
};

static void *create(const weir_host *host, const void *options)
{
    struct source *source = calloc(1, sizeof *source);
    if (!source)
        host->refuse(host, "", "out of memory");
    else
        *source = (struct source){
            .host = host,
            .intake = host->service(host, WEIR_SERVICE_INTAKE),
            .parser = host->service(host, WEIR_SERVICE_PARSER),
            .options = options,
            .fds = {-1, -1, -1},
        };
    return source;
}

static void fail(struct source *source, const char *what, const char *why)
{
    snprintf(source->failure, sizeof source->failure, "%s%s", what, why);
}

/* What is not taken and has QoS 1 is not lost: it comes again. */
static void end_message(struct source *source, bool is_taken)
{
    if (source->text && !is_taken && source->message.qos)
        source->parser->cancel(source->text);
    else
        source->parser->end(source->text);
    mosquitto_message_free_contents(&source->message);
    memset(&source->message, 0, sizeof source->message);
    source->text = NULL;
    source->offset = 0;
    source->is_full = false;
}

static bool begin_message(struct source *source, const struct mosquitto_message *message)
{
    if (mosquitto_message_copy(&source->message, message))
        return false;
    char *topic = source->message.topic;
    source->label = (weir_label){"topic", topic};
    weir_text_options options = {.size = sizeof options, .labels = &source->label, .label_count = 1};
    if (source->options->topic == TOPIC_GROUP) {
        for (char *at = topic; (at = strchr(at, '/'));)
            *at = '.';
        options.group_prefix = topic + strspn(topic, ".");
        options.label_count = 0;
    }
    source->text = source->parser->begin_with(source->host, topic, &options);
    return source->text;
}

/* mosquitto_loop_read reads one packet, so there is no message yet. */
static void on_message(struct mosquitto *client, void *self, const struct mosquitto_message *message)
{
    struct source *source = self;
    (void)client;
    if (message->retain) /* from before the subscription, and again with each one */
        source->host->count(source->host, "retained", 1);
    else if (!begin_message(source, message))
        fail(source, "out of memory", "");
}

/* Adds what is left of the message. Returns whether all that was read is taken. */
static bool take(struct source *source)
{
    const weir_parser *parser = source->parser;
    size_t length = (size_t)source->message.payloadlen, room;
    if (source->is_full)
        source->is_full = !parser->resume(source->text);
    while (!source->is_full && source->offset < length) {
        char *to = parser->room(source->text, &room);
        if (!to) {
            fail(source, "out of memory", "");
            return false;
        }
        size_t part = room < length - source->offset ? room : length - source->offset;
        memcpy(to, (const char *)source->message.payload + source->offset, part);
        source->offset += part;
        source->is_full = !parser->parse(source->text, part);
    }
    if (source->is_full || (source->text && !parser->finish(source->text, true)))
        return false;
    end_message(source, true);
    return true;
}

static void on_connect(struct mosquitto *client, void *self, int code)
{
    struct source *source = self;
    weir_list topics = source->options->topics;
    if (code)
        fail(source, "the broker refuses: ", mosquitto_connack_string(code));
    else if (mosquitto_subscribe_multiple(client, NULL, (int)topics.count,
                                          (char *const *)(uintptr_t)topics.items, QOS, 0, NULL))
        fail(source, "subscribe: ", "out of memory, or a topic that is not valid");
}

static void on_subscribe(struct mosquitto *client, void *self, int id, int count, const int *granted)
{
    struct source *source = self;
    (void)client, (void)id;
    source->host->log(source->host, 3, "is subscribed at %s", source->options->broker);
    for (int i = 0; i < count; i++)
        if (granted[i] != QOS)
            fail(source, "the broker does not grant QoS 1: ", source->options->topics.items[i]);
}

static void initialize(void)
{
    mosquitto_lib_init();
}

/* Finds sockets that are not in the table yet, and enters them. Returns their number. */
static int find_sockets(ino_t *inodes, int *fds)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        struct stat status;
        if (fd >= DESCRIPTORS || fstat(fd, &status) || !S_ISSOCK(status.st_mode) || inodes[fd] == status.st_ino)
            continue;
        inodes[fd] = status.st_ino;
        if (count < PAIR)
            fds[count] = fd;
        count++;
    }
    if (folder)
        closedir(folder);
    return count;
}

/* mosquitto_new opens a pair of sockets that it tells nobody of: those that are there now and were not before.
 * It also ignores SIGPIPE, whose action is the program's. */
static bool make_client(struct source *source)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct sigaction action;
    ino_t *inodes = calloc(DESCRIPTORS, sizeof *inodes);
    if (!inodes)
        return false;
    pthread_once(&once, initialize);
    find_sockets(inodes, source->fds);
    sigaction(SIGPIPE, NULL, &action);
    source->client = mosquitto_new(source->options->client_id, false, source);
    sigaction(SIGPIPE, &action, NULL);
    int count = find_sockets(inodes, source->fds);
    free(inodes);
    if (source->client && count != PAIR)
        fail(source, "another thread opened a socket meanwhile", "");
    return source->client && count == PAIR;
}

static void close_source(void *self)
{
    struct source *source = self;
    end_message(source, false);
    mosquitto_destroy(source->client);
    source->client = NULL;
    source->fds[0] = source->fds[1] = source->fds[PAIR] = -1;
    source->failure[0] = '\0';
}

/* Returns false with the outcome set. */
static bool is_good(struct source *source, int code, weir_source_outcome *outcome)
{
    if (code && !*source->failure)
        fail(source, "", code == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(code));
    if (!*source->failure)
        return true;
    outcome->code = WEIR_SOURCE_REOPEN;
    snprintf(outcome->reason, sizeof outcome->reason, "%.60s: %.180s", source->options->broker,
             source->failure);
    return false;
}

static void set_up(struct source *source)
{
    struct mosquitto *client = source->client;
    mosquitto_threaded_set(client, true); /* there is no thread; packets are queued until loop_write */
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_username_pw_set(client, source->options->user, source->options->password);
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_subscribe_callback_set(client, on_subscribe);
    mosquitto_message_callback_set(client, on_message);
}

/* A ping could not overtake an acknowledgement that is held back: TCP watches the connection instead. */
static void open_source(void *self, weir_source_outcome *outcome)
{
    static const int on = 1, idle_s = IDLE_S;
    struct source *source = self;
    int port = *source->options->broker == '/' ? 0 : (int)source->options->port; /* 0: a Unix socket */
    int code = MOSQ_ERR_NOMEM;
    if (make_client(source)) {
        set_up(source);
        code = mosquitto_connect_async(source->client, source->options->broker, port, 0);
    }
    if (!is_good(source, code, outcome)) {
        close_source(source);
        return;
    }
    source->fds[PAIR] = mosquitto_socket(source->client);
    setsockopt(source->fds[PAIR], SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(source->fds[PAIR], IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    for (int i = 0; i <= PAIR; i++)
        fcntl(source->fds[i], F_SETFD, FD_CLOEXEC);
}

static void run(void *self, weir_source_outcome *outcome)
{
    struct source *source = self;
    struct mosquitto *client = source->client;
    int code = MOSQ_ERR_SUCCESS;
    unsigned woke = 0;
    while (is_good(source, code, outcome)) {
        bool is_taken = take(source);
        if (woke & WEIR_WAIT_STOP && is_taken)
            mosquitto_disconnect(client);
        if (is_taken)
            code = mosquitto_loop_write(client, 1);
        if (woke & WEIR_WAIT_STOP)
            return;
        if (code || *source->failure)
            continue;
        struct pollfd entry = {source->fds[PAIR], POLLIN, 0};
        if (mosquitto_want_write(client))
            entry.events |= POLLOUT;
        woke = source->intake->wait(source->host, &entry, is_taken, -1);
        if (entry.revents & ~POLLOUT)
            code = mosquitto_loop_read(client, 1);
        if (!code)
            code = mosquitto_loop_misc(client);
    }
}

static void abandon(void *self)
{
    struct source *source = self;
    for (int i = 0; i <= PAIR; i++)
        if (source->fds[i] >= 0)
            close(source->fds[i]);
}

static const weir_source_type type = {
    .size = sizeof type,
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_PARSES,
    .name = "mqtt_source",
    .summary = "subscribes to topics of an MQTT broker",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .create = create,
    .open = open_source,
    .run = run,
    .close = close_source,
    .destroy = free,
    .abandon = abandon,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
