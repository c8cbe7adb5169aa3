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

/* The number of the contract. A plugin that was built for another number is refused. Stable since 1: see
 * doc/abi.md. */
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

struct weir_handler_type; /* <weir/handler.h> */

/* The core, as one handler sees it. Each handler has its own host, valid from create until destroy has
 * returned; prepare gets one that is valid during that call only. Owned by the core and read-only.
 *
 * Threads: every function takes the host as its first argument and may be called from every callback except
 * abandon. log, count, wake_in, stopping and service may also be called from threads that the handler started
 * itself. None of them fails unless stated. */
typedef struct weir_host {
    size_t size;      /* sizeof(weir_host) of the core */
    uint32_t abi;     /* WEIR_ABI of the core */
    const char *name; /* the handler's name in the configuration; in prepare, the type's name */

    /* The type that this handler is an instance of: the pointer that weir_handler_type_at returned, or that was
     * given to weir_register_handler_type. */
    const struct weir_handler_type *type;

    /* The context that was given to weir_register_handler_type; NULL for a type of a plugin. */
    void *context;

    /* Writes a message to weir's log, behind the handler's name. level: enum weir_log_level. Messages longer
     * than 1023 bytes are cut. */
    void (*log)(const struct weir_host *host, int level, const char *format, ...) WEIR_PRINTF(3, 4);

    /* [create, prepare] Sets the reason why the callback is about to fail. option: the name of the option at
     * fault, or "". The text names the value and what is allowed: "\"80a\" is not a port; allowed: 1..65535".
     * Ignored elsewhere. */
    void (*refuse)(const struct weir_host *host, const char *option, const char *format, ...) WEIR_PRINTF(3, 4);

    /* Adds n to a counter of the handler, shown beside its ledger. name: like "status.404", at most 47
     * bytes. A handler has at most 32 counters; further names are ignored. */
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

    /* How many milliseconds the running callback may still take before the core goes on without it. -1: no stop
     * is requested, so there is no limit. */
    int64_t (*remaining_ms)(const weir_host *host);
} weir_blocking_call;

#ifdef __cplusplus
}
#endif

#endif
