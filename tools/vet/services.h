/* services: the services that a handler under test receives. They record calls, and fail the check if a call
 * violates the contract. */
#ifndef WEIR_TOOLS_VET_SERVICES_H
#define WEIR_TOOLS_VET_SERVICES_H

#include "probe.h"

/* Replaces the core's services in the probe's instance. At most 16 probes at a time. */
void vet_services_attach(struct vet_probe *probe);
void vet_services_detach(struct vet_probe *probe);

/* Fails the check if a text from the handler contains the value of a secret option. what: "the reason of an
 * outcome". */
void vet_services_check_text(const struct vet_probe *probe, const char *what, const char *text);

#endif
