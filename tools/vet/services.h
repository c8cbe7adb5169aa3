/* services: the services that a handler under test receives. They record calls, and fail the check if a call
 * violates the contract. */
#ifndef WEIR_TOOLS_VET_SERVICES_H
#define WEIR_TOOLS_VET_SERVICES_H

#include "probe.h"

/* Replaces the core's services in the probe's instance. At most 16 probes at a time. */
void vet_services_attach(struct vet_probe *probe);
void vet_services_detach(struct vet_probe *probe);

/* Of handlers and sources: fail the check if a text that one of them passes contains the value of a secret
 * option, if the level of a log message is none, or if the option that is refused is none. what: "the reason of
 * an outcome". */
void vet_services_check_text(const struct wr_options_table *table, const void *options, const char *what,
                             const char *text);
void vet_services_check_log(const struct wr_options_table *table, const void *options, int level,
                            const char *text);
void vet_services_check_refusal(const struct wr_options_table *table, const void *options, const char *option,
                                const char *text);

#endif
