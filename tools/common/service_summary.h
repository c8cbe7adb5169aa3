/* service_summary: what a service has read and delivered. */
#ifndef WEIR_TOOLS_SERVICE_SUMMARY_H
#define WEIR_TOOLS_SERVICE_SUMMARY_H

#include <stdbool.h>

/* Prints a line for each source and each handler to stderr. */
void service_summary_print(void);

/* After the shutdown: whether all that was read was delivered or is on disk, and no source has failed for good;
 * if strict, also whether no source of the configuration has refused or lost anything. Prints what is not so.
 */
bool service_summary_check(bool strict);

#endif
