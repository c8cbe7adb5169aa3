#include "settings.h"

#include <string.h>
#include <time.h>

#include "../output.h"
#include "period.h"
#include "compress.h"
#include "template.h"

const weir_option wr_settings_table[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED | WEIR_OPTION_DESTINATION, NULL, NULL,
                    "the file, optionally with date fields (metrics-%Y-%m-%d.jsonl)", struct settings_options,
                    path),
    WEIR_OPTION_ROW("append", BOOL, 0, "true", NULL, "false: start with an empty file", struct settings_options,
                    append),
    WEIR_OPTION_ROW("mode", STRING, 0, "0644", NULL,
                    "the permissions of a created file, in octal, regardless of the umask",
                    struct settings_options, mode),
    WEIR_OPTION_ROW("create_folders", BOOL, 0, "false", NULL,
                    "create missing folders of the path; folders with date fields are always created",
                    struct settings_options, create_folders),
    WEIR_OPTION_ROW("rotate_size", SIZE, 0, "0B", "0B..16TiB",
                    "rotate before the file exceeds this size; 0B: never", struct settings_options,
                    rotate_size),
    WEIR_OPTION_ROW("rotate_every", DURATION, 0, "0s", "0s..366d",
                    "rotate when this period ends, by the clock: 1h, 1d, 7d; 0s: never",
                    struct settings_options, rotate_every_ns),
    WEIR_OPTION_ROW("keep", INT, 0, "0", "0..1000000", "how many old files to keep; 0: all",
                    struct settings_options, keep),
    WEIR_OPTION_ROW("compress", ENUM, 0, "none", "none|gzip", "how to compress old files",
                    struct settings_options, compress),
    WEIR_OPTION_ROW("utc", BOOL, 0, "false", NULL, "use UTC instead of local time for dates and days",
                    struct settings_options, utc),
    WEIR_OPTION_ROW("fsync", ENUM, 0, "never", "never|interval|batch", "when to force written data to disk",
                    struct settings_options, fsync),
    WEIR_OPTION_ROW("fsync_interval", DURATION, 0, "1s", "10ms..1h", "how often, with fsync \"interval\"",
                    struct settings_options, fsync_interval_ns),
    {0},
};

static bool check_path(const weir_host *host, const char *path)
{
    const char *invalid = wr_template_find_error(path);
    if (!invalid)
        return true;
    host->refuse(host, "path", "\"%s\": \"%.*s\" is not a date field; allowed: %s", path,
                 invalid[1] > ' ' ? 2 : 1, invalid, WR_TEMPLATE_ALLOWED);
    return false;
}

static bool check_period(const weir_host *host, int64_t every_ns)
{
    if (!every_ns || wr_period_is_allowed(every_ns))
        return true;
    host->refuse(
        host, "rotate_every",
        "%lld ms does not divide a day; allowed: fractions of a day in whole seconds, like 15m, 1h, 6h, and "
        "whole days, like 1d, 7d",
        (long long)(every_ns / 1000000));
    return false;
}

static bool check_compression(const weir_host *host, const struct settings_options *options)
{
    if (options->compress != SETTINGS_GZIP || wr_compress_is_available())
        return true;
    host->refuse(host, "compress", "\"gzip\" requires zlib, which this build does not have; allowed: none");
    return false;
}

/* `keep` and `compress` have no effect unless old files are created. */
static bool check_rotation(const weir_host *host, const struct settings *settings)
{
    const struct settings_options *options = settings->options;
    const char *option = options->keep ? "keep" : "compress";
    if (settings->rotates || settings->dated || !settings->maintains)
        return true;
    host->refuse(host, option, "it requires \"rotate_size\", \"rotate_every\" or date fields in \"path\"");
    return false;
}

static const char *find_header(const weir_host *host)
{
    const weir_encoder *encoder = host->service(host, WEIR_SERVICE_ENCODER);
    return encoder->header(host);
}

bool wr_settings_init(struct settings *settings, const weir_host *host, const struct settings_options *options)
{
    *settings = (struct settings){.options = options, .header = find_header(host)};
    if (!wr_output_set_mode(host, options->mode, &settings->mode) || !check_path(host, options->path) ||
        !check_period(host, options->rotate_every_ns) || !check_compression(host, options))
        return false;
    settings->header_length = strlen(settings->header);
    settings->dated = wr_template_is_dated(options->path);
    settings->dated_folders = wr_template_has_dated_folders(options->path);
    settings->rotates = options->rotate_size || options->rotate_every_ns;
    settings->maintains = options->keep || options->compress == SETTINGS_GZIP;
    if (!check_rotation(host, settings))
        return false;
    /* here, in the thread that configures, and not in the worker's first use of the local time: reading TZ
     * is not safe while the program may change its environment */
    if (!options->utc && (settings->dated || options->rotate_every_ns))
        tzset();
    return true;
}
