/* format_bai: benchmarkai's lines: a JSON object of names and values for each event, as Python's json.dumps
 * writes a dict. */
#ifndef WR_FORMAT_BAI_H
#define WR_FORMAT_BAI_H

#include "format/encoder.h"

extern const struct wr_format wr_format_bai;

#endif
