/* scraping: the common part of the programs that are scraped: reads the arguments, changes all series and
 * scrapes, in turn, and prints the report, one JSON object, on stdout. The scraper is in the same process: it
 * adds the same memory to each of them. */
#ifndef BENCH_SCRAPING_H
#define BENCH_SCRAPING_H

#ifdef __cplusplus
extern "C" {
#endif

enum { SCRAPING_NAMES = 10 }; /* the series are so many counters with as many label sets as it takes */

struct scraping_subject {
    /* Listens on a loopback port, and makes `series` counters, in SCRAPING_NAMES families. */
    void (*open)(int port, long series);

    /* Adds 1 to each of them. Returns when a scrape shows it. */
    void (*change)(void);
};

/* The main function of the program. Arguments: port=, series=, scrapes=. */
int scraping(int argc, char **argv, const struct scraping_subject *subject);

#ifdef __cplusplus
}
#endif

#endif
