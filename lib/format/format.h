/* format: which formats there are, and how a configuration chooses one. */
#ifndef WR_FORMAT_H
#define WR_FORMAT_H

#include "format/encoder.h"

/* The format number i, in the order in which people are shown them; NULL behind the last. */
const struct wr_format *wr_format_at(size_t i);

/* A format by its name, or NULL. */
const struct wr_format *wr_format_find(const char *name);

#endif
