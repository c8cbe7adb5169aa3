/* weir - the contract for source types: everything that a plugin needs which reads values from elsewhere. It
 * links to nothing.
 *
 * A source type is to a program's values what a handler type is to its destinations; read <weir/handler.h>
 * beside this. A plugin is a shared object NAME.source.so, in weir's plugin folder or wherever a configuration
 * points to, that exports one symbol:
 *
 *     const weir_source_type *weir_source_type_at(uint32_t index);
 *
 * It returns the plugin's source types for the indexes 0, 1, 2 and so on, then NULL. The core owns the thread,
 * the retries, the limits, the labels and the counters, and parses text. A source type implements how to
 * create, open, run, close and destroy.
 *
 * Life of a source (an instance of a type, with its options):
 *
 *     create --> [open --> run* --> close]* --> destroy
 *
 * Threads: [configuring] is any thread that configures weir, or that starts or stops sources; it has at least
 * 256 KiB of stack. [source] is the source's own thread: it alone calls open, run and close, never two at a
 * time. It has all signals blocked, and at least 1 MiB of stack. [fork] is a child process, before fork()
 * returns in it. [check] is a thread of `weir check --open`, where the source has no thread.
 *
 * The rule of run: it waits in weir_intake.wait alone, and returns when that reports WEIR_WAIT_STOP; the
 * service "connecting/1" of <weir/host.h> waits in it too. Adding never waits: what finds no room is offered
 * again after the next wait, and meanwhile nothing more is read, so that the pipe or the connection slows down
 * its writer. */
#ifndef WEIR_SOURCE_H
#define WEIR_SOURCE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/host.h>
#include <weir/options.h>
#include <weir/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of the contract of source types, which grows apart from WEIR_ABI of handler types. A plugin that
 * was built for another number is refused. */
#define WEIR_SOURCE_ABI 1

/* ---- Adding ---------------------------------------------------------------------------------- */

/* Bits of weir_record.flags. */
enum {
    WEIR_RECORD_CUMULATIVE = 1u << 0, /* the values are running totals */
    WEIR_RECORD_CHANGE = 1u << 1,     /* of a gauge: the value is added to its level */
};

/* One event: values that belong together. Everything is borrowed during the call. Set size to
 * sizeof(weir_record), and to 0 what is not known. What is not allowed below is refused and counted. */
typedef struct weir_record {
    size_t size;                    /* sizeof(weir_record) */
    const char *group;              /* NULL: the source's option "group" */
    const weir_label *labels;       /* the source's own labels take precedence */
    size_t label_count;             /* number of labels */
    const weir_typed_value *values; /* doubles and integers */
    size_t count;                   /* 1 to 1024 */
    int64_t time_ns;                /* nanoseconds since 1970-01-01 UTC; 0: now */
    int32_t instrument;             /* enum weir_instrument of the names, which must not have another one */
    uint32_t flags;                 /* WEIR_RECORD_* */
    double sample_rate;             /* 0 to 1; of counters: the values are divided by it; 0 is 1 */
    const char *unit;               /* of the names, as for weir_describe */
    const char *help;               /* the same */
    const char *metadata;           /* valid UTF-8 of at most 32736 bytes; only with a count of 1 */
} weir_record;

/* What became of a record. */
enum weir_add_result {
    WEIR_ADD_TAKEN = 0,   /* all its values are added */
    WEIR_ADD_FULL = 1,    /* there is no room, whatever the handlers' `overflow` is: nothing is added; wait, and
                             add the same record again */
    WEIR_ADD_REFUSED = 2, /* a name, label or value is not allowed, or a limit is reached: counted and logged */
};

/* Service "intake/1", a weir_intake: how a source adds what it reads. Sources only. */
#define WEIR_SERVICE_INTAKE "intake/1"

