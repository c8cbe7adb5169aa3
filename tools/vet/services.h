/* services: the services that a handler under test receives. They record calls, and fail the check if a call
 * violates the contract. */
#ifndef WEIR_TOOLS_VET_SERVICES_H
#define WEIR_TOOLS_VET_SERVICES_H

#include "probe.h"

/* Replaces the core's services in the probe's instance. */
void vet_services_attach(struct vet_probe *probe);

#endif
