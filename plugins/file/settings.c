#include "settings.h"

#include <string.h>
#include <time.h>

#include "../output.h"
#include "period.h"
#include "compress.h"
#include "template.h"

const weir_option wr_settings_table[] = {
    {"path", WEIR_OPTION_PATH, WEIR_OPTION_REQUIRED | WEIR_OPTION_DESTINATION, NULL, NULL,
     "the file; %Y-%m-%d and the like stand for the present date", offsetof(struct settings_options, path)},
    {"append", WEIR_OPTION_BOOL, 0, "true", NULL, "false: begin with an empty file",
     offsetof(struct settings_options, append)},
    {"mode", WEIR_OPTION_STRING, 0, "0644", NULL, "the permissions of a file that is created, in octal",
     offsetof(struct settings_options, mode)},
    {"create_folders", WEIR_OPTION_BOOL, 0, "false", NULL, "create the folders of the path that are missing",
     offsetof(struct settings_options, create_folders)},
    {"rotate_size", WEIR_OPTION_SIZE, 0, "0B", "0B..16TiB",
     "put the file aside before it grows beyond this; 0B: never",
     offsetof(struct settings_options, rotate_size)},
    {"rotate_every", WEIR_OPTION_DURATION, 0, "0s", "0s..366d",
     "put the file aside when this is over, by the clock: 1h, 1d, 7d; 0s: never",
     offsetof(struct settings_options, rotate_every_ns)},
    {"keep", WEIR_OPTION_INT, 0, "0", "0..1000000", "how many old files are kept; 0: all of them",
     offsetof(struct settings_options, keep)},
    {"compress", WEIR_OPTION_ENUM, 0, "none", "none|gzip", "how old files are compressed",
     offsetof(struct settings_options, compress)},
    {"utc", WEIR_OPTION_BOOL, 0, "false", NULL, "dates and days are those of UTC, not those of local time",
     offsetof(struct settings_options, utc)},
    {"fsync", WEIR_OPTION_ENUM, 0, "never", "never|interval|batch",
     "when what was written is forced to the disk", offsetof(struct settings_options, fsync)},
    {"fsync_interval", WEIR_OPTION_DURATION, 0, "1s", "10ms..1h", "how often, with fsync \"interval\"",
     offsetof(struct settings_options, fsync_interval_ns)},
    {0},
};

static bool check_path(const weir_host *host, const char *path)
{
    const char *wrong = wr_template_find_fault(path);
    if (!wrong)
        return true;
    host->refuse(host, "path", "\"%s\": \"%.*s\" is not a part of a date; allowed: %s", path,
                 wrong[1] > ' ' ? 2 : 1, wrong, WR_TEMPLATE_ALLOWED);
    return false;
}

static bool check_period(const weir_host *host, int64_t every_ns)
{
    if (!every_ns || wr_period_is_allowed(every_ns))
        return true;
    host->refuse(host, "rotate_every",
                 "%lld ms do not divide a day; allowed: parts of a day in whole seconds, like 15m, 1h, 6h, and "
                 "whole days, like 1d, 7d",
                 (long long)(every_ns / 1000000));
    return false;
}

static bool check_compression(const weir_host *host, const struct settings_options *options)
{
    if (options->compress != SETTINGS_GZIP || wr_compress_is_built())
        return true;
    host->refuse(host, "compress",
                 "\"gzip\" needs zlib, which this build of the handler type goes without; allowed: none");
    return false;
}

/* Old files that nothing ever makes. */
static bool check_rotation(const weir_host *host, const struct settings *settings)
{
    const struct settings_options *options = settings->options;
    const char *idle = options->keep ? "keep" : "compress";
    if (settings->rotates || settings->dated || !settings->tends)
        return true;
    host->refuse(
        host, idle,
        "there are no old files to it; it needs \"rotate_size\", \"rotate_every\" or a date in \"path\"");
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
    if (!output_set_mode(host, options->mode, &settings->mode) || !check_path(host, options->path) ||
        !check_period(host, options->rotate_every_ns) || !check_compression(host, options))
        return false;
    settings->header_length = strlen(settings->header);
    settings->dated = wr_template_is_dated(options->path);
    settings->dated_folders = wr_template_has_dated_folders(options->path);
    settings->rotates = options->rotate_size || options->rotate_every_ns;
    settings->tends = options->keep || options->compress == SETTINGS_GZIP;
    if (!check_rotation(host, settings))
        return false;
    /* here, where the program's environment may be read, and not by the worker's first look at the time */
    if (!options->utc && (settings->dated || options->rotate_every_ns))
        tzset();
    return true;
}
