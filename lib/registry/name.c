#include "registry/name.h"

#include <string.h>

#include "text/error.h"
#include "text/utf8.h"

static size_t refuse(struct wr_error *error, const char *what, const char *text, size_t length,
                     const char *rule)
{
    char quoted[WR_UTF8_QUOTE_ROOM];
    wr_error_set(error, WEIR_ERR_NAME, "%s %s: %s", what, wr_utf8_quote(quoted, sizeof quoted, text, length),
                 rule);
    return 0;
}

static size_t refuse_byte(struct wr_error *error, const char *what, const char *text, size_t length,
                          size_t where, const char *problem)
{
    char quoted[WR_UTF8_QUOTE_ROOM];
    wr_error_set(error, WEIR_ERR_NAME,
                 "%s %s: %s at byte %zu; names must be valid UTF-8 without control characters", what,
                 wr_utf8_quote(quoted, sizeof quoted, text, length), problem, where + 1);
    return 0;
}

size_t wr_name_check(const char *name, const char *what, struct wr_error *error)
{
    if (!name) {
        wr_error_set(error, WEIR_ERR_NAME, "%s: must not be NULL", what);
        return 0;
    }
    size_t length = strnlen(name, WR_NAME_LONGEST + 1);
    if (length == 0)
        return refuse(error, what, name, length, "empty; a name must have 1 to 255 bytes");
    if (length > WR_NAME_LONGEST)
        return refuse(error, what, name, length, "too long; a name must have 1 to 255 bytes");
    for (size_t i = 0; i < length;) {
        uint32_t code_point;
        unsigned bytes = wr_utf8_decode(name + i, length - i, &code_point);
        if (!bytes)
            return refuse_byte(error, what, name, length, i, "invalid UTF-8");
        if (wr_utf8_is_control(code_point))
            return refuse_byte(error, what, name, length, i, "control character");
        i += bytes;
    }
    return length;
}

size_t wr_name_check_group(const char *group, struct wr_error *error)
{
    size_t length = wr_name_check(group, "group", error);
    if (!length)
        return 0;
    if (memchr(group, '*', length))
        return refuse(error, "group", group, length, "a group must not contain '*'");
    if (group[0] == '.' || group[length - 1] == '.' || strstr(group, ".."))
        return refuse(error, "group", group, length,
                      "empty part; a group is one or more names separated by single dots");
    return length;
}

bool wr_name_is_own_group(const char *group)
{
    return strncmp(group, "weir", 4) == 0 && (group[4] == '\0' || group[4] == '.');
}

bool wr_name_check_text(const char *text, size_t longest, const char *what, struct wr_error *error)
{
    if (!text)
        return wr_error_refuse(error, WEIR_ERR_NAME, "%s: must not be NULL", what);
    size_t length = strnlen(text, longest + 1);
    char quoted[WR_UTF8_QUOTE_ROOM];
    if (length > longest)
        return wr_error_refuse(error, WEIR_ERR_NAME, "%s %s: too long; at most %zu bytes are allowed", what,
                               wr_utf8_quote(quoted, sizeof quoted, text, length), longest);
    size_t where;
    if (!wr_utf8_is_valid(text, length, &where))
        return wr_error_refuse(error, WEIR_ERR_NAME, "%s %s: invalid UTF-8 at byte %zu", what,
                               wr_utf8_quote(quoted, sizeof quoted, text, length), where + 1);
    return true;
}

bool wr_name_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *resume = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            resume = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) { /* the last '*' takes one character more */
            pattern = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}
