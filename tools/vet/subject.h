/* subject: loads what is vetted, and makes handlers of it, with options, as a configuration would. */
#ifndef WEIR_TOOLS_VET_SUBJECT_H
#define WEIR_TOOLS_VET_SUBJECT_H

#include "handler/instance.h"
#include "handler/plugin.h"
#include "vet.h"

struct wr_error;

/* The handler types of this process. */
struct wr_plugins *vet_subject_plugins(void);

/* The type that is vetted; the check ends where it cannot be loaded. */
struct wr_type *vet_subject_type(const struct vet_subject *subject);

/* A configuration with one handler of the type, named "vet", and all groups routed to it. format: instead of
 * the one that the options say, or NULL. The caller frees it; NULL without memory. */
char *vet_subject_text(const struct vet_subject *subject, const char *format);

/* A handler of it with its options filled, which the plugin does not see yet; NULL: the error tells why. Freed
 * by wr_instance_free. */
struct wr_instance *vet_subject_instance(const struct vet_subject *subject, const char *format,
                                         struct wr_error *error);

/* Whether a text is a JSON object, as --options wants it; else the error tells why. */
bool vet_subject_check_options(const char *options, struct wr_error *error);

#endif
