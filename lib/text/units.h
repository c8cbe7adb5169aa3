/* units: durations and sizes with units: 5s, 200ms, 1.5h; 64KiB, 1MiB, 10MB. A number without a unit is not
 * valid. */
#ifndef WR_UNITS_H
#define WR_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for the output of wr_units_put_*, NUL included. */
enum { WR_UNITS_ROOM = 32 };

/* For error messages: what is allowed. */
#define WR_UNITS_DURATION_HINT "a duration (like 5s, 200ms; units: ns, us, ms, s, m, h, d)"
#define WR_UNITS_SIZE_HINT "a size (like 64KiB, 1MiB; units: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)"

/* Unit number i of durations and of sizes; NULL after the last. */
const char *wr_units_duration_name(size_t i);
const char *wr_units_size_name(size_t i);

/* Parses a whole text. Returns false if it is not valid, negative, or out of range. */
bool wr_units_read_duration(const char *text, int64_t *ns);
bool wr_units_read_size(const char *text, int64_t *bytes);

/* Writes the number in the largest unit that divides it. Returns out. */
const char *wr_units_put_duration(char out[WR_UNITS_ROOM], int64_t ns);
const char *wr_units_put_size(char out[WR_UNITS_ROOM], int64_t bytes);

/* For a text that is not a size, or not a duration: "; did you mean 10MiB or 10MB?", or "". Returns out. */
enum { WR_UNITS_NEAREST_ROOM = 2 * WR_UNITS_ROOM + 32 };
const char *wr_units_suggest(const char *text, bool is_size, char out[WR_UNITS_NEAREST_ROOM]);

#endif
