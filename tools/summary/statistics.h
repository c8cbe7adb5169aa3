/* statistics: of each series in some files: how many values, mean, spread, quantiles and course, in bounded
 * memory. Count, mean, standard deviation, smallest and largest are exact; quantiles are as in sketch.h. */
#ifndef WEIR_TOOLS_STATISTICS_H
#define WEIR_TOOLS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bins.h"
#include "parse/parser.h"
#include "summary/sketch.h"
#include "text/name_index.h"

enum { STATISTICS_SERIES_MOST = 20000 };

struct statistics_label {
    char *key, *value;
};

struct statistics_series {
    char *id; /* its group, name and labels, as shown */
    char *group, *name;
    struct statistics_label *labels; /* ascending by their keys */
    size_t label_count;
    struct wr_sketch sketch; /* of the finite values */
    double mean, squares;    /* of them; the sum of the squares of the differences from the mean */
    uint64_t others;         /* NaN and infinite values */
    double total;            /* the last running total */
    bool has_total;
    int64_t first_ns, last_ns; /* of its values that have a time */
    bool has_time;
    struct bins bins; /* since the first time of all */
};

struct statistics {
    const char *by; /* rows are of this label's values: the others are left out; NULL: of all labels */
    struct statistics_series **series; /* in the order of their first values */
    size_t count;
    uint32_t room;
    struct wr_name_index index; /* until they are sorted */
    int64_t start_ns, end_ns;   /* the first time that was seen, and the latest */
    bool has_start;
    uint64_t values;    /* of all series */
    uint64_t left_over; /* values of more series than STATISTICS_SERIES_MOST */
};

/* Adds the values of a record. group: of records that name none. Running totals count by their increments. */
void statistics_add(struct statistics *statistics, const struct wr_parse_record *record, const char *group);

/* Sorts the series by what is shown of them. No values can be added any more. */
void statistics_sort(struct statistics *statistics);

/* The sample standard deviation; NAN with fewer than two values. */
double statistics_deviation(const struct statistics_series *series);

#endif
