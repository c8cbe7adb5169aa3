#include "servers.h"

#include <inttypes.h>
#include <time.h>

#include "text/common.h"
#include "fuzz.h"
#include "read.h"

/* ---- influx ---------------------------------------------------------------------------------- */

/* Reads a part of a line up to an unescaped separator, as a server does. Returns its position. */
static const char *read_part(const char *at, const char *separators, char *out)
{
    while (*at && !strchr(separators, *at)) {
        if (*at == '\\' && at[1] && strchr(", =", at[1]))
            at++;
        *out++ = *at++;
    }
    *out = '\0';
    return at;
}

/* Whether the format can represent the text unchanged, as documented. */
static bool is_plain(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f || strchr("\\%\"", *at))
            return false;
    return text[strspn(text, "_")] != '#' && strncmp(text, "time", 4) != 0 && strncmp(text, "_field", 6) != 0 &&
           strncmp(text, "_measurement", 12) != 0;
}

static bool is_in_influx(const weir_sample *sample, bool integers)
{
    return sample->time_ns > INT64_MIN + 1 && sample->time_ns < INT64_MAX && !read_is_special(sample) &&
           (integers || read_is_double(sample));
}

/* Whether it is the expected text, in which each dot may be another character. */
static bool is_separated(const char *text, const char *expected, char separator)
{
    for (; *text && (*text == *expected || (*expected == '.' && *text == separator)); text++)
        expected++;
    return !*text && !*expected;
}

/* Checks a line; texts that the format cannot represent are only parsed. Returns the next line. */
static const char *read_influx(const struct reader *reader, const struct written *written,
                               const weir_sample *sample, const char *text)
{
    bool integers = reader_has(reader, "integers");
    char separator = reader_has(reader, "name_separator") ? *reader->set_to : '.';
    char group[READ_ROOM], key[READ_ROOM], value[READ_ROOM] = "", name[READ_ROOM], number[READ_ROOM],
                                           time[READ_ROOM], expected[READ_ROOM];
    bool plain = is_plain(written->group) && is_plain(written->key) && is_plain(written->value) &&
                 is_plain(written->name) && (separator == '.' || *written->name != '.'); /* _field */
    text = read_part(text, ", \n", group);
    if (*written->value) {
        text = read_part(read_skip(text, ","), "=\n", key);
        FUZZ_CHECK(!plain || strcmp(key, written->key) == 0);
        text = read_part(read_skip(text, "="), ", \n", value);
    }
    text = read_part(read_skip(text, " "), "=\n", name);
    text = read_copy_to(read_skip(text, "="), ' ', number);
    text = read_copy_to(read_skip(text, " "), '\n', time);
    FUZZ_CHECK(!plain || (is_separated(group, written->group, separator) &&
                          strcmp(value, written->value) == 0 && is_separated(name, written->name, separator)));
    FUZZ_CHECK(separator == '.' || (!strchr(group, '.') && !strchr(name, '.')));
    snprintf(expected, sizeof expected, "%" PRId64, sample->time_ns);
    FUZZ_CHECK(strcmp(time, expected) == 0);
    if (integers && sample->kind == WEIR_KIND_INT) {
        FUZZ_CHECK(number[strlen(number) - 1] == 'i');
        number[strlen(number) - 1] = '\0';
    }
    read_check_number(number, sample);
    return read_skip(text, "\n");
}

void servers_check_influx(const struct reader *reader, const struct written *written, const char *text,
                          int first)
{
    (void)first;
    for (int i = 0; i < WRITTEN_SAMPLES; i++)
        if (is_in_influx(&written->samples[i], reader_has(reader, "integers")))
            text = read_influx(reader, written, &written->samples[i], text);
    FUZZ_CHECK(!*text);
}

/* ---- prometheus ------------------------------------------------------------------------------ */

/* Each multibyte character becomes one character. */
static void put_name(char *out, const char *text, const char *others)
{
    for (; *text; text++) {
        char one[] = {*text, '\0'};
        if (((unsigned char)*text & 0xc0) != 0x80)
            *out++ = read_is_made_of(one, others) ? *text : '_';
    }
    *out = '\0';
}

/* Reads up to an unescaped character. Returns its position. */
static const char *read_escaped(const char *at, char stop, char *out)
{
    for (; *at && *at != stop; at++) {
        bool is_escaped = *at == '\\';
        at += is_escaped;
        *out++ = is_escaped && *at == 'n' ? '\n' : *at;
    }
    *out = '\0';
    return at;
}

