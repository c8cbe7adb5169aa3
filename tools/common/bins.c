#include "bins.h"

#include <math.h>
#include <stdbool.h>

static void halve(struct bins *bins)
{
    for (size_t i = 0; i < BINS; i++) {
        size_t from = 2 * i;
        bool has_both = from + 1 < BINS;
        bins->sums[i] = has_both ? bins->sums[from] + bins->sums[from + 1] : 0;
        bins->counts[i] = has_both ? bins->counts[from] + bins->counts[from + 1] : 0;
    }
    bins->bin_ns *= 2;
}

void bins_put(struct bins *bins, int64_t age_ns, double value)
{
    enum { DAYS_MOST = 365, FIRST_NS = 1000000 };
    const int64_t most_ns = INT64_C(86400000000000) * DAYS_MOST;
    age_ns = age_ns < 0 ? 0 : age_ns < most_ns ? age_ns : most_ns;
    bins->bin_ns = bins->bin_ns ? bins->bin_ns : FIRST_NS;
    while (age_ns / bins->bin_ns >= BINS)
        halve(bins);
    bins->sums[age_ns / bins->bin_ns] += value;
    bins->counts[age_ns / bins->bin_ns]++;
}

size_t bins_find_means(const struct bins *bins, int64_t duration_ns, size_t columns, double *means)
{
    int64_t all = bins->bin_ns ? duration_ns / bins->bin_ns + 1 : 0;
    size_t used = all < BINS ? (size_t)all : BINS;
    size_t shown = used < columns ? used : columns;
    for (size_t i = 0; i < shown; i++) {
        double sum = 0, count = 0;
        for (size_t bin = i * used / shown; bin < (i + 1) * used / shown; bin++) {
            sum += bins->sums[bin];
            count += (double)bins->counts[bin];
        }
        means[i] = count > 0 ? sum / count : NAN;
    }
    return shown;
}
