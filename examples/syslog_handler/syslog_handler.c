/* syslog_handler: sends each value to the system log with syslog(3).
 *
 * Shows options, which are checked before the handler is created, and the core's encoder, which lets the user
 * choose the format. */

#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include <weir/handler.h>

struct options {
    const char *ident;
    int64_t facility, level;
};

/* In the order of the allowed strings below. */
static const int facilities[] = {LOG_USER,   LOG_DAEMON, LOG_LOCAL0, LOG_LOCAL1, LOG_LOCAL2,
                                 LOG_LOCAL3, LOG_LOCAL4, LOG_LOCAL5, LOG_LOCAL6, LOG_LOCAL7};
static const int levels[] = {LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARNING};

static const weir_option rows[] = {
    WEIR_OPTION_ROW("ident", STRING, 0, "weir", NULL, "the prefix of each line", struct options, ident),
    WEIR_OPTION_ROW("facility", ENUM, 0, "user",
                    "user|daemon|local0|local1|local2|local3|local4|local5|local6|local7",
                    "the syslog facility", struct options, facility),
    WEIR_OPTION_ROW("level", ENUM, 0, "info", "debug|info|notice|warning", "the syslog level of each line",
                    struct options, level),
    {0},
};

/* In a log, text is easier to read than JSON. */
static const weir_default defaults[] = {{"format", "text"}, {NULL, NULL}};

struct syslog_handler {
    const weir_host *host;
    const weir_encoder *encoder;
    const struct options *options;
};

static void *create(const weir_host *host, const void *options)
{
    struct syslog_handler *handler = malloc(sizeof *handler);
    if (!handler) {
        host->refuse(host, "", "out of memory");
        return NULL;
    }
    handler->host = host;
    handler->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    handler->options = options;
    return handler;
}

/* Sends the lines one at a time; the encoder returns them as one text. The ident of syslog(3) is global to the
 * process and belongs to the program, so the handler's ident is part of the line. syslog(3) does not report
 * whether a line arrived. */
static void send_lines(const struct syslog_handler *handler, const char *text, size_t length)
{
    const struct options *options = handler->options;
    int priority = facilities[options->facility] | levels[options->level];
    while (length) {
        const char *end = memchr(text, '\n', length);
        size_t line = end ? (size_t)(end - text) : length;
        syslog(priority, "%s: %.*s", options->ident, (int)line, text);
        line += end != NULL;
        text += line;
        length -= line;
    }
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    enum { CHUNK = 64 * 1024 };
    struct syslog_handler *handler = self;
    weir_encoded encoded;
    for (outcome->done = 0; outcome->done < batch->count; outcome->done += encoded.count) {
        if (!handler->encoder->encode(handler->host, batch, outcome->done, CHUNK, &encoded)) {
            outcome->code = WEIR_OUTCOME_RETRY;
            return;
        }
        send_lines(handler, encoded.data, encoded.length);
    }
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "syslog_handler",
    .summary = "sends values to the system log",
    .formats = WEIR_FORMAT_LINES,
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .defaults = defaults,
    .create = create,
    .emit = emit,
    .destroy = free,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