/* What other types append to their names, a gauge must not end in. */
static const char *protection_of(const char *series)
{
    static const char *const endings[] = {"_total", "_count", "_sum", "_bucket", "_created", "_info"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(endings[i]);
        if (strlen(series) > length && strcmp(series + strlen(series) - length, endings[i]) == 0)
            return "_value";
    }
    return "";
}

/* The last sample that a double represents exactly. */
void servers_check_prometheus(const struct reader *reader, const struct written *written, const char *text,
                              int first)
{
    const weir_sample *sample = &written->samples[read_is_double(&written->samples[1])];
    char group[READ_ROOM], name[READ_ROOM], series[2 * READ_ROOM + 10], key[READ_ROOM], read[READ_ROOM],
        help[READ_ROOM];
    (void)first;
    put_name(group, written->group, "_:");
    put_name(name, written->name, "_:");
    snprintf(series, sizeof series, "%s%s_%s", *group >= '0' && *group <= '9' ? "_" : "", group, name);
    strcat(series, protection_of(series));
    text = read_skip(read_skip(read_skip(text, "# HELP "), series), " ");
    text = read_escaped(text, '\n', read);
    snprintf(help, sizeof help, "%s of %s", written->name, written->group);
    FUZZ_CHECK(strcmp(read, help) == 0);
    text = read_skip(read_skip(read_skip(text, "\n# TYPE "), series), " gauge\n");
    text = read_skip(text, series);
    if (*written->value) {
        text = read_copy_to(read_skip(text, "{"), '=', key);
        FUZZ_CHECK(*key && read_is_made_of(key, "_") && !(*key >= '0' && *key <= '9') &&
                   strncmp(key, "__", 2) != 0);
        text = read_escaped(read_skip(text, "=\""), '"', read);
        FUZZ_CHECK(strcmp(read, written->value) == 0);
        text = read_skip(text, "\"}");
    }
    text = read_copy_to(read_skip(text, " "), '\n', read);
    read_check_double(read, sample);
    bool is_openmetrics = strcmp(reader->format, "openmetrics") == 0;
    FUZZ_CHECK(!*read_skip(text, is_openmetrics ? "\n# EOF\n" : "\n"));
}

/* ---- graphite and statsd --------------------------------------------------------------------- */

/* Checks a path without empty nodes; plain names must be in it unchanged. */
static void check_path(const struct written *written, const char *path)
{
    char expected[2 * READ_ROOM];
    snprintf(expected, sizeof expected, "%s.%s", written->group, written->name);
    FUZZ_CHECK(*path && *path != '.' && !strstr(path, "..") && path[strlen(path) - 1] != '.');
    if (read_is_made_of(written->group, "_-.") && read_is_made_of(written->name, "_-"))
        FUZZ_CHECK(strcmp(path, expected) == 0);
}

/* reserves_name: the tag "name" is the path's: it gets '_' appended, and so do those that look like the result.
 */
static void check_tag(const struct written *written, const char *key, const char *value, bool reserves_name)
{
    char expected[READ_ROOM];
    bool is_reserved = reserves_name && strncmp(written->key, "name", 4) == 0 &&
                       !written->key[4 + strspn(written->key + 4, "_")];
    snprintf(expected, sizeof expected, "%s%s", written->key, is_reserved ? "_" : "");
    FUZZ_CHECK(*key && *value);
    if (read_is_made_of(written->key, "_-"))
        FUZZ_CHECK(strcmp(key, expected) == 0);
    if (read_is_made_of(written->value, "_-"))
        FUZZ_CHECK(strcmp(value, written->value) == 0);
}

void servers_check_graphite(const struct reader *reader, const struct written *written, const char *text,
                            int first)
{
    char path[READ_ROOM], key[READ_ROOM], value[READ_ROOM], seconds[READ_ROOM];
    (void)first;
    for (int i = 0; i < WRITTEN_SAMPLES; i++) {
        const weir_sample *sample = &written->samples[i];
        if (sample->time_ns < 0 || read_is_special(sample))
            continue;
        bool tagged = reader_has(reader, "tags") && *written->value;
        text = read_copy_to(text, tagged ? ';' : ' ', path);
        check_path(written, path);
        if (tagged) {
            text = read_copy_to(read_copy_to(text + 1, '=', key) + 1, ' ', value);
            check_tag(written, key, value, true);
        }
        text = read_copy_to(text + 1, ' ', value);
        read_check_number(value, sample);
        text = read_copy_to(text + 1, '\n', seconds);
        FUZZ_CHECK(strtoll(seconds, NULL, 10) == sample->time_ns / 1000000000);
        text++;
    }
    FUZZ_CHECK(!*text);
}

