/* json: JSON output. The subcommands build a tree of json-c values and print it; keys keep the order in which
 * they are added.
 *
 * If memory runs out, these functions print a message and exit with EXIT_FAILURE: callers need no checks. */
#ifndef WEIR_TOOLS_JSON_H
#define WEIR_TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

/* A new document; json_print and json_take free it. */
struct json_object *json_start_object(void);
struct json_object *json_start_array(void);

/* Add a member to an object or, with key NULL, an element to an array. Keys and values are copied. */
struct json_object *json_add_object(struct json_object *parent, const char *key);
struct json_object *json_add_array(struct json_object *parent, const char *key);

/* Text that is not valid UTF-8 is escaped as in terminal output; NULL becomes null. */
void json_add_text(struct json_object *parent, const char *key, const char *text);
void json_add_piece(struct json_object *parent, const char *key, const char *text, size_t length);

/* Text of a configuration that is to be read as it is: there, $ begins a variable. */
void json_add_expandable(struct json_object *parent, const char *key, const char *text);

void json_add_bool(struct json_object *parent, const char *key, bool value);
void json_add_count(struct json_object *parent, const char *key, uint64_t count);

/* A number with the fewest digits that read back as the same double, or with so many decimals. What is not
 * finite becomes null. */
void json_add_number(struct json_object *parent, const char *key, double number);
void json_add_decimals(struct json_object *parent, const char *key, double number, int decimals);

/* A number, true or false from its text in an option table. */
void json_add_literal(struct json_object *parent, const char *key, const char *literal);

/* Returns the document as a text, which the caller frees, and frees the document. */
char *json_take(struct json_object *root);

enum json_style {
    JSON_LINES,    /* an array: an element per line; any other value: one line */
    JSON_INDENTED, /* a member or element per line */
};

/* Prints the document with a newline to stdout and frees it. Returns `result`, or EXIT_FAILURE after printing
 * why that failed. */
int json_print(struct json_object *root, enum json_style style, int result);

#endif
