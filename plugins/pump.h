/* pump: what sources that read text from a descriptor share: reads, parses, and holds back while there is no
 * room. */
#ifndef WEIR_PLUGINS_PUMP_H
#define WEIR_PLUGINS_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/source.h>

struct pump {
    const weir_host *host;
    const weir_intake *intake;
    const weir_parser *parser;
    weir_text *text;
    bool is_full;       /* the text has to be resumed */
    bool is_ending;     /* finish has to be called again */
    bool is_whole;      /* for that */
    size_t most;        /* that a call may read; 0: as much as there is room for */
    size_t last_length; /* that the last call has read */
};

enum pump_result { PUMP_READ, PUMP_EMPTY, PUMP_END, PUMP_FULL, PUMP_FAILED };

/* Returns false if out of memory. */
bool wr_pump_init(struct pump *pump, const weir_host *host, const char *where);

void wr_pump_fini(struct pump *pump);

/* Adds what has been read. Returns false if there is no room yet. */
bool wr_pump_resume(struct pump *pump);

/* The text ends: see weir_parser.finish. */
void wr_pump_finish(struct pump *pump, bool is_whole);

/* Of what was read, the bytes behind the last record that is complete. */
uint64_t wr_pump_pending(const struct pump *pump);

/* Reads once, and adds what was read. FAILED: errno is set. */
enum pump_result wr_pump_read(struct pump *pump, int fd);

/* After a stop was requested: waits in short steps until what was read has been added, for two seconds at most.
 * Returns false if it has not. */
bool wr_pump_drain(struct pump *pump);

/* After a stop was requested: reads the rest of a record of which the first part was read, and no more. Waits
 * for its writer in short steps, for a second at most; then the record counts as torn. */
void wr_pump_read_record_end(struct pump *pump, int fd);

/* Sets a result with errno behind its reason. */
void wr_pump_fail(weir_outcome *outcome, int code, const char *what);

#endif
