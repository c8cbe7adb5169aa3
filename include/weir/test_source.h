/* weir - a host with a clock of its own, for unit tests of source types: time passes without waiting.
 *
 * As <weir/test_clock.h>, for a program that is linked with the C file of a source type. The clock stands still
 * but for the waits of the service "intake/1". What the source adds, and the text that it reads, is counted and
 * given to functions of the test. Nothing here links to a library, and nothing is thread-safe. */
#ifndef WEIR_TEST_SOURCE_H
#define WEIR_TEST_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/source.h>
#include <weir/test_clock.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIR_TEST_SOURCE_ROOM = 65536 }; /* bytes of text that are read at once */

/* A host of a source. Owned by the test; it must not be moved while a source has it. */
typedef struct weir_test_source {
    weir_test_clock clock; /* give &source->clock.host to create; set clock.stop_ms, clock.on_wait */

    uint64_t records; /* events that the source has added */
    uint64_t values;  /* the same in values */
    uint64_t refused; /* values that on_add or the source has refused */
    uint64_t bytes;   /* of text that it has read */

    /* The part of the core: returns enum weir_add_result. NULL: takes every record. */
    int (*on_add)(struct weir_test_source *source, const weir_record *record);

    /* Text that was read. Returns false if there is no room for what it says: then it is given again when the
     * source resumes. NULL: takes all. */
    bool (*on_text)(struct weir_test_source *source, const char *text, size_t length);

    int mark_state; /* what `settled` returns: enum weir_mark_state, at first PENDING */
    uint64_t mark;  /* the last that was returned */

    bool is_full;                     /* something found no room since the last wait */
    size_t held;                      /* bytes of text that found no room */
    char text[WEIR_TEST_SOURCE_ROOM]; /* one text at a time */
} weir_test_source;

/* Returns the test of a host. */
static inline weir_test_source *weir_test_source_of(const weir_host *host)
{
    return (weir_test_source *)(uintptr_t)host; /* its first member's first member */
}

/* ---- The service intake/1 -------------------------------------------------------------------- */

/* As weir_intake.add. */
static inline int weir_test_source_add(const weir_host *host, const weir_record *record)
{
    weir_test_source *source = weir_test_source_of(host);
    int result = source->on_add ? source->on_add(source, record) : WEIR_ADD_TAKEN;
    source->is_full = source->is_full || result == WEIR_ADD_FULL;
    if (result == WEIR_ADD_TAKEN) {
        source->records++;
        source->values += record->count;
    } else if (result == WEIR_ADD_REFUSED) {
        source->refused += record->count;
    }
    return result;
}

/* Returns at once. A wait without a limit that nothing ends returns WEIR_WAIT_STOP; after something found no
 * room it takes a millisecond. */
static inline unsigned weir_test_source_wait(const weir_host *host, struct pollfd *fds, size_t count,
                                             int64_t timeout_ms)
{
    weir_test_source *source = weir_test_source_of(host);
    weir_test_clock *clock = &source->clock;
    int64_t end_ms = clock->end_ms;
    clock->end_ms = clock->stop_ms; /* a source is not given time beyond a stop */
    unsigned ends =
        weir_test_clock_wait_for(host, fds, count, source->is_full && timeout_ms < 0 ? 1 : timeout_ms);
    clock->end_ms = end_ms;
    if (source->is_full)
        ends |= WEIR_WAIT_ROOM;
    source->is_full = false;
    return ends;
}

/* As weir_intake.refuse: the message is discarded. */
static inline void weir_test_source_refuse(const weir_host *host, uint64_t n, const char *where,
                                           const char *format, ...)
{
    (void)where;
    (void)format;
    weir_test_source_of(host)->refused += n;
}

/* As weir_intake.mark. */
static inline uint64_t weir_test_source_mark(const weir_host *host)
{
    return ++weir_test_source_of(host)->mark;
}