/* Adding and waiting; see WEIR_SERVICE_INTAKE. */
typedef struct weir_intake {
    size_t size; /* sizeof(weir_intake) of the core */

    /* [source] Adds an event. Never waits. Returns enum weir_add_result. */
    int (*add)(const weir_host *host, const weir_record *record);

    /* [source] Waits for an event of a descriptor, for room if something found none, for a stop, or for
     * timeout_ms milliseconds (-1: no limit). fds are as for poll(2), and their revents are set; at most 1024:
     * a source with more waits for an epoll descriptor. Returns WEIR_WAIT_* bits; may return 0 early. */
    unsigned (*wait)(const weir_host *host, struct pollfd *fds, size_t count, int64_t timeout_ms);

    /* [source] Counts n values that were read and cannot be added, and logs the first message in full; where:
     * what it came from, such as an address, or "". */
    void (*refuse)(const weir_host *host, uint64_t n, const char *where, const char *format, ...)
        WEIR_PRINTF(4, 5);

    /* [source] Returns a mark for everything that the source has added so far, to be asked for by settled.
     * Marks ascend; one that is not asked for costs nothing. */
    uint64_t (*mark)(const weir_host *host);

    /* [source] Returns enum weir_mark_state: what became of everything that was added before the mark. A mark
     * that is answered with DELIVERED or DROPPED is forgotten, as are all before it. Never waits for handlers,
     * and hurries none: a source asks again after a timeout of its wait, such as every second. The result may
     * come later than what it is about, with that of values that were added until it was asked for the first
     * time. Of more than 64 pending marks that were asked for, those from the 64th on are settled together,
     * with the latest of them. Of a handler with the option "aggregate", values are settled with the summaries
     * of their interval: until then they are STORED if there is a journal, and PENDING if not. */
    int (*settled)(const weir_host *host, uint64_t mark);
} weir_intake;

/* What became of what was added before a mark. */
enum weir_mark_state {
    WEIR_MARK_PENDING = 0,   /* some of it is only in memory */
    WEIR_MARK_STORED = 1,    /* all is delivered, or on disk: in a spool or a journal */
    WEIR_MARK_DELIVERED = 2, /* all handlers that it is routed to have delivered it */
    WEIR_MARK_DROPPED = 3,   /* nothing is pending, and a handler that it is routed to has dropped values
                                meanwhile, its own or others */
};

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Service "blocks/1", a weir_blocks: how a source adds samples that have an identity, so that what is sent
 * again is added once. Sources only.
 *
 * An origin is a sender's name for a sequence of samples that it numbers: see weir_batch of <weir/handler.h>.
 * The core remembers, for each origin, the numbers that were taken last, for 24 hours; with settings.journal
 * also beyond the end of the process, however it ends. A repeat may be added again if there are more than
 * 100,000 origins, if the numbers of one have more than three gaps, or after a kill while the journal had no
 * space. What was not added is never treated as a repeat. */
#define WEIR_SERVICE_BLOCKS "blocks/1"

/* A series that a source has resolved. Valid until the process ends. */
typedef struct weir_source_series weir_source_series;

/* A sample of a block. This struct never changes. */
typedef struct weir_block_sample {
    const weir_source_series *series; /* of the same source */
    int64_t time_ns;                  /* nanoseconds since 1970-01-01 UTC */
    uint16_t kind;                    /* WEIR_KIND_DOUBLE or WEIR_KIND_INT */
    uint16_t flags;                   /* WEIR_SAMPLE_MORE: the next sample is of the same event */
    uint32_t text_length;             /* of its metadata; 0: none */
    union {
        double f64;
        int64_t i64;
    } value;          /* the member that kind names */
    const char *text; /* valid UTF-8 */
} weir_block_sample;

/* Consecutive samples of one origin: whole events. Everything is borrowed during the call. */
typedef struct weir_block {
    size_t size;                      /* sizeof(weir_block) */
    const char *origin;               /* 32 lowercase hexadecimal digits */
    uint64_t sequence;                /* the first sample's number; samples[i] has the number sequence + i */
    const weir_block_sample *samples; /* that may be added: their series are not NULL */
    size_t count;                     /* at most WEIR_BLOCK_SLOTS, less one for each 32 bytes of metadata */
} weir_block;

