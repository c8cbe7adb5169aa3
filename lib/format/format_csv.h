/* format_csv: a record for each sample: timestamp,group,name,value,labels; RFC 4180. */
#ifndef WR_FORMAT_CSV_H
#define WR_FORMAT_CSV_H

#include "format/encoder.h"

extern const struct wr_format wr_format_csv;

#endif
