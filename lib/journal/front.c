#include "journal/front.h"

#include <string.h>

#include "text/common.h"

static void remove_range(struct wr_front *front, uint32_t i)
{
    front->count--;
    memmove(&front->ranges[i], &front->ranges[i + 1], (front->count - i) * sizeof *front->ranges);
}

void wr_front_add(struct wr_front *front, uint64_t from, uint64_t to)
{
    uint32_t i = 0;
    while (i < front->count) {
        const struct wr_front_range range = front->ranges[i];
        if (range.to < from || range.from > to) {
            i++;
            continue;
        }
        from = range.from < from ? range.from : from;
        to = range.to > to ? range.to : to;
        remove_range(front, i);
        i = 0; /* it is larger now, and may touch one that was passed */
    }
    if (front->count == WR_FRONT_RANGES)
        remove_range(front, 0);
    front->ranges[front->count++] = (struct wr_front_range){from, to};
}

static const struct wr_front_range *find_range(const struct wr_front *front, uint64_t number)
{
    for (uint32_t i = 0; i < front->count; i++)
        if (front->ranges[i].from <= number && number < front->ranges[i].to)
            return &front->ranges[i];
    return NULL;
}

/* Ranges are not adjacent, so the end of one is in no other. */
bool wr_front_missing(const struct wr_front *front, uint64_t first, uint64_t end, uint64_t *missing,
                      uint64_t *missing_end)
{
    const struct wr_front_range *range = find_range(front, first);
    uint64_t lowest = range ? range->to : first;
    if (lowest >= end)
        return false;
    for (uint32_t i = 0; i < front->count; i++)
        if (front->ranges[i].from > lowest && front->ranges[i].from < end)
            end = front->ranges[i].from;
    *missing = lowest;
    *missing_end = end;
    return true;
}

bool wr_front_read(const char *text, struct wr_front_origin *origin)
{
    enum { DIGITS = 32 };
    *origin = (struct wr_front_origin){0};
    for (int i = 0; text && i < DIGITS; i++) {
        int digit = wr_hex_digit(text[i], 'a');
        if (digit < 0)
            return false;
        origin->words[i / 16] = origin->words[i / 16] << 4 | (uint64_t)digit;
    }
    return text && !text[DIGITS];
}
