#include "template.h"

#include <string.h>

/* The format of each conversion; '0' is any digit. NULL: not allowed. */
static const char *shape_of(char conversion)
{
    switch (conversion) {
    case 'Y':
    case 'G': return "0000";
    case 'j': return "000";
    case 'F': return "0000-00-00";
    case 'm':
    case 'd':
    case 'H':
    case 'M':
    case 'S':
    case 'y':
    case 'V': return "00";
    case '%': return "%";
    default: return NULL;
    }
}

const char *wr_template_find_error(const char *path)
{
    for (const char *pos = strchr(path, '%'); pos; pos = strchr(pos + 2, '%'))
        if (!shape_of(pos[1]))
            return pos;
    return NULL;
}

static const char *find_date(const char *path)
{
    for (const char *pos = strchr(path, '%'); pos; pos = strchr(pos + 2, '%'))
        if (pos[1] != '%')
            return pos;
    return NULL;
}

bool wr_template_is_dated(const char *path)
{
    return find_date(path) != NULL;
}

bool wr_template_has_dated_folders(const char *path)
{
    const char *date = find_date(path), *name = strrchr(path, '/');
    return date && name && date < name;
}

/* ---- Expanding ------------------------------------------------------------------------------- */

/* Appends and NUL-terminates. Returns false if it does not fit. */
static bool append_text(char *out, size_t room, size_t *length, const char *text, size_t text_length)
{
    if (*length + text_length >= room)
        return false;
    memcpy(out + *length, text, text_length);
    *length += text_length;
    out[*length] = '\0';
    return true;
}

bool wr_template_expand(const char *path, time_t time, bool utc, char *out, size_t room)
{
    struct tm parts;
    size_t length = 0;
    if (!(utc ? gmtime_r(&time, &parts) : localtime_r(&time, &parts)))
        return false;
    while (*path) {
        char conversion[3] = "", text[16];
        size_t plain = strcspn(path, "%");
        if (!append_text(out, room, &length, path, plain))
            return false;
        path += plain;
        if (!*path)
            break;
        memcpy(conversion, path, 2);
        if (!append_text(out, room, &length, text, strftime(text, sizeof text, conversion, &parts)))
            return false;
        path += 2;
    }
    return true;
}

/* ---- Matching -------------------------------------------------------------------------------- */

static bool append_shape(char *out, size_t room, size_t *length, const char *shape)
{
    for (; *shape; shape++)
        if (!append_text(out, room, length, *shape == '0' ? "[0-9]" : shape, *shape == '0' ? 5 : 1))
            return false;
    return true;
}

bool wr_template_glob(const char *path, char *out, size_t room)
{
    size_t length = 0;
    for (; *path; path++) {
        bool added;
        if (*path == '%')
            added = append_shape(out, room, &length, shape_of(*++path));
        else if (strchr("*?[]\\", *path))
            added = append_text(out, room, &length, (char[]){'\\', *path}, 2);
        else
            added = append_text(out, room, &length, path, 1);
        if (!added)
            return false;
    }
    return append_text(out, room, &length, "*", 1);
}

static const char *match_shape(const char *shape, const char *name)
{
    for (; *shape; shape++, name++)
        if (*shape == '0' ? *name < '0' || *name > '9' : *name != *shape)
            return NULL;
    return name;
}

const char *wr_template_match(const char *path, const char *name)
{
    for (; *path && name; path++) {
        if (*path == '%')
            name = match_shape(shape_of(*++path), name);
        else
            name = *name == *path ? name + 1 : NULL;
    }
    return name;
}
