#include "accepts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* An item of a header that is a list: "text/plain;version=0.0.4;q=0.5". */
struct item {
    const char *text;
    size_t length, name_length; /* the name ends at the first ';' */
};

static bool next_item(const char **at, struct item *item)
{
    *at += strspn(*at, " \t,");
    if (!**at)
        return false;
    item->text = *at;
    item->length = strcspn(*at, ",");
    item->name_length = strcspn(*at, ";, \t");
    *at += item->length;
    return true;
}

static bool is_named(const struct item *item, const char *name)
{
    return item->name_length == strlen(name) && strncasecmp(item->text, name, item->name_length) == 0;
}

/* Returns the value of a parameter, up to the item's end; NULL: it has none. */
static const char *find_parameter(const struct item *item, const char *name)
{
    size_t length = strlen(name);
    const char *end = item->text + item->length, *at = item->text + item->name_length;
    while (at < end && (at = memchr(at, ';', (size_t)(end - at)))) {
        at++;
        at += strspn(at, " \t");
        if ((size_t)(end - at) > length && strncasecmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}

/* In thousandths. */
static int quality_of(const struct item *item)
{
    const char *text = find_parameter(item, "q");
    int quality = 0, digit = 100;
    if (!text)
        return 1000;
    if (*text == '1')
        return 1000;
    if (*text++ != '0' || *text++ != '.')
        return 0;
    for (; *text >= '0' && *text <= '9' && digit; digit /= 10)
        quality += (*text++ - '0') * digit;
    return quality;
}

static bool is_version_1(const struct item *item)
{
    const char *version = find_parameter(item, "version");
    return !version || strncmp(version, "1.0.0", 5) == 0 || strncmp(version, "\"1.0.0\"", 7) == 0;
}

bool accepts_openmetrics(const char *accept)
{
    int openmetrics = 0, text = 0;
    struct item item;
    while (accept && next_item(&accept, &item)) {
        int quality = quality_of(&item);
        if (is_named(&item, "application/openmetrics-text") && is_version_1(&item))
            openmetrics = quality > openmetrics ? quality : openmetrics;
        else if (is_named(&item, "text/plain"))
            text = quality > text ? quality : text;
    }
    return openmetrics && openmetrics >= text;
}

bool accepts_gzip(const char *accept_encoding)
{
    struct item item;
    while (accept_encoding && next_item(&accept_encoding, &item))
        if (is_named(&item, "gzip"))
            return quality_of(&item) > 0;
    return false;
}
