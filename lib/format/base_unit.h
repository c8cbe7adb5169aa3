/* base_unit: Prometheus' base units, and how values in other units are converted to them. */
#ifndef WR_BASE_UNIT_H
#define WR_BASE_UNIT_H

struct wr_base_unit {
    const char *unit;           /* of the values: "ms" */
    const char *word;           /* what names end in that mention the unit: "ms" */
    const char *base;           /* "seconds" */
    double multiplier, divisor; /* integers, so that 75 ms are 0.075 s and not a neighbor of it */
};

/* Returns NULL for a unit that has no base unit, and for NULL. */
const struct wr_base_unit *wr_base_unit_find(const char *unit);

static inline double wr_base_unit_convert(const struct wr_base_unit *unit, double value)
{
    return unit ? value * unit->multiplier / unit->divisor : value;
}

#endif