static const char *type_of(const struct reader *reader, const struct written *written)
{
    switch (written->instrument) {
    case WEIR_COUNTER: return "|c";
    case WEIR_HISTOGRAM: return reader_has(reader, "histograms") ? "|h" : "|ms";
    default: return "|g";
    }
}

/* Checks one line; sample NULL: a gauge is set to 0. Returns the next one. */
static const char *read_statsd(const struct reader *reader, const struct written *written,
                               const weir_sample *sample, const char *text)
{
    char path[READ_ROOM], number[READ_ROOM], key[READ_ROOM], value[READ_ROOM];
    text = read_copy_to(text, ':', path);
    check_path(written, path);
    text = read_copy_to(text + 1, '|', number);
    if (sample && (sample->kind == WEIR_KIND_INT || sample->value.f64 != 0))
        read_check_number(number, sample);
    else
        FUZZ_CHECK(strcmp(number, "0") == 0);
    text = read_skip(text, type_of(reader, written));
    if (reader_has(reader, "tags")) {
        text = read_skip(text, "|#");
        text = *written->value ? read_copy_to(read_copy_to(text, ':', key) + 1, '\n', value)
                               : read_copy_to(text, '\n', key);
        FUZZ_CHECK(*key && strcspn(key, ":|@#,") == strlen(key));
        if (*written->value && *value)
            check_tag(written, key, value, false);
    }
    return read_skip(text, "\n");
}

/* A gauge is set to 0 before a negative value; StatsD has no negative timers. */
void servers_check_statsd(const struct reader *reader, const struct written *written, const char *text,
                          int first)
{
    const char *type = type_of(reader, written);
    (void)first;
    for (int i = 0; i < WRITTEN_SAMPLES; i++) {
        const weir_sample *sample = &written->samples[i];
        bool is_negative = sample->kind == WEIR_KIND_INT ? sample->value.i64 < 0 : sample->value.f64 < 0;
        if (read_is_special(sample) || (is_negative && strcmp(type, "|ms") == 0))
            continue;
        if (is_negative && strcmp(type, "|g") == 0)
            text = read_statsd(reader, written, NULL, text);
        text = read_statsd(reader, written, sample, text);
    }
    FUZZ_CHECK(!*text);
}

/* ---- mlbench --------------------------------------------------------------------------------- */

/* Reads a form field, which must have this name. Returns the position after it. */
static const char *read_form(const char *at, const char *name, char *out)
{
    at = read_skip(read_skip(at, name), "=");
    for (; *at && *at != '&'; at++) {
        char number[] = {at[0] == '%' ? at[1] : '\0', at[0] == '%' ? at[2] : '\0', '\0'};
        FUZZ_CHECK((unsigned char)*at > ' ' && (unsigned char)*at < 0x7f);
        *out++ = *at == '%' ? (char)strtoul(number, NULL, 16) : *at == '+' ? ' ' : *at;
        at += *at == '%' ? 2 : 0;
    }
    *out = '\0';
    return at + (*at == '&');
}

static void check_date(const char *text, int64_t time_ns)
{
    struct tm date = {0};
    int microseconds, length = 0;
    sscanf(text, "%4d-%2d-%2d %2d:%2d:%2d.%6d%n", &date.tm_year, &date.tm_mon, &date.tm_mday, &date.tm_hour,
           &date.tm_min, &date.tm_sec, &microseconds, &length);
    FUZZ_CHECK(length == 26 && !text[length]);
    date.tm_year -= 1900;
    date.tm_mon--;
    wr_int128 read_ns = (wr_int128)timegm(&date) * 1000000000 + microseconds * 1000;
    FUZZ_CHECK(time_ns >= read_ns && time_ns - read_ns < 1000);
}

void servers_check_mlbench(const struct reader *reader, const struct written *written, const char *text,
                           int first)
{
    const weir_sample *sample = &written->samples[first];
    char field[READ_ROOM], name[2 * READ_ROOM];
    bool has_group = strcmp(reader->option, "group") == 0;
    text = read_form(text, has_group ? "run_id" : reader->option, field);
    FUZZ_CHECK(has_group || strcmp(field, reader->set_to) == 0);
    snprintf(name, sizeof name, "%s%s%s", has_group ? written->group : "", has_group ? "." : "", written->name);
    text = read_form(text, "name", field);
    FUZZ_CHECK(strcmp(field, name) == 0);
    text = read_form(text, "cumulative", field);
    FUZZ_CHECK(strcmp(field, "False") == 0);
    text = read_form(text, "date", field);
    check_date(field, sample->time_ns);
    text = read_form(text, "value", field);
    read_check_number(field, sample);
    text = read_form(text, "metadata", field);
    FUZZ_CHECK(strcmp(field, first == 0 ? written->note : "") == 0 && !*text);
}
