/* weir - what the core offers to every plugin. Included by <weir/handler.h>. A plugin links to nothing: it
 * calls the core through the functions of its weir_host. */
#ifndef WEIR_HOST_H
#define WEIR_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of the contract of handler types; for source types, see <weir/source.h>. A plugin that was built
 * for another number is refused. See doc/abi.md. */
#define WEIR_ABI 1

/* Marks the entry point of a plugin, the only symbol that it exports. */
#if defined(__GNUC__)
#define WEIR_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define WEIR_PLUGIN_EXPORT
#endif

/* Lets the compiler check the arguments of a function that is like printf. */
#if defined(__GNUC__)
#define WEIR_PRINTF(format_index, arguments_index)                                                             \
    __attribute__((format(printf, format_index, arguments_index)))
#else
#define WEIR_PRINTF(format_index, arguments_index)
#endif

struct pollfd;            /* <poll.h> */
struct weir_handler_type; /* <weir/handler.h> */
struct weir_source_type;  /* <weir/source.h> */

/* The core, as one handler or source sees it. Each has its own host, valid from create until destroy has
 * returned; prepare gets one that is valid during that call only. Owned by the core and read-only. What follows
 * says "handler" for both; weir-source(7) lists what differs for sources.
 *
 * Threads: every function takes the host as its first argument and may be called from every callback except
 * abandon. log, count, wake_in, stopping and service may also be called from threads that the handler started
 * itself. None of them fails unless stated. */
typedef struct weir_host {
    size_t size;      /* sizeof(weir_host) of the core */
    uint32_t abi;     /* WEIR_ABI of the core; for a source, its WEIR_SOURCE_ABI */
    const char *name; /* the handler's name in the configuration; in prepare, the type's name */

    /* The type that this handler is an instance of: the pointer that weir_handler_type_at returned, or that was
     * given to weir_register_handler_type. NULL for a source. */
    const struct weir_handler_type *type;

    /* The same for a source: of weir_source_type_at or weir_register_source_type. NULL for a handler. */
    const struct weir_source_type *source_type;

    /* The context that was given to weir_register_handler_type or weir_register_source_type; NULL for a type of
     * a plugin. */
    void *context;

    /* Writes a message to weir's log, behind the handler's name. level: enum weir_log_level. Messages longer
     * than 1023 bytes are cut. */
    void (*log)(const struct weir_host *host, int level, const char *format, ...) WEIR_PRINTF(3, 4);

    /* [create, prepare] Sets the reason why the callback is about to fail. option: the name of the option at
     * fault, or "". The text names the value and what is allowed: "\"80a\" is not a port; allowed: 1..65535".
     * Ignored elsewhere. */
    void (*refuse)(const struct weir_host *host, const char *option, const char *format, ...) WEIR_PRINTF(3, 4);

    /* Adds n to a counter of the handler, shown beside its ledger and in the group "weir". name: like
     * "status.404", at most 47 bytes. A handler has at most 32 counters; further names are ignored. */
    void (*count)(const struct weir_host *host, const char *name, uint64_t n);

    /* Requests one call of wake, delay_ms from now. A later request replaces an earlier one; a negative delay
     * cancels it. close cancels it too. */
    void (*wake_in)(const struct weir_host *host, int64_t delay_ms);

    /* [worker] Sleeps for ms milliseconds. Returns false as soon as a stop is requested: then finish, as far as
     * the remaining time allows. A fork proceeds during the call, and values that fill the queue may be moved
     * to the spool, also with ms 0: a handler that waits by other means calls it from time to time. Returns
     * false at once in create and prepare. */
    bool (*wait)(const struct weir_host *host, int64_t ms);

    /* Whether a stop is requested. */
    bool (*stopping)(const struct weir_host *host);

    /* Returns the service of that name and revision (WEIR_SERVICE_*): a pointer to a constant struct, valid
     * until the process ends. NULL if this core does not have it, or if it does not apply to this handler. */
    const void *(*service)(const struct weir_host *host, const char *id);
} weir_host;

/* ---- Outcomes -------------------------------------------------------------------------------- */

