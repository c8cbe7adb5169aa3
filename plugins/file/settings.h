/* settings: the handler type's option table, checks of option combinations, and values derived from options. */
#ifndef FILE_SETTINGS_H
#define FILE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <weir/handler.h>

enum { SETTINGS_GZIP = 1 };                               /* value of `compress` */
enum { SETTINGS_SYNC_INTERVAL = 1, SETTINGS_SYNC_BATCH }; /* values of `fsync` */

/* Filled by the core. */
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
    const char *header; /* the beginning of each file; "": none */
    size_t header_length;
    bool dated;         /* the path contains date fields */
    bool dated_folders; /* its folders contain date fields */
    bool rotates;       /* rotate_size or rotate_every is set */
    bool maintains;     /* old files are compressed or deleted */
};

/* Checks the options and derives the settings. Returns false after host->refuse. */
bool wr_settings_init(struct settings *settings, const weir_host *host, const struct settings_options *options);

#endif
