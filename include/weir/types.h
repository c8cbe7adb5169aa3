/* weir - what both sides of it name: applications (<weir/weir.h>) and handlers (<weir/handler.h>). */
#ifndef WEIR_TYPES_H
#define WEIR_TYPES_H

/* A label of a stream or of a whole configuration: a name and any valid UTF-8 text. */
typedef struct weir_label {
    const char *key;   /* a name */
    const char *value; /* valid UTF-8 */
} weir_label;

#endif
