/* unknown_keys: keys that a configuration has and weir does not know, where settings.unknown_keys is "warn". */
#ifndef WR_UNKNOWN_KEYS_H
#define WR_UNKNOWN_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/document.h"
#include "text/region.h"

struct wr_error;
struct wr_log;

/* How many are named, and how many are ignored at most. */
enum { WR_UNKNOWN_KEYS_SHOWN = 100, WR_UNKNOWN_KEYS_MAX = 1000 };

/* All zeros: none. Immutable after the configuration, or the plan, is made. */
struct wr_unknown_keys {
    const char *texts[WR_UNKNOWN_KEYS_SHOWN]; /* the messages, with places */
    size_t count;                             /* of texts */
    size_t more;                              /* further keys */
    bool has_common_format; /* those in the format of handlers."*", which is read for each handler, are in it */
    struct wr_region keep;
};

void wr_unknown_keys_fini(struct wr_unknown_keys *keys);

/* Adds a key. what: "unknown option"; hint: "; did you mean ...", or "". false: there are too many; error is
 * set. */
bool wr_unknown_keys_add(struct wr_unknown_keys *keys, const struct wr_node *node, const char *what,
                         const char *hint, struct wr_error *error);

/* Whether both would be logged alike. */
bool wr_unknown_keys_equal(const struct wr_unknown_keys *a, const struct wr_unknown_keys *b);

/* Logs a warning for each. */
void wr_unknown_keys_log(const struct wr_unknown_keys *keys, struct wr_log *log);

#endif
