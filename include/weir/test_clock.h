/* weir - a host with a clock of its own, for unit tests of handler types: time passes without waiting.
 *
 * A test is a program that is linked with the plugin's C file, initializes a weir_test_clock, and calls the
 * callbacks of the handler type with it as their host. The clock stands still but for the waits of
 * host->wait and of the service "waiting/1": such a wait ends at once, and the clock is later by its timeout.
 * What the destination does meanwhile, the test does in on_wait. Nothing here links to a library, and nothing
 * is thread-safe. */
#ifndef WEIR_TEST_CLOCK_H
#define WEIR_TEST_CLOCK_H

#include <locale.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/host.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A host and its clock. Owned by the test; it must not be moved while a handler has it. */
typedef struct weir_test_clock {
    weir_host host;   /* give &clock->host to create */
    int64_t now_ms;   /* from 0 */
    int64_t stop_ms;  /* when a stop is requested; negative: never */
    int64_t end_ms;   /* when the time that is left then is over; negative: never */
    uint64_t waits;   /* waits for which nothing was ready */
    char reason[256]; /* the text of the last refusal */

    /* Called by each wait for which nothing is ready, before time passes: the peer's part. NULL: none. */
    void (*on_wait)(struct weir_test_clock *clock);

    /* Called by "connecting/1" to connect: returns a descriptor that the handler then owns, such as one end of
     * socketpair(2) with SOCK_NONBLOCK; or -1, with the reason written. NULL: every connection is refused. */
    int (*on_connect)(struct weir_test_clock *clock, const weir_connect *what, char *reason, size_t room);

    /* The services that the handler needs besides waiting, such as an encoder of the test's. NULL: none. */
    const void *(*service)(const weir_host *host, const char *id);
    void *context; /* of the test */
} weir_test_clock;

/* Returns the clock of a host. */
static inline weir_test_clock *weir_test_clock_of(const weir_host *host)
{
    return (weir_test_clock *)(uintptr_t)host; /* its first member */
}

/* ---- What the host does ---------------------------------------------------------------------- */

/* Lets time pass, until end_ms at most (negative: no limit). Returns whether it stopped there. */
static inline bool weir_test_clock_pass(weir_test_clock *clock, int64_t ms, int64_t end_ms)
{
    bool is_over = end_ms >= 0 && (ms < 0 || clock->now_ms + ms >= end_ms);
    if (is_over && clock->now_ms < end_ms)
        clock->now_ms = end_ms;
    else if (!is_over && ms > 0)
        clock->now_ms += ms;
    return is_over;
}

/* As weir_waiting.wait: returns at once. A wait without a limit that nothing ends returns WEIR_WAIT_STOP. */
static inline unsigned weir_test_clock_wait_for(const weir_host *host, struct pollfd *fds, size_t count,
                                                int64_t timeout_ms)
{
    weir_test_clock *clock = weir_test_clock_of(host);
    bool is_over = clock->end_ms >= 0 && clock->now_ms >= clock->end_ms;
    if (poll(fds, (nfds_t)count, 0) > 0)
        return WEIR_WAIT_READY | (is_over ? (unsigned)WEIR_WAIT_STOP : 0u);
    clock->waits++;
    if (clock->on_wait)
        clock->on_wait(clock);
    if (poll(fds, (nfds_t)count, 0) > 0)
        return WEIR_WAIT_READY | (is_over ? (unsigned)WEIR_WAIT_STOP : 0u);
    if (weir_test_clock_pass(clock, timeout_ms, clock->end_ms) || timeout_ms < 0)
        return WEIR_WAIT_STOP;
    return 0;
}

/* As weir_waiting.now_ms. */
static inline int64_t weir_test_clock_now(const weir_host *host)
{
    return weir_test_clock_of(host)->now_ms;
}

