/* redis_handler: appends each value to a Redis stream exactly once, with hiredis.
 *
 * Shows a destination without a unique key. A script, which Redis runs as one transaction, compares the numbers
 * of a batch with those that it has stored of the same origin, appends what is new, and stores the numbers. The
 * core connects and waits, so hiredis never blocks: a stop and a fork need not wait for the server. */

#include <hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>

enum {
    CHUNK = 1000, /* values in one call of the script, during which Redis does nothing else */
    KINDS = WEIR_CONNECT_TCP | WEIR_CONNECT_UNIX,
};

struct options {
    const char *address, *stream, *user, *password;
    int64_t length, remember_ns, timeout_ns;
};

static const weir_option rows[] = {
    WEIR_OPTION_ROW("address", STRING, WEIR_OPTION_DESTINATION, "tcp://127.0.0.1:6379", NULL,
                    "the server: tcp://HOST:PORT or unix:/PATH", struct options, address),
    WEIR_OPTION_ROW("stream", STRING, WEIR_OPTION_DESTINATION, "weir", NULL, "the key of the stream",
                    struct options, stream),
    WEIR_OPTION_ROW("user", STRING, 0, "default", NULL, "the user", struct options, user),
    WEIR_OPTION_ROW("password", STRING, WEIR_OPTION_SECRET, NULL, NULL, "the user's password", struct options,
                    password),
    WEIR_OPTION_ROW("length", INT, 0, "0", "0..1000000000000",
                    "about how many entries the stream keeps; the oldest are removed. 0: all", struct options,
                    length),
    WEIR_OPTION_ROW("remember", DURATION, 0, "30d", "1m..3650d",
                    "how long the numbers of an origin are kept after its last value", struct options,
                    remember_ns),
    WEIR_OPTION_ROW("timeout", DURATION, 0, "10s", "100ms..1h", "how long to wait for a reply of the server",
                    struct options, timeout_ns),
    {0},
};

static const char script[] =
#include "store_lua.h"
    ;

struct texts { /* of a value, that are not in the batch */
    char labels[24], time[24], value[WEIR_NUMBER_ROOM];
};

struct redis {
    const weir_host *host;
    const weir_connecting *connecting;
    const weir_waiting *waiting;
    const weir_numbers *numbers;
    const struct options *options;
    redisContext *context;
    int fd; /* the context's, for abandon; -1: none */
    char sha[41];
    struct texts texts[CHUNK];
    const char **words; /* the command */
    size_t count, room;
    bool failed; /* out of memory for it */
};

/* ---- Creating -------------------------------------------------------------------------------- */

static void *create(const weir_host *host, const void *options)
{
    const weir_connecting *connecting = host->service(host, WEIR_SERVICE_CONNECTING);
    struct redis *redis = NULL;
    if (!connecting)
        host->refuse(host, "", "it needs a newer version of weir: the service " WEIR_SERVICE_CONNECTING);
    else if (!connecting->check(host, "address", ((const struct options *)options)->address, KINDS))
        return NULL;
    else if (!(redis = calloc(1, sizeof *redis)))
        host->refuse(host, "", "out of memory");
    else
        *redis = (struct redis){
            .host = host,
            .connecting = connecting,
            .waiting = host->service(host, WEIR_SERVICE_WAITING),
            .numbers = host->service(host, WEIR_SERVICE_NUMBERS),
            .options = options,
            .fd = -1,
        };
    return redis;
}

static void destroy(void *self)
{
    struct redis *redis = self;
    free(redis->words);
    free(redis);
}

static void abandon(void *self)
{
    struct redis *redis = self;
    if (redis->fd >= 0)
        close(redis->fd);
}

