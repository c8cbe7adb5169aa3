/* fields: the named values of a request's body: a form, or a JSON object. */
#ifndef WEIR_PLUGINS_COLLECTOR_FIELDS_H
#define WEIR_PLUGINS_COLLECTOR_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request.h"

struct field {
    const char *name, *value; /* owned by the fields */
};

struct fields {
    struct field *all;
    uint32_t count, room;
    struct json_object *json; /* of a JSON body */
    char *form;               /* of a form, decoded */
};

/* Reads the body. Returns false after it has replied to the request: the body is neither. */
bool fields_read(struct fields *fields, struct request *request);
void fields_fini(struct fields *fields);

/* Checks that a text has neither NUL nor invalid UTF-8. Otherwise replies to the request, naming it. */
bool fields_check_text(struct request *request, const char *name, const char *text, size_t length);

/* The last value of that name, or NULL. */
const char *fields_find(const struct fields *fields, const char *name);

/* The same; if it is missing, replies to the request, and returns NULL. */
const char *fields_need(const struct fields *fields, struct request *request, const char *name);

/* Whether it is the text true. */
bool fields_is_true(const struct fields *fields, const char *name);

#endif