/* As host->wait: returns at once. */
static inline bool weir_test_clock_wait(const weir_host *host, int64_t ms)
{
    weir_test_clock *clock = weir_test_clock_of(host);
    clock->waits++;
    if (clock->on_wait)
        clock->on_wait(clock);
    return !weir_test_clock_pass(clock, ms < 0 ? 0 : ms, clock->stop_ms);
}

/* As host->stopping: whether it is stop_ms or later. */
static inline bool weir_test_clock_stopping(const weir_host *host)
{
    const weir_test_clock *clock = weir_test_clock_of(host);
    return clock->stop_ms >= 0 && clock->now_ms >= clock->stop_ms;
}

/* As host->log: the message is discarded. */
static inline void weir_test_clock_log(const weir_host *host, int level, const char *format, ...)
{
    (void)host;
    (void)level;
    (void)format;
}

/* As host->refuse: the text is in `reason`. */
static inline void weir_test_clock_refuse(const weir_host *host, const char *option, const char *format, ...)
{
    weir_test_clock *clock = weir_test_clock_of(host);
    va_list arguments;
    (void)option;
    va_start(arguments, format);
    vsnprintf(clock->reason, sizeof clock->reason, format, arguments);
    va_end(arguments);
}

/* As host->count: does nothing. */
static inline void weir_test_clock_count(const weir_host *host, const char *name, uint64_t n)
{
    (void)host;
    (void)name;
    (void)n;
}

/* As host->wake_in: does nothing. */
static inline void weir_test_clock_wake_in(const weir_host *host, int64_t delay_ms)
{
    (void)host;
    (void)delay_ms;
}

/* ---- The service connecting/1 ---------------------------------------------------------------- */

