#include "chunk.h"

#include <math.h>
#include <string.h>

enum { CHUNK_VERSION = 1, ALL_ZERO = 0x80 };

double chunk_value(const struct chunk_point *point)
{
    return point->is_int ? (double)point->value.i64 : point->value.f64;
}

double chunk_rise(double earlier, double later)
{
    if (later >= earlier)
        return later - earlier;
    return later > 0 ? later : 0;
}

void chunk_count(struct chunk_totals *totals, double value)
{
    totals->count++;
    if (!isfinite(value))
        return;
    totals->finite++;
    totals->sum += value;
    totals->min = value < totals->min || isnan(totals->min) ? value : totals->min;
    totals->max = value > totals->max || isnan(totals->max) ? value : totals->max;
    if (isnan(totals->first))
        totals->first = value;
    else
        totals->rise += chunk_rise(totals->last, value);
    totals->last = value;
}

/* ---- Packing --------------------------------------------------------------------------------- */

static bool is_exact(int64_t number)
{
    return number >= -(INT64_C(1) << 53) && number <= INT64_C(1) << 53;
}

size_t chunk_fit(const struct chunk_point *points, size_t count)
{
    size_t most = count < CHUNK_POINTS ? count : CHUNK_POINTS;
    bool has_double = false, has_wide = false;
    for (size_t i = 0; i < most; i++) {
        bool is_wide = points[i].is_int && !is_exact(points[i].value.i64);
        if (i && ((has_wide && !points[i].is_int) || (has_double && is_wide)))
            return i;
        has_double |= !points[i].is_int;
        has_wide |= is_wide;
    }
    return most;
}

static uint8_t *put_varint(uint8_t *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

static uint64_t difference(int64_t later, int64_t earlier)
{
    return (uint64_t)later - (uint64_t)earlier;
}

static uint64_t find_unit(const struct chunk_point *points, size_t count)
{
    uint64_t unit = 0;
    for (size_t i = 1; i < count && unit != 1; i++) {
        uint64_t other = difference(points[i].time_ns, points[i - 1].time_ns);
        while (other) {
            uint64_t rest = unit % other;
            unit = other;
            other = rest;
        }
    }
    return unit ? unit : 1;
}

static uint8_t *put_double(uint8_t *at, double value, uint64_t *before)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t changed = bits ^ *before;
    *before = bits;
    if (!changed) {
        *at++ = ALL_ZERO;
        return at;
    }
    unsigned leading = (unsigned)__builtin_clzll(changed) / 8,
             trailing = (unsigned)__builtin_ctzll(changed) / 8;
    *at++ = (uint8_t)(leading << 4 | trailing);
    for (unsigned byte = leading; byte < 8 - trailing; byte++)
        *at++ = (uint8_t)(changed >> (56 - 8 * byte));
    return at;
}

static uint8_t *put_int(uint8_t *at, int64_t value, int64_t *before)
{
    uint64_t change = difference(value, *before);
    *before = value;
    return put_varint(at, change << 1 ^ (uint64_t) - (int64_t)(change >> 63));
}

size_t chunk_pack(const struct chunk_point *points, size_t count, uint8_t *bytes)
{
    bool are_ints = true;
    for (size_t i = 0; i < count; i++)
        are_ints &= points[i].is_int;
    uint64_t unit = find_unit(points, count), bits = 0;
    int64_t number = 0;
    uint8_t *at = bytes;
    *at++ = CHUNK_VERSION;
    *at++ = are_ints ? CHUNK_INTS : CHUNK_DOUBLES;
    at = put_varint(put_varint(at, count), unit);
    for (unsigned byte = 0; byte < 8; byte++)
        *at++ = (uint8_t)((uint64_t)points[0].time_ns >> 8 * byte);
    for (size_t i = 1; i < count; i++)
        at = put_varint(at, difference(points[i].time_ns, points[i - 1].time_ns) / unit);
    for (size_t i = 0; i < count; i++)
        at = are_ints ? put_int(at, points[i].value.i64, &number)
                      : put_double(at, chunk_value(&points[i]), &bits);
    return (size_t)(at - bytes);
}

/* ---- Unpacking ------------------------------------------------------------------------------- */

struct input {
    const uint8_t *at, *end;
    bool is_broken;
};

static uint8_t take_byte(struct input *input)
{
    if (input->at < input->end)
        return *input->at++;
    input->is_broken = true;
    return 0;
}

static uint64_t take_varint(struct input *input)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = take_byte(input);
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return number;
    }
    input->is_broken = true;
    return 0;
}

static double take_double(struct input *input, uint64_t *before)
{
    double value;
    uint8_t zeros = take_byte(input);
    unsigned leading = zeros >> 4, trailing = zeros & 15;
    input->is_broken |= zeros != ALL_ZERO && leading + trailing > 7;
    for (unsigned byte = leading; !input->is_broken && zeros != ALL_ZERO && byte < 8 - trailing; byte++)
        *before ^= (uint64_t)take_byte(input) << (56 - 8 * byte);
    memcpy(&value, before, sizeof value);
    return value;
}

static int64_t take_int(struct input *input, int64_t *before)
{
    uint64_t zigzag = take_varint(input);
    *before = (int64_t)((uint64_t)*before + (zigzag >> 1 ^ (uint64_t) - (int64_t)(zigzag & 1)));
    return *before;
}

static void take_times(struct input *input, struct chunk_point *points, size_t count, uint64_t unit)
{
    uint64_t time = 0;
    for (unsigned byte = 0; byte < 8; byte++)
        time |= (uint64_t)take_byte(input) << 8 * byte;
    points[0].time_ns = (int64_t)time;
    for (size_t i = 1; i < count; i++) {
        time += take_varint(input) * unit;
        points[i].time_ns = (int64_t)time;
    }
}

size_t chunk_unpack(const uint8_t *bytes, size_t length, struct chunk_point *points)
{
    struct input input = {bytes, bytes + length, false};
    bool is_known = take_byte(&input) == CHUNK_VERSION;
    uint8_t what = take_byte(&input);
    uint64_t count = take_varint(&input), unit = take_varint(&input), bits = 0;
    int64_t number = 0;
    if (!is_known || what > CHUNK_INTS || count == 0 || count > CHUNK_POINTS || input.is_broken)
        return 0;
    take_times(&input, points, count, unit);
    for (size_t i = 0; i < count; i++) {
        points[i].is_int = what == CHUNK_INTS;
        if (points[i].is_int)
            points[i].value.i64 = take_int(&input, &number);
        else
            points[i].value.f64 = take_double(&input, &bits);
    }
    return input.is_broken || input.at != input.end ? 0 : count;
}