enum { WEIR_BLOCK_SLOTS = 1000 };

/* Adding blocks; see WEIR_SERVICE_BLOCKS. */
typedef struct weir_blocks {
    size_t size; /* sizeof(weir_blocks) of the core */

    /* [source] Finds or makes the series of a record with one value, whose value and time are not used. The
     * source's options (labels, group_prefix, series_limit) apply. NULL: it is refused, which is logged; the
     * caller counts its samples with weir_intake.refuse. */
    const weir_source_series *(*resolve)(const weir_host *host, const weir_record *record);

    /* [source] Which of the numbers from first to end - 1 of an origin were not taken yet: sets *missing to the
     * lowest one, and *missing_end to the end of the numbers from there that are missing too. Returns false if
     * all were taken. */
    bool (*missing)(const weir_host *host, const char *origin, uint64_t first, uint64_t end, uint64_t *missing,
                    uint64_t *missing_end);

    /* [source] Adds a block, all of it or nothing, in one step with its numbers. The caller has asked
     * `missing`. Never waits. Returns WEIR_ADD_TAKEN, or WEIR_ADD_FULL: wait for room, and add it again.
     * Samples that are refused all the same are counted: with WEIR_ADD_TAKEN, *refused is how many, unless
     * refused is NULL. WEIR_ADD_REFUSED: the block itself is not allowed, and nothing is added. */
    int (*add)(const weir_host *host, const weir_block *block, uint64_t *refused);

    /* [source] The sender has ended and sends nothing of this origin again: forgets its numbers. */
    void (*forget)(const weir_host *host, const char *origin);

    /* [source] Whether the numbers of what is added now survive the process: there is a journal, and it has
     * space. Whether the samples do, tells weir_intake.settled. */
    bool (*is_stored)(const weir_host *host);

    /* [source] Returns a mark, as weir_intake.mark, for a block of which something was taken before, perhaps by
     * another source of the process: it is for everything that the process has been given by now. */
    uint64_t (*mark_repeat)(const weir_host *host);
} weir_blocks;

/* ---- Senders --------------------------------------------------------------------------------- */

/* Service "senders/1", a weir_senders: what processes that send their values here say about them, for `weir
 * status`. Sources only. */
#define WEIR_SERVICE_SENDERS "senders/1"

/* How a sender is connected. */
enum weir_sender_state {
    WEIR_SENDER_CONNECTED = 0,
    WEIR_SENDER_ENDED = 1,    /* it has reported its last counts */
    WEIR_SENDER_VANISHED = 2, /* it has not, so its counts are the least that there may be */
};

/* A sender, or several with the same name that have ended. In values. This struct never changes. */
typedef struct weir_sender {
    const char *name;   /* valid UTF-8; its first 127 bytes are shown */
    uint64_t processes; /* how many senders it is; 0 is 1 */
    uint64_t added;     /* by the sender's count: added there */
    uint64_t recovered; /* the same: left by an earlier process and taken over there */
    uint64_t delivered; /* of both, acknowledged to it */
    uint64_t lost;      /* of both, dropped there. The rest waits there */
    uint64_t received;  /* by the receiver's count: received here, each once */
    uint64_t repeats;   /* received again */
    uint64_t missing;   /* sent on a connection by the sender's count, and not received on it */
    uint32_t state;     /* enum weir_sender_state */
    uint32_t reserved;  /* 0 */
} weir_sender;

/* Showing senders; see WEIR_SERVICE_SENDERS. */
typedef struct weir_senders {
    size_t size; /* sizeof(weir_senders) of the core */

    /* [source] Replaces what was shown before. The senders are copied; those beyond the first 63 are shown
     * as one. */
    void (*show)(const weir_host *host, const weir_sender *senders, size_t count);
} weir_senders;

