/* configure: applies the configuration of a subcommand that adds values. */
#ifndef WEIR_TOOLS_CONFIGURE_H
#define WEIR_TOOLS_CONFIGURE_H

#include <stdbool.h>

/* Applies the configuration in a file; file NULL: that of the environment. Returns false after printing why it
 * is invalid. */
bool configure_from(const char *file);

/* The same of a text that the command has made. */
bool configure_text(const char *text);

#endif
