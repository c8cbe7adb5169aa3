/* time_form: times as programs write them in their logs. */
#ifndef WR_TIME_FORM_H
#define WR_TIME_FORM_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros: seconds since 1970. */
struct wr_time_form {
    int64_t unit_ns;    /* not 0: integers in this unit since 1970 */
    const char *format; /* not NULL: borrowed; see below */
};

#define WR_TIME_FORM_HINT                                                                                      \
    "s, ms, us, ns (since 1970), or a format of %Y %m %b %d %H %M %S %f %z %% with %Y, %m or %b, and %d"

/* Reads a form: s, ms, us or ns, or a format, which is kept. Its directives are strptime's, in English: %Y
 * (four digits), %m %d %H %M %S (two digits each), %b (Jan), %f (1 to 9 decimals of a second), %z (+0100,
 * +01:00, +01 or Z). Without %z the time is local. Returns false if it is neither. */
bool wr_time_form_compile(const char *text, struct wr_time_form *form);

/* Returns false if the text is no such time. The byte at `end` must exist. */
bool wr_time_form_read(const struct wr_time_form *form, const char *at, const char *end, int64_t *time_ns);

/* Reads a date and time of ISO 8601, 2026-11-28T12:00:00, with decimals of a second and a zone as of %f and %z
 * if they are there, and T or a blank. Without a zone it is local. Returns false if the text is no such time.
 * The byte at `end` must exist. */
bool wr_time_form_read_iso(const char *at, const char *end, int64_t *time_ns);

#endif