/* ---- The process ----------------------------------------------------------------------------- */

/* Service "status/1", a weir_status: the state of the whole process, for sources that show it to people.
 * Sources only. */
#define WEIR_SERVICE_STATUS "status/1"

/* The state of the process; see WEIR_SERVICE_STATUS. */
typedef struct weir_status {
    size_t size; /* sizeof(weir_status) of the core */

    /* [source] Returns a JSON object as `weir status --json` prints it, with handlers, sources and senders. The
     * caller frees it by `release`. NULL: out of memory. */
    char *(*read)(const weir_host *host);

    /* [source] Frees what `read` has returned; NULL is allowed. */
    void (*release)(char *text);
} weir_status;

/* ---- Parsing --------------------------------------------------------------------------------- */

/* Service "parser/1", a weir_parser: turns text into records as the source's option `parse` names it, and adds
 * them. NULL for a type that does not have the flag for text. */
#define WEIR_SERVICE_PARSER "parser/1"

/* A text that is being parsed: one for each pipe, file or connection. */
typedef struct weir_text weir_text;

/* What holds for one text, beyond the options of its source. Everything is borrowed until the text ends. Set
 * size to sizeof(weir_text_options), and to 0 what is not given. */
typedef struct weir_text_options {
    size_t size;              /* sizeof(weir_text_options) */
    const char *parse;        /* the parser, as in the option `parse`; NULL: that option */
    int64_t time_unit_ns;     /* of the times of "influx", in nanoseconds; 0: the option `time_unit` */
    const char *group_prefix; /* precedes all groups, behind the source's own; NULL: none */
    const weir_label *labels; /* replace those of the same keys that values have; the source's replace these */
    size_t label_count;       /* number of labels */
    uint64_t *series_left; /* how many series may be made, counted down, and up when one expires: it stays until
                              `close`; NULL: as many as the source may */
} weir_text_options;

/* What became of a text so far. Set size to sizeof(weir_text_totals). */
typedef struct weir_text_totals {
    size_t size;        /* sizeof(weir_text_totals) */
    uint64_t lines;     /* lines that were read, without empty ones */
    uint64_t bad_lines; /* faults of lines that cannot be parsed */
    uint64_t added;     /* values */
    uint64_t refused;   /* values that were understood and are not allowed */
    const char *fault;  /* the first fault, for people; "": none. Valid until the text ends */
    /* bytes behind the last record that was read to its end; a record may have several lines */
    uint64_t pending;
} weir_text_totals;

/* Parsing; see WEIR_SERVICE_PARSER. */
typedef struct weir_parser {
    size_t size; /* sizeof(weir_parser) of the core */

    /* [source] Begins a text. where: what it comes from, for messages; copied. options: its own, or NULL.
     * Returns NULL if out of memory, or if there is no such parser. */
    weir_text *(*begin)(const weir_host *host, const char *where, const weir_text_options *options);

    /* [source] Returns where the next bytes belong, and how many at most. NULL: out of memory. */
    char *(*room)(weir_text *text, size_t *room);

    /* [source] Parses `length` bytes that were written there, line by line, and adds what is complete. Lines
     * that cannot be parsed are counted, and the first is logged. Returns false if there is no room for a
     * record: then wait, and call resume until it returns true. */
    bool (*parse)(weir_text *text, size_t length);

    /* [source] Goes on with what was written before. Returns as parse. */
    bool (*resume)(weir_text *text);

    /* [source] The text ends: parses a last line without a newline. A text that goes on later, such as that of
     * the next writer of a pipe, begins anew. Returns false if there is no room for a record: then wait, and
     * call it again until it returns true. is_whole: without it, such a line is torn: it is counted as a line
     * that cannot be parsed. */
    bool (*finish)(weir_text *text, bool is_whole);

    /* [source] Fills the totals, up to their size. */
    void (*read_totals)(const weir_text *text, weir_text_totals *totals);

    /* [source] Frees the text. What finds no room now is lost and counted. May be NULL. */
    void (*end)(weir_text *text);

    /* [source] Frees the text without adding or counting what it still holds: for a sender that is told so, and
     * sends it again. May be NULL. */
    void (*cancel)(weir_text *text);
} weir_parser;

