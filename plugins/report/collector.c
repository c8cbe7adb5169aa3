#include "collector.h"

#include <stdlib.h>
#include <string.h>

void collector_init(struct collector *collector, size_t width, size_t most)
{
    *collector = (struct collector){.width = width, .most = most + most % 2, .stride = 1};
}

void collector_fini(struct collector *collector)
{
    free(collector->rows);
    collector->rows = NULL;
    collector->count = collector->room = 0;
}

static bool reserve(struct collector *collector)
{
    enum { FIRST = 16 };
    if (collector->count < collector->room)
        return true;
    size_t room = collector->room ? collector->room * 2 : FIRST;
    room = room < collector->most ? room : collector->most;
    double *rows = realloc(collector->rows, room * collector->width * sizeof *rows);
    if (!rows)
        return false;
    collector->rows = rows;
    collector->room = room;
    return true;
}

/* The number of rows is even, so the next row that is due by the old stride is due by the new one too. */
static void halve(struct collector *collector)
{
    size_t width = collector->width;
    collector->count /= 2;
    for (size_t i = 1; i < collector->count; i++)
        memcpy(collector->rows + i * width, collector->rows + 2 * i * width, width * sizeof *collector->rows);
    collector->stride *= 2;
}

bool collector_offer(struct collector *collector, const double *row)
{
    if (collector->offered % collector->stride == 0) {
        if (collector->count == collector->most)
            halve(collector);
        if (!reserve(collector))
            return false;
        memcpy(collector->rows + collector->count++ * collector->width, row,
               collector->width * sizeof *collector->rows);
    }
    collector->offered++;
    return true;
}