/* As weir_connecting.check, but of what follows the scheme nothing is read. */
static inline uint32_t weir_test_clock_check(const weir_host *host, const char *option, const char *to,
                                             uint32_t kinds)
{
    static const struct {
        const char *scheme;
        uint32_t kind;
    } schemes[] = {
        {"tcp://", WEIR_CONNECT_TCP},
        {"udp://", WEIR_CONNECT_UDP},
        {"unix:", WEIR_CONNECT_UNIX},
        {"unix-dgram:", WEIR_CONNECT_UNIX_DGRAM},
    };
    size_t i;
    for (i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if ((!kinds || kinds & schemes[i].kind) &&
            strncmp(to, schemes[i].scheme, strlen(schemes[i].scheme)) == 0)
            return schemes[i].kind;
    host->refuse(host, option, "\"%s\" has no scheme that is known", to);
    return 0;
}

/* As weir_connecting.connect: by on_connect. */
static inline int weir_test_clock_connect(const weir_host *host, const weir_connect *what, char *reason,
                                          size_t room)
{
    weir_test_clock *clock = weir_test_clock_of(host);
    if (clock->on_connect)
        return clock->on_connect(clock, what, reason, room);
    snprintf(reason, room, "connect %s: Connection refused", what->to);
    return -1;
}

/* ---- The service numbers/1 ------------------------------------------------------------------- */

/* Keeps the digits of a text that printf has written by "%.*e", in whatever locale, without zeros at the end.
 * Returns the decimal exponent. */
static inline int weir_test_clock_keep_digits(char *digits, const char *text)
{
    size_t count = 0;
    for (; *text != 'e'; text++)
        if (*text >= '0' && *text <= '9')
            digits[count++] = *text;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    return atoi(text + 1);
}

/* As weir_numbers.put. */
static inline size_t weir_test_clock_put_number(const weir_host *host, char *out, double value)
{
    char text[64], digits[64];
    int precision = 0, exponent, count;
    const char *sign;
    (void)host;
    if (value != value || value - value != 0)
        return (size_t)sprintf(out, "%s", value != value ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
    do
        snprintf(text, sizeof text, "%.*e", precision, value);
    while (strtod(text, NULL) != value && ++precision < 17);
    sign = *text == '-' ? "-" : "";
    exponent = weir_test_clock_keep_digits(digits, text);
    count = (int)strlen(digits);
    if (exponent < -4 || exponent >= 16)
        return (size_t)sprintf(out, "%s%c%s%se%+03d", sign, *digits, count > 1 ? "." : "", digits + 1,
                               exponent);
    if (exponent < 0)
        return (size_t)sprintf(out, "%s0.%.*s%s", sign, -exponent - 1, "000", digits);
    if (exponent >= count - 1)
        return (size_t)sprintf(out, "%s%s%.*s", sign, digits, exponent + 1 - count, "000000000000000");
    return (size_t)sprintf(out, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}

/* Whether strtod reads the text, with its decimal point at *point, in the locale "C" and takes it for a decimal
 * number. NULL: it has no point. */
static inline bool weir_test_clock_is_number(const char *text, const char **point)
{
    size_t digits;
    text += *text == '-';
    digits = strspn(text, "0123456789");
    text += digits;
    *point = *text == '.' ? text : NULL;
    if (*point) {
        size_t decimals = strspn(++text, "0123456789");
        digits += decimals;
        text += decimals;
    }
    if (digits && (*text == 'e' || *text == 'E')) {
        text++;
        text += *text == '-' || *text == '+';
        digits = strspn(text, "0123456789");
        text += digits;
    }
    return digits && !*text;
}

/* As weir_numbers.read, of at most 1,000 bytes. */
static inline bool weir_test_clock_read_number(const weir_host *host, const char *text, double *value)
{
    char local[1100];
    const char *point;
    double number;
    (void)host;
    if (strlen(text) > 1000 || !weir_test_clock_is_number(text, &point))
        return false;
    if (point)
        snprintf(local, sizeof local, "%.*s%s%s", (int)(point - text), text, localeconv()->decimal_point,
                 point + 1);
    number = strtod(point ? local : text, NULL);
    if (number - number != 0)
        return false;
    *value = number;
    return true;
}

/* As host->service: the services "waiting/1", "connecting/1" and "numbers/1", and those of the test. */
static inline const void *weir_test_clock_service(const weir_host *host, const char *id)
{
    static const weir_waiting waiting = {sizeof(weir_waiting), weir_test_clock_wait_for, weir_test_clock_now};
    static const weir_numbers numbers = {sizeof(weir_numbers), weir_test_clock_put_number,
                                         weir_test_clock_read_number};
    static const weir_connecting connecting = {sizeof(weir_connecting), weir_test_clock_check,
                                               weir_test_clock_connect};
    const weir_test_clock *clock = weir_test_clock_of(host);
    if (strcmp(id, WEIR_SERVICE_WAITING) == 0)
        return &waiting;
    if (strcmp(id, WEIR_SERVICE_CONNECTING) == 0)
        return &connecting;
    if (strcmp(id, WEIR_SERVICE_NUMBERS) == 0)
        return &numbers;
    return clock->service ? clock->service(host, id) : NULL;
}

/* ---- Making one ------------------------------------------------------------------------------ */

/* Initializes a clock at 0, at which no stop is ever requested. type: the handler type under test, or NULL.
 * name: of the handler; borrowed. */
static inline void weir_test_clock_init(weir_test_clock *clock, const struct weir_handler_type *type,
                                        const char *name)
{
    memset(clock, 0, sizeof *clock);
    clock->stop_ms = clock->end_ms = -1;
    clock->host.size = sizeof clock->host;
    clock->host.abi = WEIR_ABI;
    clock->host.name = name;
    clock->host.type = type;
    clock->host.log = weir_test_clock_log;
    clock->host.refuse = weir_test_clock_refuse;
    clock->host.count = weir_test_clock_count;
    clock->host.wake_in = weir_test_clock_wake_in;
    clock->host.wait = weir_test_clock_wait;
    clock->host.stopping = weir_test_clock_stopping;
    clock->host.service = weir_test_clock_service;
}

#ifdef __cplusplus
}
#endif

#endif