/* As weir_intake.settled: returns mark_state. */
static inline int weir_test_source_settled(const weir_host *host, uint64_t mark)
{
    (void)mark;
    return weir_test_source_of(host)->mark_state;
}

/* ---- The service parser/1 -------------------------------------------------------------------- */

/* As weir_parser.begin: the text is the test's own, and the options are ignored. */
static inline weir_text *weir_test_source_begin(const weir_host *host, const char *where,
                                                const weir_text_options *options)
{
    (void)where;
    (void)options;
    return (weir_text *)(void *)weir_test_source_of(host);
}

/* As weir_parser.room. */
static inline char *weir_test_source_room(weir_text *text, size_t *room)
{
    weir_test_source *source = (weir_test_source *)(void *)text;
    *room = sizeof source->text - source->held;
    return source->text + source->held;
}

/* As weir_parser.resume: gives the text to on_text. */
static inline bool weir_test_source_resume(weir_text *text)
{
    weir_test_source *source = (weir_test_source *)(void *)text;
    if (source->held && source->on_text && !source->on_text(source, source->text, source->held)) {
        source->is_full = true;
        return false;
    }
    source->held = 0;
    return true;
}

/* As weir_parser.parse. */
static inline bool weir_test_source_parse(weir_text *text, size_t length)
{
    weir_test_source *source = (weir_test_source *)(void *)text;
    source->held += length;
    source->bytes += length;
    return weir_test_source_resume(text);
}

/* As weir_parser.finish. */
static inline bool weir_test_source_finish(weir_text *text, bool is_whole)
{
    (void)is_whole;
    return weir_test_source_resume(text);
}

/* As weir_parser.end and cancel: the text is discarded. */
static inline void weir_test_source_end(weir_text *text)
{
    if (text)
        ((weir_test_source *)(void *)text)->held = 0;
}

/* As weir_parser.read_totals: all but what on_text has not taken are 0. */
static inline void weir_test_source_read_totals(const weir_text *text, weir_text_totals *totals)
{
    const weir_test_source *source = (const weir_test_source *)(const void *)text;
    weir_text_totals all = {totals->size, 0, 0, 0, 0, "", source->held};
    memcpy(totals, &all, totals->size < sizeof all ? totals->size : sizeof all);
}

/* ---- Making one ------------------------------------------------------------------------------ */

/* As host->service: the services "intake/1" and "parser/1", those of the test, and of those of its clock
 * "connecting/1" and "numbers/1". */
static inline const void *weir_test_source_service(const weir_host *host, const char *id)
{
    static const weir_intake intake = {
        sizeof(weir_intake),     weir_test_source_add,  weir_test_source_wait,
        weir_test_source_refuse, weir_test_source_mark, weir_test_source_settled,
    };
    static const weir_parser parser = {
        sizeof(weir_parser),          weir_test_source_begin,  weir_test_source_room,
        weir_test_source_parse,       weir_test_source_resume, weir_test_source_finish,
        weir_test_source_read_totals, weir_test_source_end,    weir_test_source_end,
    };
    const weir_test_source *source = weir_test_source_of(host);
    if (strcmp(id, WEIR_SERVICE_INTAKE) == 0)
        return &intake;
    if (strcmp(id, WEIR_SERVICE_PARSER) == 0)
        return &parser;
    if (strcmp(id, WEIR_SERVICE_CONNECTING) == 0 || strcmp(id, WEIR_SERVICE_NUMBERS) == 0)
        return weir_test_clock_service(host, id);
    return source->clock.service ? source->clock.service(host, id) : NULL;
}

/* Initializes a test at the time 0, at which no stop is ever requested. name: of the source; borrowed. */
static inline void weir_test_source_init(weir_test_source *source, const char *name)
{
    memset(source, 0, sizeof *source);
    weir_test_clock_init(&source->clock, NULL, name);
    source->clock.host.service = weir_test_source_service;
}

#ifdef __cplusplus
}
#endif

#endif
