/* names: what is remembered of the names that were read, up to a number of them. */
#ifndef WEIR_TOOLS_NAMES_H
#define WEIR_TOOLS_NAMES_H

#include <stdbool.h>

enum {
    NAMES_HAS_FRACTION = 1, /* a value was written with a fraction or an exponent */
    NAMES_IS_DECLARED = 2,
};

/* Does nothing if there are too many names. */
void names_mark(const char *group, const char *name, unsigned mark);

bool names_has(const char *group, const char *name, unsigned mark);

#endif
