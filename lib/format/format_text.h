/* format_text: a line for people: [1795219607.576198][my_app]: latency=49.403 {route="/x"} */
#ifndef WR_FORMAT_TEXT_H
#define WR_FORMAT_TEXT_H

#include "format/encoder.h"

extern const struct wr_format wr_format_text;

#endif
