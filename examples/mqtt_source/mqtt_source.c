/* mqtt_source: subscribes to topics of an MQTT broker, by MQTT 3.1.1.
 *
 * Shows a protocol on the services of the core, and a source whose sender waits for acknowledgements: a message
 * is parsed while it comes, and acknowledged once its values are taken. The broker repeats it until then. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <weir/source.h>

enum { KINDS = WEIR_CONNECT_TCP | WEIR_CONNECT_UNIX, CONNECT_MS = 10000, PING_MS = 20000, SILENCE_S = 60 };
enum { TEXT = 65535, HEAD = 5 }; /* bytes: of the longest text in a packet, and before what its length counts */
enum { TOPIC_LABEL, TOPIC_GROUP };
/* The first byte of a packet: its type and, of a message (PUBLISH), flags. */
enum { CONNECT = 0x10, CONNACK = 0x20, PUBLISH = 0x30, PUBACK = 0x40, SUBSCRIBE = 0x82, SUBACK = 0x90 };
enum { PINGREQ = 0xc0, PINGRESP = 0xd0, DISCONNECT = 0xe0, RETAINED = 1, QOS_1 = 2, QOS_2 = 4 };

struct options {
    const char *broker, *client_id, *user, *password;
    weir_list topics;
    int64_t topic;
};

static const weir_option rows[] = {
    WEIR_OPTION_ROW("broker", STRING, WEIR_OPTION_DESTINATION, "tcp://127.0.0.1:1883", NULL,
                    "the broker: tcp://HOST:PORT or unix:/PATH", struct options, broker),
    WEIR_OPTION_ROW("topics", LIST, WEIR_OPTION_REQUIRED, NULL, NULL, "what to subscribe to, like sensors/#",
                    struct options, topics),
    WEIR_OPTION_ROW("client_id", STRING, WEIR_OPTION_REQUIRED, NULL, NULL,
                    "the name of the session at the broker, of no other client", struct options, client_id),
    WEIR_OPTION_ROW("user", STRING, 0, NULL, NULL, "the user; default: none", struct options, user),
    WEIR_OPTION_ROW("password", STRING, WEIR_OPTION_SECRET, NULL, NULL, "a password", struct options, password),
    WEIR_OPTION_ROW("topic", ENUM, 0, "label", "label|group",
                    "what a topic becomes: the label topic, or what precedes the group", struct options, topic),
    {0},
};

struct source {
    const weir_host *host;
    const weir_connecting *connecting;
    const weir_intake *intake;
    const weir_parser *parser;
    const struct options *options;
    weir_outcome *outcome; /* of run: once its code is not 0, what follows does nothing */
    int fd;                /* -1: none */
    time_t heard_s;        /* when something came last, or had no room; 0: not yet */
    size_t left;           /* bytes of the packet that are still to be read */
    bool is_subscribed;    /* as the broker has confirmed */
};

static void *create(const weir_host *host, const void *options)
{
    const weir_connecting *connecting = host->service(host, WEIR_SERVICE_CONNECTING);
    struct source *source = NULL;
    if (!connecting)
        host->refuse(host, "", "it needs a newer version of weir: the service " WEIR_SERVICE_CONNECTING);
    else if (connecting->check(host, "broker", ((const struct options *)options)->broker, KINDS) &&
             !(source = calloc(1, sizeof *source)))
        host->refuse(host, "", "out of memory");
    if (source)
        *source = (struct source){
            .host = host,
            .connecting = connecting,
            .intake = host->service(host, WEIR_SERVICE_INTAKE),
            .parser = host->service(host, WEIR_SERVICE_PARSER),
            .options = options,
            .fd = -1,
        };
    return source;
}

static void fail(struct source *source, const char *what, const char *why)
{
    if (!source->outcome->code) /* the first failure is the reason */
        snprintf(source->outcome->reason, sizeof source->outcome->reason, "%s%.150s", what, why);
    source->outcome->code = WEIR_OUTCOME_REOPEN;
}

