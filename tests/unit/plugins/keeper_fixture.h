/* keeper_fixture: the service series/1, which counts how many series are kept. */
#ifndef KEEPER_FIXTURE_H
#define KEEPER_FIXTURE_H

#include <weir/handler.h>

static int fixture_kept;

static inline void keep_series(const weir_host *host, const weir_series *series)
{
    (void)host, (void)series;
    fixture_kept++;
}

static inline void release_series(const weir_host *host, const weir_series *series)
{
    (void)host, (void)series;
    fixture_kept--;
}

static const weir_series_keeper fixture_keeper = {sizeof fixture_keeper, keep_series, release_series};

#endif