/* What the core does next, whatever the cause. Which callback of a handler may return which code:
 *
 *            OK             RETRY                REOPEN                 DROP       FAILED
 *   open     it is open     back off, open       like RETRY             -          give up
 *   emit     next batch     back off, offer      close, back off,       drop       give up
 *                           the rest             open, offer the rest   the rest
 *   emit_now as emit; NOT_NOW: the worker calls emit with the rest, at once
 *   flush    it is flushed  back off, flush      close, back off, open  -          give up
 *   wake     continue       back off, continue   close, back off, open  -          give up
 *   probe    reachable      not reachable        not reachable          -          not reachable
 *
 * A code marked with - or an unknown one is counted as a fault of the handler, logged, and treated as RETRY;
 * for probe it means not reachable. After 10 faults in a row the core gives up.
 *
 * Of a source:
 *
 *          OK                            RETRY             REOPEN                   FAILED
 *   open   it is open                    back off, open    like RETRY               give up
 *   run    stop requested: it stops;     back off, run     close, back off, open    close, give up
 *          else: its input has ended
 *
 * Any other code is a fault of the source type, and treated as FAILED. */
enum weir_outcome_code {
    WEIR_OUTCOME_OK = 0,     /* success */
    WEIR_OUTCOME_RETRY = 1,  /* a failure that may pass; the connection is good */
    WEIR_OUTCOME_REOPEN = 2, /* a failure that may pass; the connection is not good */
    WEIR_OUTCOME_DROP = 3,   /* the rest of this batch can never be delivered; it is dropped as rejected */
    /* nothing can ever be delivered: the handler is closed until it is configured again or reloaded; spool and
     * journal keep and take its values, without either they are dropped */
    WEIR_OUTCOME_FAILED = 4,
    WEIR_OUTCOME_NOT_NOW = 5, /* emit_now only: the rest has to be delivered by emit; nothing has failed */
};

/* Bits of weir_outcome.flags. */
enum {
    /* RETRY and REOPEN of a handler: further attempts are of no use before the end. If the attempt was made
     * after a stop was requested, the stop ends with it: without a spool or a journal the values are dropped.
     */
    WEIR_OUTCOME_GIVES_UP = 1u << 0,
};

/* The result of a callback of a handler or a source. The core owns it, and sets it before the call: size, OK,
 * and 0 for the rest, but for `done` of emit and emit_now. Set only what differs. Never write beyond size. */
typedef struct weir_outcome {
    size_t size;    /* sizeof(weir_outcome) of the core */
    int32_t code;   /* enum weir_outcome_code */
    uint32_t flags; /* WEIR_OUTCOME_* bits */

    /* emit: how many samples at the front of the batch are settled: delivered, or refused for good. Not set:
     * the whole batch with OK, none with any other code; so set it, from 0 on, before you read it. Rounded down
     * to the end of an event. With OK and less than the whole batch, the core offers the rest again at once; OK
     * with nothing settled is counted as a fault and treated as RETRY. */
    uint32_t done;
    uint32_t rejected; /* emit: how many of those settled the destination refused for good */

    /* RETRY, REOPEN: the least number of milliseconds until the next attempt, as the destination requested; the
     * core waits longer where its own back-off is longer, and never longer than the option retry_max. 0 or
     * less: the core's back-off. Of a handler, weir_flush ends the wait. */
    int64_t retry_after_ms;

    /* Of a handler: the error, a negative enum weir_error of <weir/weir.h>, that calls return which wait for it
     * (delivery "sync", and weir_flush), with the reason as weir_last_error. 0: none of its own.
     *
     * With RETRY and REOPEN those calls return at once, and later calls do not wait, until open or emit returns
     * without an error; a later weir_flush waits for one more attempt. The values stay queued and are tried
     * again. Without an error the calls keep waiting: for block_timeout, and weir_flush for its own timeout.
     * With samples rejected, DROP and FAILED, the calls whose values are lost return this error instead of
     * WEIR_ERR_DROPPED. */
    int32_t error;

    char reason[256]; /* why, for people: "connect 127.0.0.1:8086: Connection refused"; "" with OK */
} weir_outcome;

/* ---- Services --------------------------------------------------------------------------------- */

/* Service "blocking_call/1", a weir_blocking_call: for plugins that wait in calls of their own, like poll(2).
 */
