/* metric_path: names for destinations with paths of nodes separated by dots: Graphite, StatsD. */
#ifndef WR_METRIC_PATH_H
#define WR_METRIC_PATH_H

#include <stdbool.h>

#include <weir/handler.h>

struct wr_buffer;

/* How characters are replaced. Blanks of any kind and invisible characters always become '_'. */
struct wr_metric_path_rules {
    bool encode; /* instead of '_' each of their bytes becomes %XX, so that different texts stay different */
    const char *strip;   /* these are removed */
    const char *replace; /* these become '_' */
};

/* Appends a path. A node that is empty, or becomes empty, is written as '_'. */
void wr_metric_path_put(struct wr_buffer *out, const char *text, const struct wr_metric_path_rules *rules);

/* Appends group, unless it is NULL, and name of a series. A format that writes no labels writes the bound of a
 * histogram's bucket as a node: NAME.bucket.0_5, NAME.bucket.inf. */
void wr_metric_path_put_series(struct wr_buffer *out, const char *group, const weir_series *series,
                               bool has_labels, const struct wr_metric_path_rules *rules);

/* Appends a text that is not a path, like a tag: dots have no meaning, and empty texts stay empty. */
void wr_metric_path_put_word(struct wr_buffer *out, const char *text, const struct wr_metric_path_rules *rules);

#endif
