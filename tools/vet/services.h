/* services: the core's services as a handler under test is given them: recorded, and judged where the handler
 * asks for what it may not. */
#ifndef WEIR_TOOLS_VET_SERVICES_H
#define WEIR_TOOLS_VET_SERVICES_H

#include "probe.h"

/* Puts them in the place of the core's in the probe's instance. At most 16 probes at a time. */
void vet_services_attach(struct vet_probe *probe);
void vet_services_detach(struct vet_probe *probe);

/* A text of the handler's for people: without any of its secrets; else the check ends. what: "the reason of an
 * outcome". */
void vet_services_check_text(const struct vet_probe *probe, const char *what, const char *text);

#endif
