/* settings: the options of the handler type, and what in them does not go together. */
#ifndef FILE_SETTINGS_H
#define FILE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <weir/handler.h>

enum { SETTINGS_GZIP = 1 };                               /* of compress */
enum { SETTINGS_SYNC_INTERVAL = 1, SETTINGS_SYNC_BATCH }; /* of fsync */

/* As the core fills it. */
struct settings_options {
    const char *path;
    bool append;
    const char *mode;
    bool create_folders;
    int64_t rotate_size, rotate_every_ns;
    int64_t keep;
    int64_t compress;
    bool utc;
    int64_t fsync, fsync_interval_ns;
};

extern const weir_option wr_settings_table[];

struct settings {
    const struct settings_options *options;
    mode_t mode;
    const char *header; /* what each file begins with; "": nothing */
    size_t header_length;
    bool dated;         /* the path has a date in it */
    bool dated_folders; /* so have its folders */
    bool rotates;       /* files are put aside by the handler itself */
    bool tends;         /* old files are compressed, or deleted */
};

/* Checks the options and works them out. false: refused, by host->refuse. */
bool wr_settings_init(struct settings *settings, const weir_host *host, const struct settings_options *options);

#endif
