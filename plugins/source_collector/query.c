#include "query.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/number.h"
#include "text/utf8.h"

enum { SHOWN = 120, SECOND_DIGITS = 10, FRACTION_DIGITS = 9 };

static const int64_t second_ns = 1000000000;

/* ---- Which there are ------------------------------------------------------------------------- */

static bool is_word_of(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; length && (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return !strchr(word, ' ');
    return false;
}

bool query_fail(struct query *query, const char *name, const char *format, ...)
{
    char shown[SHOWN];
    va_list arguments;
    if (*query->problem)
        return false;
    wr_utf8_show_part(shown, sizeof shown, name);
    int length = snprintf(query->problem, sizeof query->problem, "parameter \"%s\": ", shown);
    va_start(arguments, format);
    vsnprintf(query->problem + length, sizeof query->problem - (size_t)length, format, arguments);
    va_end(arguments);
    return false;
}

static bool refuse(struct query *query, const char *name, const char *value, const char *what)
{
    char shown[SHOWN];
    wr_utf8_show_part(shown, sizeof shown, value);
    return query_fail(query, name, "\"%s\" is not %s", shown, what);
}

static bool is_text(const char *text, size_t length)
{
    return !memchr(text, '\0', length) && wr_utf8_is_valid(text, length, NULL);
}

bool query_add(struct query *query, const char *name, size_t name_length, const char *value, size_t length)
{
    if (!is_text(name, name_length))
        return query_fail(query, name, "its name is not valid UTF-8 without a NUL");
    if (!is_word_of(query->allowed, name))
        return query_fail(query, name, "it is unknown; allowed: %s", *query->allowed ? query->allowed : "none");
    if (!is_text(value, length))
        return query_fail(query, name, "its value is not valid UTF-8 without a NUL");
    if (query_get(query, name) && strcmp(name, "label") != 0)
        return query_fail(query, name, "it is there twice; allowed: once");
    if (query->count == QUERY_PARAMETERS)
        return query_fail(query, name, "there are too many parameters; allowed: %d", QUERY_PARAMETERS);
    query->all[query->count++] = (struct query_parameter){name, value};
    return true;
}

const char *query_get(const struct query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++)
        if (strcmp(query->all[i].name, name) == 0)
            return query->all[i].value;
    return NULL;
}

bool query_need(struct query *query, const char *name)
{
    return query_get(query, name) || query_fail(query, name, "it is missing");
}

/* ---- Times ----------------------------------------------------------------------------------- */

/* Takes up to `most` digits. Returns how many. */
static int take_digits(const char **at, int most, int64_t *number)
{
    int count = 0;
    for (*number = 0; **at >= '0' && **at <= '9' && count < most; count++)
        *number = *number * 10 + (*(*at)++ - '0');
    return count;
}

/* Takes 1700000000.25 */
static bool take_seconds(const char **at, int64_t *time_ns)
{
    int64_t seconds, fraction = 0;
    /* so that sums with a width have room */
    if (!take_digits(at, SECOND_DIGITS, &seconds) || seconds >= INT64_MAX / 2 / second_ns)
        return false;
    if (**at == '.') {
        ++*at;
        int digits = take_digits(at, FRACTION_DIGITS, &fraction);
        if (!digits)
            return false;
        for (; digits < FRACTION_DIGITS; digits++)
            fraction *= 10;
    }
    *time_ns = seconds * second_ns + fraction;
    return true;
}

/* Takes the unit of an age. */
static bool take_unit(const char **at, int64_t *unit_ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ms", 1000000},
                 {"s", 1000000000},
                 {"m", INT64_C(60) * 1000000000},
                 {"h", INT64_C(3600) * 1000000000},
                 {"d", INT64_C(86400) * 1000000000},
                 {"w", INT64_C(604800) * 1000000000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(*at, units[i].name) == 0) {
            *at += strlen(*at);
            *unit_ns = units[i].ns;
            return true;
        }
    return false;
}

static bool parse_time(const char *text, int64_t now_ns, int64_t *time_ns)
{
    int64_t number, unit_ns;
    if (strcmp(text, "now") == 0) {
        *time_ns = now_ns;
        return true;
    }
    if (*text != '-')
        return take_seconds(&text, time_ns) && !*text;
    text++;
    if (!take_digits(&text, SECOND_DIGITS, &number) || !take_unit(&text, &unit_ns) || number > now_ns / unit_ns)
        return false;
    *time_ns = now_ns - number * unit_ns;
    return true;
}

#define TIME_FORMS "a time; allowed: seconds since 1970 like 1700000000.25, now, or an age like -15m"

bool query_time(struct query *query, const char *name, int64_t *time_ns)
{
    const char *text = query_get(query, name);
    return !text || parse_time(text, query->now_ns, time_ns) || refuse(query, name, text, TIME_FORMS);
}

bool query_place(struct query *query, const char *name, int64_t *time_ns, int64_t *skipped)
{
    const char *text = query_get(query, name), *at = text;
    if (!text || !strchr(text, '/'))
        return query_time(query, name, time_ns);
    if (take_seconds(&at, time_ns) && *at++ == '/' && take_digits(&at, SECOND_DIGITS, skipped) && !*at)
        return true;
    return refuse(query, name, text, TIME_FORMS ", or \"next\" of the page before");
}

/* ---- Others ---------------------------------------------------------------------------------- */

bool query_integer(struct query *query, const char *name, int64_t least, int64_t most, int64_t *number)
{
    const char *text = query_get(query, name);
    char what[80];
    if (!text || (wr_number_read_int(text, number) && *number >= least && *number <= most))
        return true;
    snprintf(what, sizeof what, "allowed; allowed: a number, %lld..%lld", (long long)least, (long long)most);
    return refuse(query, name, text, what);
}

bool query_bool(struct query *query, const char *name, bool *flag)
{
    const char *text = query_get(query, name);
    if (!text)
        return true;
    *flag = strcmp(text, "true") == 0;
    return *flag || strcmp(text, "false") == 0 || refuse(query, name, text, "allowed; allowed: true, false");
}

static bool is_among(const int64_t *ids, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

bool query_ids(struct query *query, const char *name, int64_t ids[QUERY_IDS], size_t *count)
{
    enum { ID_DIGITS = 18 };
    const char *text = query_get(query, name), *at = text;
    if (!text)
        return true;
    for (*count = 0;; at++) {
        int64_t id;
        if (!take_digits(&at, ID_DIGITS, &id) || id < 1 || (*at && *at != ','))
            return refuse(query, name, text, "a list of ids; allowed: like 1,2,3");
        if (is_among(ids, *count, id))
            return query_fail(query, name, "%lld is there twice; allowed: once", (long long)id);
        if (*count == QUERY_IDS)
            return query_fail(query, name, "there are too many; allowed: up to %d", QUERY_IDS);
        ids[(*count)++] = id;
        if (!*at)
            return true;
    }
}
