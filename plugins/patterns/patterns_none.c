/* Where PCRE2 is missing. */

#include <stddef.h>

#include "text/error.h"

#include "patterns.h"

const struct wr_parser_type *wr_patterns_type(void)
{
    return NULL;
}

struct wr_patterns *wr_patterns_read(const char *name, const char *text, size_t length, struct wr_error *error)
{
    (void)text;
    (void)length;
    wr_error_set(error, WEIR_ERR_CONFIG, "%s: weir was built without PCRE2, which patterns need", name);
    return NULL;
}

void wr_patterns_free(struct wr_patterns *patterns)
{
    (void)patterns;
}

const char *wr_patterns_find_preset(const char *name)
{
    (void)name;
    return NULL;
}