/* Waits for an event; 0: for room. Pings a broker that sends nothing. Returns whether to go on. */
static bool await(struct source *source, short event)
{
    struct pollfd entry = {source->fd, event, 0};
    struct timespec now;
    for (unsigned woke = 0; !woke && !source->outcome->code;) {
        woke = source->intake->wait(source->host, &entry, event ? 1 : 0, PING_MS);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (woke || !event || !source->heard_s)
            source->heard_s = now.tv_sec;
        else if (now.tv_sec - source->heard_s > SILENCE_S ||
                 (event == POLLIN && send(source->fd, (char[]){(char)PINGREQ, 0}, 2, MSG_NOSIGNAL) != 2))
            fail(source, "the broker does not reply", "");
        if (woke & WEIR_WAIT_STOP)
            source->outcome->code = WEIR_OUTCOME_REOPEN;
    }
    return !source->outcome->code;
}

/* Sends some of the bytes (POLLOUT), or reads some of the packet (POLLIN). Returns how many. */
static size_t move_some(struct source *source, short event, void *at, size_t size)
{
    ssize_t done = event == POLLIN ? recv(source->fd, at, size, 0) : send(source->fd, at, size, MSG_NOSIGNAL);
    if (done < 0 && errno == EAGAIN)
        await(source, event);
    else if (done <= 0)
        fail(source, "the connection is lost: ", done ? strerror(errno) : "closed by the broker");
    source->left -= event == POLLIN && done > 0 ? (size_t)done : 0;
    return done > 0 ? (size_t)done : 0;
}

/* The same with all of them. Returns whether to go on. */
static bool move_all(struct source *source, short event, void *at, size_t length)
{
    if (event == POLLIN && length > source->left)
        fail(source, "the broker has sent a packet whose length does not fit", "");
    for (size_t count; length && !source->outcome->code; length -= count, at = (char *)at + count)
        count = move_some(source, event, at, length);
    return !source->outcome->code;
}

/* Sends a packet: its first bytes, to which its length is added, and texts, each with `qos` bytes of QoS 1. */
static void send_packet(struct source *source, char *start, size_t size, weir_list texts, size_t qos)
{
    char head[HEAD] = {start[0]};
    size_t length = size - 1, at = 1;
    for (size_t i = 0; i < texts.count; i++)
        length += 2 + strlen(texts.items[i]) + qos;
    for (; length > 127; length >>= 7)
        head[at++] = (char)(length | 128);
    head[at++] = (char)length;
    move_all(source, POLLOUT, head, at);
    move_all(source, POLLOUT, start + 1, size - 1);
    for (size_t i = 0; i < texts.count; i++) {
        length = strlen(texts.items[i]);
        if (length > TEXT)
            fail(source, "a topic, client_id, user or password is longer than 65,535 bytes", "");
        move_all(source, POLLOUT, (char[]){(char)(length >> 8), (char)length}, 2);
        move_all(source, POLLOUT, (char *)(uintptr_t)texts.items[i], length);
        move_all(source, POLLOUT, (char[]){1}, qos);
    }
}

/* Asks for the session that the broker keeps, and subscribes. */
static void greet(struct source *source)
{
    static const char *const reasons[] = {"unknown reason", "protocol version", "client_id",
                                          "not available",  "user or password", "not authorized"};
    const struct options *options = source->options;
    const char *const texts[] = {options->client_id, options->user ? options->user : "", options->password};
    const weir_list given = {options->password ? 3 : options->user ? 2 : 1, texts};
    char flags = (char)(options->password ? 0xc0 : options->user ? 0x80 : 0);
    char start[] = {CONNECT, 0, 4, 'M', 'Q', 'T', 'T', 4, flags, 0, 0}, subscribe[] = {(char)SUBSCRIBE, 0, 1};
    unsigned char reply[] = {CONNACK, 2, 0, 0};
    send_packet(source, start, sizeof start, given, 0);
    source->left = sizeof reply;
    move_all(source, POLLIN, reply, sizeof reply);
    if (reply[0] != CONNACK || reply[1] != 2)
        fail(source, "the broker's reply is not one of MQTT 3.1.1", "");
    else if (reply[3])
        fail(source, "the broker refuses the connection: ", reasons[reply[3] < 6 ? reply[3] : 0]);
    send_packet(source, subscribe, sizeof subscribe, options->topics, 1);
}

