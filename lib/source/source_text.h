/* source_text: the service parser/1: what a source reads becomes records, which are added. */
#ifndef WR_SOURCE_TEXT_H
#define WR_SOURCE_TEXT_H

#include <stdbool.h>

#include <weir/source.h>

struct wr_source;

const weir_parser *wr_source_text_service(void);

/* Whether what the source reads can name groups of its own, if its type does not. */
bool wr_source_text_has_groups(const struct wr_source *source);

#endif
