/* source_text: the service parser/1: what a source reads becomes records, which are added. */
#ifndef WR_SOURCE_TEXT_H
#define WR_SOURCE_TEXT_H

#include <weir/source.h>

const weir_parser *wr_source_text_service(void);

#endif