static void take_grants(struct source *source)
{
    unsigned char id[2], code;
    move_all(source, POLLIN, id, sizeof id);
    for (size_t i = 0; i < source->options->topics.count; i++)
        if (move_all(source, POLLIN, &code, 1) && code != 1)
            fail(source, "the broker does not grant QoS 1: ", source->options->topics.items[i]);
    source->is_subscribed = true;
    if (!source->outcome->code)
        source->host->log(source->host, WEIR_LOG_INFO, "is subscribed at %s", source->options->broker);
}

/* Has the payload parsed while it comes. Waits until all its values are taken. */
static void take_payload(struct source *source, weir_text *text, bool is_wanted)
{
    while (source->left && await(source, POLLIN)) {
        size_t room = 0, count;
        char *to = source->parser->room(text, &room);
        if (!to)
            fail(source, "out of memory", "");
        count = to ? move_some(source, POLLIN, to, room < source->left ? room : source->left) : 0;
        bool is_taken = !count || !is_wanted || source->parser->parse(text, count);
        while (!is_taken && await(source, 0))
            is_taken = source->parser->resume(text);
    }
    while (!source->outcome->code && !source->parser->finish(text, true))
        await(source, 0);
}

static void take_message(struct source *source, int first)
{
    unsigned char ack[4] = {PUBACK, 2}, size[2] = {0};
    char topic[TEXT + 3];
    const weir_label label = {"topic", topic};
    weir_text_options options = {.size = sizeof options, .labels = &label, .label_count = 1};
    move_all(source, POLLIN, size, sizeof size);
    size_t length = (size_t)(size[0] << 8 | size[1]), id_length = first & QOS_1; /* 2, or 0 */
    if (!move_all(source, POLLIN, topic, length + id_length))
        return;
    memcpy(ack + 2, topic + length, id_length);
    topic[length] = '\0';
    if (source->options->topic == TOPIC_GROUP) {
        for (char *at = topic; (at = strchr(at, '/'));)
            *at = '.';
        options.group_prefix = topic + strspn(topic, ".");
        options.label_count = 0;
    }
    if (first & RETAINED) /* from before the subscription, and again with each one */
        source->host->count(source->host, "retained", 1);
    weir_text *text = source->parser->begin(source->host, topic, &options);
    if (!text)
        fail(source, "out of memory", "");
    take_payload(source, text, !(first & RETAINED));
    bool comes_again = source->outcome->code && id_length; /* so nothing is lost */
    (comes_again ? source->parser->cancel : source->parser->end)(text);
    move_all(source, POLLOUT, ack, id_length ? sizeof ack : 0);
}

static void take_packet(struct source *source)
{
    unsigned char head[2] = {0};
    source->left = HEAD;
    move_all(source, POLLIN, head, sizeof head);
    size_t length = head[1] & 127;
    for (int shift = 7; head[1] & 128 && move_all(source, POLLIN, &head[1], 1); shift += 7)
        length |= (size_t)(head[1] & 127) << shift;
    source->left = length;
    if (head[0] >> 4 == PUBLISH >> 4 && !(head[0] & QOS_2))
        take_message(source, head[0]);
    else if (head[0] == SUBACK && !source->is_subscribed)
        take_grants(source);
    else if (head[0] != PINGRESP)
        fail(source, "the broker has sent a packet that is not expected", "");
    if (source->left)
        fail(source, "the broker has sent a packet whose length does not fit", "");
}

static void open_source(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    const weir_connect what = {sizeof what, source->options->broker, CONNECT_MS, KINDS, 0};
    source->fd = source->connecting->connect(source->host, &what, outcome->reason, sizeof outcome->reason);
    outcome->code = source->fd < 0 ? WEIR_OUTCOME_RETRY : WEIR_OUTCOME_OK;
    source->heard_s = source->is_subscribed = 0;
}

static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    source->outcome = outcome;
    for (greet(source); await(source, POLLIN);)
        take_packet(source);
    if (!*outcome->reason) { /* a stop */
        outcome->code = WEIR_OUTCOME_OK;
        send(source->fd, (char[]){(char)DISCONNECT, 0}, 2, MSG_NOSIGNAL);
    }
}

static void abandon(void *self)
{
    const struct source *source = self;
    if (source->fd >= 0)
        close(source->fd);
}

static void close_source(void *self)
{
    abandon(self);
    ((struct source *)self)->fd = -1;
}

static const weir_source_type type = {
    .size = sizeof type,
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_TYPE_PARSES,
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
