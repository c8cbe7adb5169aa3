/* numbers: numbers as text, for plugins. */
#ifndef WR_NUMBERS_H
#define WR_NUMBERS_H

#include <weir/host.h>

/* The service numbers/1. */
const weir_numbers *wr_numbers_service(void);

#endif
