/* source_blocks: service "blocks/1": samples with numbers, added in one step. */
#ifndef WR_SOURCE_BLOCKS_H
#define WR_SOURCE_BLOCKS_H

#include "source/source.h"

/* Returns a weir_blocks. */
const void *wr_source_blocks_service(void);

#endif
