/* family_names: which names the families of a document of Prometheus have taken. A family has its own name and
 * those of its samples, such as a histogram's with _sum; both formats forbid that two families share one. Used
 * by exposition. */
#ifndef WR_FAMILY_NAMES_H
#define WR_FAMILY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/series_text.h"

/* All zeros: none. */
struct wr_family_names {
    /* hashes of the names; 0: empty. A hash that two names have looks like one that is taken */
    uint64_t *slots;
    size_t capacity, count;
    bool failed; /* out of memory */
};

void wr_family_names_fini(struct wr_family_names *names);

/* The word that is appended to a family's name, as often as it takes, until its names are free. */
const char *wr_family_names_word(enum wr_series_type type);

/* Takes all names of a family that is called so, with so many words. Returns false, and takes none, if one is
 * taken or there is no memory. */
bool wr_family_names_take(struct wr_family_names *names, const char *family, enum wr_series_type type,
                          unsigned words);

#endif
