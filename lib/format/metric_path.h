/* path: names for destinations that know them as paths of nodes with dots in between: Graphite, StatsD. */
#ifndef WR_METRIC_PATH_H
#define WR_METRIC_PATH_H

struct wr_buffer;

/* What becomes of characters that cannot stay as they are. Blanks of any kind, and characters that show
 * nothing, always become '_'. */
struct wr_metric_path_rules {
    const char *strip;   /* these are left out */
    const char *replace; /* these become '_' */
};

/* Appends a part of a path. A node that is empty, or has become so, is '_'. */
void wr_metric_path_put(struct wr_buffer *out, const char *text, const struct wr_metric_path_rules *rules);

/* Appends what is beside the path, like a tag: the same, but dots mean nothing, and what is empty stays so. */
void wr_metric_path_put_word(struct wr_buffer *out, const char *text, const struct wr_metric_path_rules *rules);

#endif
