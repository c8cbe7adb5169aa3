#include "patterns_file.h"

#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "config/document.h"
#include "text/error.h"

#include "../../plugins/patterns/patterns.h"

bool patterns_file_has_variable(void)
{
    return getenv("ANUBIS_METRICS");
}

bool patterns_file_is_empty(const char *path)
{
    const char *text = path ? NULL : getenv("ANUBIS_METRICS");
    return text && !*text;
}

static struct wr_patterns *read_text(const char *name, const char *text, size_t length)
{
    struct wr_error error;
    struct wr_patterns *patterns = wr_patterns_read(name, text, length, &error);
    if (!patterns)
        command_fail("%s", error.text);
    return patterns;
}

struct wr_patterns *patterns_file_read(const char *path)
{
    struct wr_error error;
    size_t length;
    const char *preset = path ? wr_patterns_find_preset(path) : getenv("ANUBIS_METRICS");
    if (preset)
        return read_text(path ? path : "ANUBIS_METRICS", preset, strlen(preset));
    char *text = wr_document_load(path, &length, &error);
    if (!text) {
        command_fail("%s", error.text);
        return NULL;
    }
    struct wr_patterns *patterns = read_text(path, text, length);
    free(text);
    return patterns;
}
