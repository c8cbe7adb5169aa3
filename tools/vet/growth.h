/* growth: how much memory stays in use after something that is done again and again. */
#ifndef WEIR_TOOLS_VET_GROWTH_H
#define WEIR_TOOLS_VET_GROWTH_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the allocator reports how much memory is in use. */
bool vet_growth_is_known(void);

/* Returns by how many bytes memory grows with each call of run. Memory that is allocated once and kept does not
 * count. It is called up to `most` times between two measurements; less often if it is slow. */
size_t vet_growth_measure(void (*run)(void *ctx), void *ctx, int most);

#endif
