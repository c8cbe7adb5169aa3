/* neumaier: a sum of many doubles whose error does not grow with their number (Neumaier, 1974). */
#ifndef WR_NEUMAIER_H
#define WR_NEUMAIER_H

#include <math.h>

/* The sum is *sum + *compensation: the second collects what additions to the first have lost. */
static inline void wr_neumaier_add(double *sum, double *compensation, double value)
{
    double after = *sum + value;
    double lost = fabs(*sum) < fabs(value) ? (value - after) + *sum : (*sum - after) + value;
    *sum = after;
    if (isfinite(lost))
        *compensation += lost;
}

#endif
