/* status_json: a process's snapshot as JSON. */
#ifndef WEIR_TOOLS_STATUS_JSON_H
#define WEIR_TOOLS_STATUS_JSON_H

#include "status_find.h"

struct json_object;

/* Adds an object for the process to an array. Values that do not apply are null. */
void status_json_add(struct json_object *array, const struct status_process *process);

#endif
