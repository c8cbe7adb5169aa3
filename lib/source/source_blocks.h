/* source_blocks: service "blocks/1": samples with numbers, added in one step. */
#ifndef WR_SOURCE_BLOCKS_H
#define WR_SOURCE_BLOCKS_H

#include "source/source.h"

const weir_blocks *wr_source_blocks_service(void);

#endif