#define WEIR_SERVICE_BLOCKING_CALL "blocking_call/1"

/* Brackets around a call that waits; see WEIR_SERVICE_BLOCKING_CALL. */
typedef struct weir_blocking_call {
    size_t size; /* sizeof(weir_blocking_call) of the core */

    /* [worker] Call it before a call that waits, within a callback: a fork then proceeds without waiting for
     * it. Between begin and end do nothing but wait: in a child that is forked meanwhile, anything else is left
     * half done. Calls of begin do not nest. */
    void (*begin)(const weir_host *host);

    /* [worker] Call it after the call that waits. Returns when no fork is in progress. After a shutdown that
     * gave up on this thread it never returns. */
    void (*end)(const weir_host *host);

    /* How many milliseconds the running callback may still take before the core goes on without it. INT32_MAX:
     * that many or more, also of a stop without a limit. -1: the program does not end, and the handler is not
     * removed, so there is no limit. */
    int64_t (*remaining_ms)(const weir_host *host);
} weir_blocking_call;

/* What a wait for descriptors reports: bits. 0: the timeout. */
enum {
    WEIR_WAIT_READY = 1u << 0, /* a descriptor has an event: see its revents */
    /* sources only: after WEIR_ADD_FULL or a parser that is full, there may be room */
    WEIR_WAIT_ROOM = 1u << 1,
    WEIR_WAIT_STOP = 1u << 2, /* the callback has to return. Reported until then */
    /* sources only: the program has called weir_reload: reopen files. Reported once */
    WEIR_WAIT_RELOAD = 1u << 3,
};

/* Service "waiting/1", a weir_waiting: how a handler waits for descriptors, time and the end in one call.
 * Handlers only; sources have weir_intake.wait. */
#define WEIR_SERVICE_WAITING "waiting/1"

/* Waiting; see WEIR_SERVICE_WAITING. */
typedef struct weir_waiting {
    size_t size; /* sizeof(weir_waiting) of the core */

    /* [worker] Waits for an event of a descriptor, or for timeout_ms milliseconds (-1: no limit). fds are as
     * for poll(2), and their revents are set. Returns WEIR_WAIT_* bits. WEIR_WAIT_STOP: a stop is requested,
     * and the time that the core had left for this callback is over: return RETRY with what is not delivered.
     * As long as time is left, the call goes on waiting, so what the destination takes until then is not lost;
     * host->wait is for waits that a stop shall end at once. Forks proceed, and the spool goes on during the
     * call. Does not wait in create and prepare. */
    unsigned (*wait)(const weir_host *host, struct pollfd *fds, size_t count, int64_t timeout_ms);

    /* Returns the time that `wait` goes by, in milliseconds: CLOCK_MONOTONIC, or that of a test, see
     * <weir/test_clock.h>. Sources have <weir/test_source.h>. */
    int64_t (*now_ms)(const weir_host *host);
} weir_waiting;

/* Service "connecting/1", a weir_connecting: how a handler or a source connects a socket, so that it neither
 * resolves names nor waits for the connection itself. For handlers and sources. NULL for a type with the flag
 * WEIR_TYPE_SHARES_NOTHING: names are resolved by getaddrinfo(3). */
#define WEIR_SERVICE_CONNECTING "connecting/1"

/* What a text names that a socket is connected to: bits, one of the first four. */
enum {
    WEIR_CONNECT_TCP = 1u << 0,        /* tcp://HOST:PORT; HOST: a name, an IPv4 address, or [IPv6 address] */
    WEIR_CONNECT_UDP = 1u << 1,        /* udp://HOST:PORT */
    WEIR_CONNECT_UNIX = 1u << 2,       /* unix:/PATH: a stream */
    WEIR_CONNECT_UNIX_DGRAM = 1u << 3, /* unix-dgram:/PATH */
    WEIR_CONNECT_NAME = 1u << 4,       /* HOST is a name: each call of connect resolves it */
    WEIR_CONNECT_LOCAL = 1u << 5,      /* it is on this machine: a path, localhost or a loopback address */
};

/* What to connect to. Everything is borrowed during the call. Set size to sizeof(weir_connect), and to 0 what
 * is not given. */
