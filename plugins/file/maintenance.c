#include "maintenance.h"

#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "../output.h"
#include "archive.h"
#include "file_lock.h"

enum { RETRY_MS = 60000, SOON_MS = 1000 };

void wr_maintenance_init(struct maintenance *maintenance, const weir_host *host,
                         const struct settings *settings)
{
    *maintenance = (struct maintenance){.host = host, .settings = settings, .due_ms = INT64_MAX};
    wr_compress_init(&maintenance->compression, host);
}

static void log_failure(struct maintenance *maintenance, const char *what, const char *path, int error)
{
    maintenance->failed = true;
    if (maintenance->logged)
        return;
    maintenance->logged = true;
    maintenance->host->log(maintenance->host, WEIR_LOG_WARNING,
                           "%s cannot be %s (%s); next attempt in a minute", path, what,
                           wr_file_error_text(error));
}

static void start_pass(struct maintenance *maintenance)
{
    maintenance->last_age_us = INT64_MIN;
    maintenance->last_path[0] = '\0';
}

void wr_maintenance_begin(struct maintenance *maintenance)
{
    if (!maintenance->settings->maintains)
        return;
    maintenance->untrimmed = maintenance->settings->options->keep > 0;
    start_pass(maintenance);
    /* work in progress keeps its pace, however fast new files are created */
    if (maintenance->due_ms - SOON_MS > wr_output_now_ms())
        maintenance->due_ms = wr_output_now_ms();
}

static void trim(struct maintenance *maintenance, struct archive *archive)
{
    const char *failed_path = "";
    int error = wr_archive_trim(archive, (size_t)maintenance->settings->options->keep, &failed_path);
    maintenance->untrimmed = false;
    if (error)
        log_failure(maintenance, "deleted", failed_path, error);
}

/* ---- Compressing ----------------------------------------------------------------------------- */

/* The next file of this pass: from the oldest to the newest, each once, so that a file that cannot be
 * compressed does not block the others. */
static const struct archive_file *find_next(const struct maintenance *maintenance,
                                            const struct archive *archive)
{
    for (size_t i = 0; i < archive->count; i++) {
        const struct archive_file *file = &archive->files[i];
        bool later = file->age_us != maintenance->last_age_us ? file->age_us > maintenance->last_age_us
                                                              : strcmp(file->path, maintenance->last_path) > 0;
        if ((file->has_original || file->has_partial) && later)
            return file;
    }
    return NULL;
}

static void end_pass(struct maintenance *maintenance)
{
    maintenance->due_ms = maintenance->failed ? wr_output_now_ms() + RETRY_MS : INT64_MAX;
    maintenance->untrimmed = maintenance->failed && maintenance->settings->options->keep;
    maintenance->logged = maintenance->logged && maintenance->failed;
    maintenance->failed = false;
    start_pass(maintenance);
}

static void check_result(struct maintenance *maintenance, enum compress_state state)
{
    if (state == COMPRESS_FAILED)
        log_failure(maintenance, "compressed", maintenance->compression.path, maintenance->compression.error);
}

static void start_next(struct maintenance *maintenance, const char *current)
{
    struct archive archive;
    const struct archive_file *next = NULL;
    if (wr_archive_list(&archive, maintenance->settings, current)) {
        if (maintenance->untrimmed)
            trim(maintenance, &archive);
        if (maintenance->settings->options->compress == SETTINGS_GZIP)
            next = find_next(maintenance, &archive);
    }
    if (next) {
        maintenance->last_age_us = next->age_us;
        snprintf(maintenance->last_path, sizeof maintenance->last_path, "%s", next->path);
        check_result(maintenance, wr_compress_begin(&maintenance->compression, next));
    } else {
        end_pass(maintenance);
    }
    wr_archive_fini(&archive);
}

void wr_maintenance_run(struct maintenance *maintenance, const char *current)
{
    int64_t began_ms = wr_output_now_ms();
    if (began_ms < maintenance->due_ms)
        return;
    if (maintenance->host->stopping(maintenance->host)) { /* leave the remaining time to the values */
        maintenance->due_ms = INT64_MAX;
        return;
    }
    maintenance->due_ms = began_ms;
    if (wr_compress_is_busy(&maintenance->compression))
        check_result(maintenance, wr_compress_step(&maintenance->compression));
    else
        start_next(maintenance, current);
    if (maintenance->due_ms > began_ms)
        return;
    /* leave the same time to the values */
    int64_t now_ms = wr_output_now_ms();
    maintenance->due_ms = now_ms + (now_ms - began_ms) + 1;
}

void wr_maintenance_stop(struct maintenance *maintenance, const char *current)
{
    struct archive archive;
    wr_compress_stop(&maintenance->compression);
    if (maintenance->untrimmed && wr_archive_list(&archive, maintenance->settings, current)) {
        trim(maintenance, &archive);
        wr_archive_fini(&archive);
    }
    maintenance->due_ms = INT64_MAX;
}

void wr_maintenance_abandon(const struct maintenance *maintenance)
{
    wr_compress_abandon(&maintenance->compression);
}
