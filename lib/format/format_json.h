/* format_json: a JSON object for each sample, one a line. */
#ifndef WR_FORMAT_JSON_H
#define WR_FORMAT_JSON_H

#include "format/encoder.h"

extern const struct wr_format wr_format_json;

#endif