typedef struct weir_connect {
    size_t size;        /* sizeof(weir_connect) */
    const char *to;     /* as the option `to` of the type socket: tcp://, udp://, unix: or unix-dgram: */
    int64_t timeout_ms; /* for all addresses of a name together; 0: only what connects at once */
    uint32_t kinds;     /* which of the first four WEIR_CONNECT_* are allowed; 0: all */
    uint32_t first;     /* the address of a name to try first: its index, modulo their number */
} weir_connect;

/* Connecting; see WEIR_SERVICE_CONNECTING. */
typedef struct weir_connecting {
    size_t size; /* sizeof(weir_connecting) of the core */

    /* [create] Reads a text without connecting to it. Returns what it names, WEIR_CONNECT_* bits; 0 after
     * host->refuse for that option. kinds: as in weir_connect. Elsewhere the same, but nothing is refused. */
    uint32_t (*check)(const weir_host *host, const char *option, const char *to, uint32_t kinds);

    /* [worker] or [source] Resolves the name, if it is one, and connects a socket: tries each address, which
     * gets its part of the time. Waits as weir_waiting.wait, and in a source as weir_intake.wait: a stop ends
     * it when that reports WEIR_WAIT_STOP, and forks proceed; but the name service is not interrupted, and has
     * limits of its own, see resolv.conf(5). Returns the descriptor, which the caller owns: connected,
     * non-blocking, close-on-exec, above 2; with TCP_NODELAY and SO_KEEPALIVE for TCP. Returns -1 with the
     * reason for people, which has no password: "connect 127.0.0.1:1: Connection refused". A child that is
     * forked during the call gets no descriptor of it; later ones are those of `abandon`. Not in create and
     * emit_now. */
    int (*connect)(const weir_host *host, const weir_connect *what, char *reason, size_t room);
} weir_connecting;

/* Service "numbers/1", a weir_numbers: numbers as text, in the same way whatever the locale of the program. For
 * handlers and sources. */
#define WEIR_SERVICE_NUMBERS "numbers/1"

enum { WEIR_NUMBER_ROOM = 32 }; /* bytes for the text of a number, with its NUL */

/* Doubles as text; see WEIR_SERVICE_NUMBERS. The members do not use the host, and neither allocate nor wait. */
typedef struct weir_numbers {
    size_t size; /* sizeof(weir_numbers) of the core */

    /* [any thread] Writes the fewest digits that are read as this double again, in the layout of Python's repr
     * without a final ".0": 49.403, 3, 1e+16, 1e-05, -0; "NaN", "Infinity", "-Infinity". out has
     * WEIR_NUMBER_ROOM bytes; a NUL follows. Returns the length. */
    size_t (*put)(const weir_host *host, char *out, double value);

    /* [any thread] Reads a text that is a decimal number as a whole: a "-", digits with a point among, before
     * or behind them, an exponent. Returns false, with *value unchanged, for anything else, and for what is
     * too large for a double. */
    bool (*read)(const weir_host *host, const char *text, double *value);
} weir_numbers;

/* Service "upstream/1", a weir_upstream: for types that link processes, so that a link that would bring values
 * back to where they come from is recognised. */
#define WEIR_SERVICE_UPSTREAM "upstream/1"

enum {
    WEIR_UPSTREAM_ID = 16,   /* bytes of what a type uses to identify a process */
    WEIR_UPSTREAM_MOST = 64, /* processes; further ones are not known */
};

/* The processes whose values come to this one; see WEIR_SERVICE_UPSTREAM. One set for the process, which all
 * plugins share. [any thread] */
typedef struct weir_upstream {
    size_t size; /* sizeof(weir_upstream) of the core */

    /* These processes send their values here, or to one that does: count ids, one after the other. depth:
     * through how many processes, this one included, values may have come that are delivered here. Remembered
     * for 10 seconds: to be repeated. */
    void (*add)(const weir_host *host, const uint8_t *ids, size_t count, unsigned depth);

    /* Copies at most room of the processes. Returns how many were copied. *depth: the largest one; 0: nothing
     * is received. */
    size_t (*get)(const weir_host *host, uint8_t *ids, size_t room, unsigned *depth);
} weir_upstream;

#ifdef __cplusplus
}
#endif

#endif
