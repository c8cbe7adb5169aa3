/* subject: loads the handler type under test and creates instances of it from --options. */
#ifndef WEIR_TOOLS_VET_SUBJECT_H
#define WEIR_TOOLS_VET_SUBJECT_H

#include "handler/instance.h"
#include "handler/plugin.h"
#include "vet.h"

struct wr_error;

/* Returns the plugin registry of this process. */
struct wr_plugins *vet_subject_plugins(void);

/* Whether it is a handler type or a source type. */
const struct wr_plugins_kind *vet_subject_kind(const struct vet_subject *subject);

/* Returns the type under test; the check fails if it cannot be loaded. */
struct wr_type *vet_subject_type(const struct vet_subject *subject);

/* Returns a handler or source of the type as an object of a configuration. more: further members, or "". Caller
 * frees; NULL if out of memory. */
char *vet_subject_object(const struct vet_subject *subject, const char *more);

/* Returns an instance whose options are set; no callback has been called yet. Caller frees it with
 * wr_instance_free. Returns NULL and sets the error on failure. */
struct wr_instance *vet_subject_instance(const struct vet_subject *subject, const char *format,
                                         struct wr_error *error);

/* Returns whether the text is a JSON object, as --options requires; otherwise sets the error. */
bool vet_subject_check_options(const char *options, struct wr_error *error);

#endif
