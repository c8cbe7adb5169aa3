#include "read.h"

#include <inttypes.h>
#include <math.h>

#include "text/common.h"
#include "fuzz.h"

const char *read_skip(const char *at, const char *word)
{
    FUZZ_CHECK(strncmp(at, word, strlen(word)) == 0);
    return at + strlen(word);
}

const char *read_copy_to(const char *at, char stop, char *out)
{
    const char *end = strchr(at, stop);
    FUZZ_CHECK(end && end - at < READ_ROOM);
    memcpy(out, at, (size_t)(end - at));
    out[end - at] = '\0';
    return end;
}

bool read_is_special(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_DOUBLE && !isfinite(sample->value.f64);
}

void read_check_number(const char *text, const weir_sample *sample)
{
    char expected[32], *end;
    double value = strtod(text, &end);
    FUZZ_CHECK(*text && !*end);
    snprintf(expected, sizeof expected, "%" PRId64, sample->value.i64);
    if (sample->kind == WEIR_KIND_INT)
        FUZZ_CHECK(strcmp(text, expected) == 0);
    else if (isnan(sample->value.f64))
        FUZZ_CHECK(isnan(value));
    else
        FUZZ_CHECK(memcmp(&value, &sample->value.f64, sizeof value) == 0);
}

void read_check_double(const char *text, const weir_sample *sample)
{
    weir_sample as_double = *sample;
    as_double.kind = WEIR_KIND_DOUBLE;
    if (sample->kind == WEIR_KIND_INT)
        as_double.value.f64 = (double)sample->value.i64;
    read_check_number(text, &as_double);
}

bool read_is_double(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_DOUBLE || (wr_int128)(double)sample->value.i64 == sample->value.i64;
}

void read_put_time(char out[READ_ROOM], int64_t time_ns, int decimals)
{
    wr_int128 size = time_ns < 0 ? -(wr_int128)time_ns : time_ns;
    int length = snprintf(out, READ_ROOM, "%s%" PRId64 ".%09" PRId64, time_ns < 0 ? "-" : "",
                          (int64_t)(size / 1000000000), (int64_t)(size % 1000000000));
    out[length - 9 + decimals] = '\0';
}

bool read_is_made_of(const char *text, const char *others)
{
    for (; *text; text++)
        if (!(*text >= 'a' && *text <= 'z') && !(*text >= 'A' && *text <= 'Z') &&
            !(*text >= '0' && *text <= '9') && !strchr(others, *text))
            return false;
    return true;
}
