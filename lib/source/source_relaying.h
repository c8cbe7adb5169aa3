/* source_relaying: the service of relaying.h. */
#ifndef WR_SOURCE_RELAYING_H
#define WR_SOURCE_RELAYING_H

#include "source/relaying.h"

struct wr_source;

/* Returns NULL if the source is not one of those that the process has started. */
const struct wr_relaying *wr_source_relaying_service(const struct wr_source *source);

#endif
