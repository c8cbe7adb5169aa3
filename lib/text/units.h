/* units: durations and sizes as people write them: 5s, 200ms, 1.5h; 64KiB, 1MiB, 10MB. A number without its
 * unit is refused. */
#ifndef WR_UNITS_H
#define WR_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for what wr_units_put_* write, NUL included. */
enum { WR_UNITS_ROOM = 32 };

/* What to say of a text that is none. */
#define WR_UNITS_DURATION_HINT "a duration (like 5s, 200ms; units: ns, us, ms, s, m, h, d)"
#define WR_UNITS_SIZE_HINT "a size (like 64KiB, 1MiB; units: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)"

/* The units number i of durations and of sizes; NULL behind the last. */
const char *wr_units_duration_name(size_t i);
const char *wr_units_size_name(size_t i);

/* Reads a whole text; false when it is not one, is negative, or is out of range. */
bool wr_units_parse_duration(const char *text, int64_t *ns);
bool wr_units_parse_size(const char *text, int64_t *bytes);

/* Writes the number in the largest unit that it is a whole multiple of; answers out. */
const char *wr_units_put_duration(char out[WR_UNITS_ROOM], int64_t ns);
const char *wr_units_put_size(char out[WR_UNITS_ROOM], int64_t bytes);

#endif