static void close_it(void *self)
{
    struct redis *redis = self;
    if (!redis->context && redis->fd >= 0)
        close(redis->fd);
    redisFree(redis->context);
    redis->context = NULL;
    redis->fd = -1;
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void *fail(weir_outcome *outcome, const char *reason)
{
    outcome->code = WEIR_OUTCOME_REOPEN;
    snprintf(outcome->reason, sizeof outcome->reason, "%.200s", reason);
    return NULL;
}

static void add(struct redis *redis, const char *word)
{
    if (redis->count == redis->room) {
        size_t room = redis->room ? 2 * redis->room : 64;
        const char **words = realloc(redis->words, room * sizeof *words);
        redis->failed |= !words;
        if (!words)
            return;
        redis->words = words;
        redis->room = room;
    }
    redis->words[redis->count++] = word;
}

/* Sends the command. Returns its reply, which is not an error, or NULL with the outcome set. */
static redisReply *run(struct redis *redis, weir_outcome *outcome)
{
    redisContext *context = redis->context;
    int64_t end_ms = redis->waiting->now_ms(redis->host) + redis->options->timeout_ns / 1000000;
    void *reply = NULL;
    int is_sent = 0;
    bool failed =
        redis->failed || redisAppendCommandArgv(context, (int)redis->count, redis->words, NULL) != REDIS_OK;
    redis->count = 0;
    redis->failed = false;
    if (failed)
        return fail(outcome, "out of memory");
    while (redisBufferWrite(context, &is_sent) == REDIS_OK && redisGetReply(context, &reply) == REDIS_OK &&
           !reply) {
        int64_t left_ms = end_ms - redis->waiting->now_ms(redis->host);
        struct pollfd entry = {redis->fd, (short)(is_sent ? POLLIN : POLLIN | POLLOUT), 0};
        unsigned woke = redis->waiting->wait(redis->host, &entry, 1, left_ms > 0 ? left_ms : 0);
        if (woke & WEIR_WAIT_STOP)
            return fail(outcome, "stopped while waiting for the server");
        if (!(woke & WEIR_WAIT_READY))
            return fail(outcome, "no reply of the server");
        if (entry.revents & ~POLLOUT)
            redisBufferRead(context); /* its error is that of the next call */
    }
    redisReply *found = reply;
    if (!found)
        return fail(outcome, context->errstr);
    if (found->type != REDIS_REPLY_ERROR)
        return found;
    fail(outcome, found->str);
    freeReplyObject(found);
    return NULL;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static bool run_words(struct redis *redis, const char *const *words, weir_outcome *outcome)
{
    for (; *words; words++)
        add(redis, *words);
    redisReply *reply = run(redis, outcome);
    if (reply && reply->type == REDIS_REPLY_STRING) /* of SCRIPT LOAD */
        snprintf(redis->sha, sizeof redis->sha, "%s", reply->str);
    bool is_done = reply;
    freeReplyObject(reply);
    return is_done;
}

static bool greet(struct redis *redis, weir_outcome *outcome)
{
    const char *login[] = {"AUTH", redis->options->user, redis->options->password, NULL};
    const char *load[] = {"SCRIPT", "LOAD", script, NULL};
    redis->context->flags &= ~REDIS_BLOCK;
    return (!redis->options->password || run_words(redis, login, outcome)) && run_words(redis, load, outcome);
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct redis *redis = self;
    const struct options *options = redis->options;
    const weir_connect what = {sizeof what, options->address, options->timeout_ns / 1000000, KINDS, 0};
    redis->fd = redis->connecting->connect(redis->host, &what, outcome->reason, sizeof outcome->reason);
    if (redis->fd >= 0 && !(redis->context = redisConnectFd(redis->fd)))
        fail(outcome, "out of memory");
    if (redis->context && greet(redis, outcome))
        return;
    outcome->code = WEIR_OUTCOME_RETRY;
    close_it(redis);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

static void add_labels(struct redis *redis, const weir_label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add(redis, labels[i].key);
        add(redis, labels[i].value);
    }
}

static void add_sample(struct redis *redis, const weir_batch *batch, const weir_sample *sample,
                       struct texts *texts)
{
    const weir_series *series = weir_batch_series(batch, sample);
    size_t count;
    const weir_label *labels = weir_batch_labels(batch, series, &count);
    if (sample->kind == WEIR_KIND_INT)
        snprintf(texts->value, sizeof texts->value, "%" PRId64, sample->value.i64);
    else
        redis->numbers->put(redis->host, texts->value, sample->value.f64);
    snprintf(texts->time, sizeof texts->time, "%" PRId64, sample->time_ns);
    snprintf(texts->labels, sizeof texts->labels, "%zu", series->label_count + count);
    add(redis, texts->labels);
    add(redis, texts->time);
    add(redis, series->group);
    add(redis, series->name);
    add(redis, texts->value);
    add(redis, sample->note ? batch->notes[sample->note] : "");
    add_labels(redis, series->labels, series->label_count);
    add_labels(redis, labels, count);
}

/* Returns false with the outcome set. */
static bool store(struct redis *redis, const weir_batch *batch, uint32_t start, uint32_t end,
                  weir_outcome *outcome)
{
    char ranges[64], first[24], length[24], remember[24];
    const struct options *options = redis->options;
    snprintf(ranges, sizeof ranges, "weir:origin:%s", batch->origin);
    snprintf(first, sizeof first, "%" PRIu64, batch->sequence + start);
    snprintf(length, sizeof length, "%" PRId64, options->length ? options->length : INT64_MAX);
    snprintf(remember, sizeof remember, "%" PRId64, options->remember_ns / 1000000);
    const char *head[] = {"EVALSHA", redis->sha,    "2",    options->stream, ranges,
                          first,     batch->origin, length, remember};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        add(redis, head[i]);
    for (uint32_t i = start; i < end; i++)
        add_sample(redis, batch, &batch->samples[i], &redis->texts[i - start]);
    redisReply *reply = run(redis, outcome);
    if (!reply)
        return false;
    if (reply->integer > 0)
        redis->host->count(redis->host, "repeats", (uint64_t)reply->integer);
    freeReplyObject(reply);
    return true;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    outcome->done = 0;
    while (outcome->done < batch->count) {
        uint32_t left = batch->count - outcome->done;
        uint32_t end = outcome->done + (left < CHUNK ? left : CHUNK);
        if (!store(self, batch, outcome->done, end, outcome))
            return;
        outcome->done = end;
    }
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "redis_handler",
    .summary = "appends values to a Redis stream, each exactly once",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .create = create,
    .open = open_it,
    .emit = emit,
    .close = close_it,
    .destroy = destroy,
    .abandon = abandon,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
