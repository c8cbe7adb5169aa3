/* failing: memory that runs out when a test says so. For programs linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc; only what is linked statically is asked to go without. */
#ifndef FAILING_H
#define FAILING_H

#include <stdbool.h>

/* From now on there is no memory, or there is again. */
void failing_set(bool failing);

/* So many calls get memory, and none that follows, until failing_set. */
void failing_after(unsigned calls);

#endif
