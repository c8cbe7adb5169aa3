#include "format/base_unit.h"

#include <stddef.h>
#include <string.h>

/* https://prometheus.io/docs/practices/naming/#base-units */
static const struct wr_base_unit units[] = {
    {"s", "s", "seconds", 1, 1},         {"seconds", "seconds", "seconds", 1, 1},
    {"ms", "ms", "seconds", 1, 1e3},     {"us", "us", "seconds", 1, 1e6},
    {"ns", "ns", "seconds", 1, 1e9},     {"min", "minutes", "seconds", 60, 1},
    {"h", "hours", "seconds", 3600, 1},  {"bytes", "bytes", "bytes", 1, 1},
    {"byte", "bytes", "bytes", 1, 1},    {"B", "bytes", "bytes", 1, 1},
    {"By", "bytes", "bytes", 1, 1},      {"kB", "kb", "bytes", 1e3, 1},
    {"MB", "mb", "bytes", 1e6, 1},       {"KiB", "kib", "bytes", 1024, 1},
    {"MiB", "mib", "bytes", 1048576, 1}, {"GiB", "gib", "bytes", 1073741824, 1},
    {"%", "percent", "ratio", 1, 100},
};

const struct wr_base_unit *wr_base_unit_find(const char *unit)
{
    for (size_t i = 0; unit && i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].unit, unit) == 0)
            return &units[i];
    return NULL;
}
