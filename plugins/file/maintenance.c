#include "maintenance.h"

#include <stdio.h>
#include <string.h>

#include "../output.h"
#include "archive.h"

enum { AGAIN_MS = 60000, SOON_MS = 1000 };

void wr_maintenance_init(struct maintenance *maintenance, const weir_host *host,
                         const struct settings *settings)
{
    *maintenance = (struct maintenance){.host = host, .settings = settings, .due_ms = INT64_MAX};
    wr_compress_init(&maintenance->compress, host);
}

static void say_once(struct maintenance *maintenance, const char *what, const char *path, int problem)
{
    maintenance->failed = true;
    if (maintenance->said)
        return;
    maintenance->said = true;
    maintenance->host->log(maintenance->host, 2, "%s cannot be %s (%s); tried again every minute", path, what,
                           system_strerror(problem));
}

static void start_round(struct maintenance *maintenance)
{
    maintenance->after_us = INT64_MIN;
    maintenance->after[0] = '\0';
}

void wr_maintenance_begin(struct maintenance *maintenance)
{
    if (!maintenance->settings->tends)
        return;
    maintenance->untrimmed = maintenance->settings->options->keep > 0;
    start_round(maintenance);
    /* what is under way keeps its pace, however fast new ones are made */
    if (maintenance->due_ms - SOON_MS > output_now_ms())
        maintenance->due_ms = output_now_ms();
}

static void trim(struct maintenance *maintenance, struct archive *archive)
{
    const char *stuck = "";
    int problem = wr_archive_trim(archive, (size_t)maintenance->settings->options->keep, &stuck);
    maintenance->untrimmed = false;
    if (problem)
        say_once(maintenance, "deleted", stuck, problem);
}

/* ---- Compressing ----------------------------------------------------------------------------- */

/* Round by round: the oldest first, and each but once, so that one that cannot be compressed is in nobody's
 * way. */
static const struct archive_file *find_next(const struct maintenance *maintenance,
                                            const struct archive *archive)
{
    for (size_t i = 0; i < archive->count; i++) {
        const struct archive_file *file = &archive->files[i];
        bool later = file->age_us != maintenance->after_us ? file->age_us > maintenance->after_us
                                                           : strcmp(file->path, maintenance->after) > 0;
        if ((file->plain || file->half) && later)
            return file;
    }
    return NULL;
}

static void end_round(struct maintenance *maintenance)
{
    maintenance->due_ms = maintenance->failed ? output_now_ms() + AGAIN_MS : INT64_MAX;
    maintenance->untrimmed = maintenance->failed && maintenance->settings->options->keep;
    maintenance->said = maintenance->said && maintenance->failed;
    maintenance->failed = false;
    start_round(maintenance);
}

static void judge(struct maintenance *maintenance, enum compress_state state)
{
    if (state == COMPRESS_FAILED)
        say_once(maintenance, "compressed", maintenance->compress.path, maintenance->compress.problem);
}

static void look_around(struct maintenance *maintenance, const char *current)
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
        maintenance->after_us = next->age_us;
        snprintf(maintenance->after, sizeof maintenance->after, "%s", next->path);
        judge(maintenance, wr_compress_begin(&maintenance->compress, next));
    } else {
        end_round(maintenance);
    }
    wr_archive_fini(&archive);
}

void wr_maintenance_go_on(struct maintenance *maintenance, const char *current)
{
    int64_t began_ms = output_now_ms();
    if (began_ms < maintenance->due_ms)
        return;
    if (maintenance->host->stopping(maintenance->host)) { /* the time that is left belongs to the values */
        maintenance->due_ms = INT64_MAX;
        return;
    }
    maintenance->due_ms = began_ms;
    if (wr_compress_is_busy(&maintenance->compress))
        judge(maintenance, wr_compress_go_on(&maintenance->compress));
    else
        look_around(maintenance, current);
    if (maintenance->due_ms > began_ms)
        return;
    /* as long again for the values that came meanwhile */
    int64_t now_ms = output_now_ms();
    maintenance->due_ms = now_ms + (now_ms - began_ms) + 1;
}

void wr_maintenance_stop(struct maintenance *maintenance, const char *current)
{
    struct archive archive;
    wr_compress_stop(&maintenance->compress);
    if (maintenance->untrimmed && wr_archive_list(&archive, maintenance->settings, current)) {
        trim(maintenance, &archive);
        wr_archive_fini(&archive);
    }
    maintenance->due_ms = INT64_MAX;
}

void wr_maintenance_abandon(const struct maintenance *maintenance)
{
    wr_compress_abandon(&maintenance->compress);
}
