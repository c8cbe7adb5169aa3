/* source_status: the state of the process, for sources that show it. */
#ifndef WR_SOURCE_STATUS_H
#define WR_SOURCE_STATUS_H

#include <weir/source.h>

/* The service status/1. */
const weir_status *wr_source_status_service(void);

#endif