/* ---- Source types ---------------------------------------------------------------------------- */

/* Bits of weir_source_type.flags. Others are ignored. */
enum {
    /* It reads text: it has the options of parsers, and the service. */
    WEIR_SOURCE_TYPE_PARSES = 1u << 0,

    /* Its values are made here, such as measurements of this machine: settings.labels apply to them, as to
     * those of the program itself. Without it they came from elsewhere, and settings.labels do not. */
    WEIR_SOURCE_TYPE_MEASURES = 1u << 1,

    /* It gives neither a weir_record a group nor a text a group_prefix, so that its options and its texts alone
     * say which groups its values have. `weir check` then knows them. */
    WEIR_SOURCE_TYPE_UNGROUPED = 1u << 2,
};

/* A source type: its name, its options, and its callbacks. Constant and valid until the process ends. Callbacks
 * that are not marked as optional are required. */
typedef struct weir_source_type {
    size_t size;    /* sizeof(weir_source_type) */
    uint32_t abi;   /* WEIR_SOURCE_ABI */
    uint32_t flags; /* WEIR_SOURCE_TYPE_* */

    const char *name;    /* [a-z][a-z0-9_]*, at most 63 bytes */
    const char *summary; /* one line, for people */

    /* Its options, see <weir/options.h>; NULL: none. A type with an option of a name that the core reads for
     * all its sources, such as "group", is refused: see weir-source(7). The names of the options of parsers,
     * such as "parse", are reserved with WEIR_SOURCE_TYPE_PARSES only. */
    const weir_option *options;
    size_t option_row_size;       /* sizeof(weir_option) */
    size_t options_size;          /* sizeof the struct that the table fills */
    const weir_default *defaults; /* its defaults for common options, such as "parse"; NULL: none */

    /* [configuring] Optional. Initializes libraries that have state for the whole process: as prepare of
     * <weir/handler.h>. */
    bool (*prepare)(const weir_host *host);

    /* [configuring] Creates a source: checks what the table cannot, and allocates. No I/O, no threads. options:
     * the filled struct, owned by the core, valid until destroy has returned. Returns the instance, or NULL
     * after host->refuse: the configuration is refused. */
    void *(*create)(const weir_host *host, const void *options);

    /* [source] Optional. Opens what it reads from. A source is stopped before the one that replaces it is
     * opened, so both may use one address. */
    void (*open)(void *self, weir_outcome *outcome);

    /* [source] Reads and adds until a stop is requested, or its input has ended for good. */
    void (*run)(void *self, weir_outcome *outcome);

    /* [source] Optional. Called once after each open that returned OK; open or destroy follows. */
    void (*close)(void *self);

    /* [configuring] Frees the instance. It is closed, or was never opened, and its thread has ended. */
    void (*destroy)(void *self);

    /* [fork] Optional, for a source with descriptors. Calls close(2) for the instance's descriptors, fstat(2)
     * to see that they still are its own, and nothing else; also of one that is closed, so close has to note
     * that they are. The instance is never used again in the child: a forked process has no sources. */
    void (*abandon)(void *self);

    /* [check] Optional. Finds out, within timeout_ms milliseconds, whether it could read now what it reads
     * from. Takes nothing from it, and leaves nothing open. OK: it could; reason may hold a remark. Any other
     * code: it could not, for that reason. Without it `weir check --open` does not try the source. */
    void (*probe)(void *self, int64_t timeout_ms, weir_outcome *outcome);
} weir_source_type;

/* The entry point, defined by the plugin. Returns the type of that index, always the same pointer, or NULL if
 * there are no more. [configuring] */
WEIR_PLUGIN_EXPORT const weir_source_type *weir_source_type_at(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
