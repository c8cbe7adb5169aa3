/* patterns: the parser "patterns", which finds values in lines of text by regular expressions (PCRE2).
 *
 * patterns_read reads the configuration and the presets, patterns_compile compiles the expressions and knows
 * their groups, parser_patterns makes records of matches. patterns_plugin is the plugin that sources load;
 * the command is linked with plugins/libpatterns.a and PCRE2. Without PCRE2 (patterns_none) all functions
 * exist, and wr_patterns_read returns an error. */
#ifndef WR_PATTERNS_H
#define WR_PATTERNS_H

#include <stddef.h>

struct wr_error;
struct wr_parser_type;

/* Compiled expressions. Immutable: parsers of any threads share them. */
struct wr_patterns;

/* For wr_parser_new, whose options then have `patterns`. NULL: built without PCRE2. */
const struct wr_parser_type *wr_patterns_type(void);

/* Reads JSON: an object, an array of objects, or the name of a preset in their place. `name` precedes line and
 * column in errors. NULL: error is set. The caller frees the patterns after all parsers that use them. */
struct wr_patterns *wr_patterns_read(const char *name, const char *text, size_t length, struct wr_error *error);

void wr_patterns_free(struct wr_patterns *patterns);

/* The JSON of a preset. NULL: there is none of this name. Static. */
const char *wr_patterns_find_preset(const char *name);

#endif
