/* series_text: what a series is called in Prometheus' formats, by the naming rules of Prometheus. Used by the
 * formats and by the plugin prometheus, which has its own copy of the code: it uses nothing else of the core
 * but registry/labels_walk, text/buffer and text/number. */
#ifndef WR_SERIES_TEXT_H
#define WR_SERIES_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "format/base_unit.h"

struct wr_buffer;

enum wr_series_type { WR_SERIES_COUNTER, WR_SERIES_HISTOGRAM, WR_SERIES_GAUGE };

/* Which part of a histogram a series is; OTHER: none. In the order in which a histogram is written. */
enum wr_series_part { WR_SERIES_BUCKET, WR_SERIES_SUM, WR_SERIES_COUNT, WR_SERIES_OTHER };

struct wr_series_rules {
    bool base_units;      /* values in ms, KiB and the like are converted to seconds and bytes */
    bool adds_increments; /* the increments of a counter are added up, and so are a counter */
};

struct wr_series_text {
    enum wr_series_type type;
    enum wr_series_part part;
    const struct wr_base_unit *unit; /* to convert from; NULL: none */
    bool has_unit;                   /* the family's name ends in the base unit */
    bool has_group;                  /* there is a label `group` */
    /* Set by wr_exposition_write: what keeps it apart, from then on. */
    uint8_t named; /* 0: not named yet; else how many words the family's name has besides, plus 1 */
    bool puts_group, puts_name, puts_labels;
    double le;    /* of a bucket, converted */
    char *family; /* the name without _total, _bucket and so on; owned, ends in NUL */
    char *labels; /* a="b",c="d" without le; in the memory of family, ends in NUL */
};

/* Returns false if out of memory. */
bool wr_series_text_init(struct wr_series_text *text, const weir_series *series, const weir_batch *batch,
                         const struct wr_series_rules *rules);

void wr_series_text_fini(struct wr_series_text *text);

/* Appends text with a backslash before each of `marks`, and \n for a line break. */
void wr_series_text_put_escaped(struct wr_buffer *out, const char *text, const char *marks);

#endif
