/* file: appends values to a file, whole lines at a time, and puts the file aside when it is large or old.
 *
 * The options are in settings.c; the file in target.c; writing to it in writer.c; putting it aside in
 * rotation.c; the old files in archive.c, what becomes of them in maintenance.c and compress.c. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>

#include "../output.h"
#include "settings.h"
#include "maintenance.h"
#include "writer.h"

struct file {
    const weir_host *host;
    const weir_encoder *encoder;
    struct settings settings;
    struct writer writer;
    struct maintenance maintenance;
    unsigned opened;     /* the target's, when old files were thought of last */
    int64_t sync_due_ms; /* with fsync "interval"; INT64_MAX: nothing is to be forced to the disk */
    int64_t wake_ms;     /* what wake_in was asked for last; INT64_MAX: nothing */
    bool said_special;   /* that it is no file that could be rotated */
};

/* ---- Creating -------------------------------------------------------------------------------- */

static void *file_create(const weir_host *host, const void *given)
{
    struct settings settings;
    if (!wr_settings_init(&settings, host, given))
        return NULL;
    struct file *file = calloc(1, sizeof *file);
    if (!file) {
        host->refuse(host, "", "no memory");
        return NULL;
    }
    file->host = host;
    file->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    file->settings = settings;
    file->sync_due_ms = file->wake_ms = INT64_MAX;
    wr_writer_init(&file->writer, host, &file->settings);
    wr_maintenance_init(&file->maintenance, host, &file->settings);
    return file;
}

static void file_destroy(void *self)
{
    free(self);
}

/* ---- The timer ------------------------------------------------------------------------------- */

static void plan_sync(struct file *file)
{
    const struct settings_options *options = file->settings.options;
    if (!file->writer.target.dirty)
        file->sync_due_ms = INT64_MAX;
    else if (options->fsync == SETTINGS_SYNC_INTERVAL && file->sync_due_ms == INT64_MAX)
        file->sync_due_ms = output_now_ms() + options->fsync_interval_ns / 1000000;
}

/* Old files are made by whoever rotates, and found by all who notice. */
static void plan_tending(struct file *file)
{
    const struct output_file *target = &file->writer.target;
    if (file->opened == target->opened)
        return;
    file->opened = target->opened;
    if (target->regular)
        wr_maintenance_begin(&file->maintenance);
    else if (!file->said_special && (file->settings.rotates || file->settings.tends))
        file->host->log(file->host, 2,
                        "%s is not a regular file: it is not rotated, and there are no old files",
                        target->path);
    file->said_special |= !target->regular;
}

static void plan(struct file *file)
{
    plan_tending(file);
    plan_sync(file);
    int64_t sync_ms = file->sync_due_ms, tend_ms = file->maintenance.due_ms;
    int64_t due_ms = sync_ms < tend_ms ? sync_ms : tend_ms;
    if (due_ms == file->wake_ms)
        return;
    int64_t left_ms = due_ms - output_now_ms();
    file->wake_ms = due_ms;
    file->host->wake_in(file->host, due_ms == INT64_MAX ? -1 : left_ms > 0 ? left_ms : 0);
}

static void file_wake(void *self, int why, weir_outcome *outcome)
{
    struct file *file = self;
    struct output_file *target = &file->writer.target;
    (void)outcome;
    if (why == WEIR_WAKE_RELOAD) {
        wr_output_file_follow(target);
    } else {
        file->wake_ms = INT64_MAX;
        if (output_now_ms() >= file->sync_due_ms && target->dirty)
            wr_output_file_sync(target);
        wr_maintenance_go_on(&file->maintenance, target->path);
    }
    plan(file);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void say(weir_outcome *outcome, int code, const char *doing, const char *path, int problem)
{
    outcome->code = code;
    snprintf(outcome->reason, sizeof outcome->reason, "%s %.180s: %s", doing, path, system_words(problem));
}

static void file_open(void *self, weir_outcome *outcome)
{
    struct file *file = self;
    int problem = wr_output_file_reopen(&file->writer.target);
    if (problem)
        say(outcome, WEIR_OUTCOME_RETRY, "open", file->settings.options->path, problem);
    else
        plan(file);
}

static void file_close(void *self)
{
    struct file *file = self;
    wr_maintenance_stop(&file->maintenance, file->writer.target.path);
    wr_output_file_close(&file->writer.target);
    file->sync_due_ms = file->wake_ms = INT64_MAX;
}

static void file_abandon(void *self)
{
    const struct file *file = self;
    wr_output_file_abandon(&file->writer.target);
    wr_maintenance_abandon(&file->maintenance);
}

static void file_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct file *file = self;
    bool exists = false;
    (void)timeout_ms;
    int problem = wr_output_file_probe(&file->writer.target, &exists);
    if (problem)
        say(outcome, WEIR_OUTCOME_RETRY, "open", file->settings.options->path, problem);
    else if (!exists)
        snprintf(outcome->reason, sizeof outcome->reason, "it does not exist yet");
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void write_batch(struct file *file, const weir_batch *batch, weir_outcome *outcome)
{
    weir_encoded encoded;
    const char *path = file->writer.target.path;
    uint32_t settled;
    while (outcome->done < batch->count) {
        if (!file->encoder->encode(file->host, batch, outcome->done, wr_writer_chunk(&file->writer),
                                   &encoded)) {
            say(outcome, WEIR_OUTCOME_RETRY, "write", path, ENOMEM);
            return;
        }
        int problem = wr_writer_write(&file->writer, &encoded, &settled);
        outcome->done += settled;
        if (problem) {
            /* with a full disk the file is as good as before; anything else may mean that it is not */
            bool full = problem == ENOSPC || problem == EDQUOT || problem == EFBIG;
            say(outcome, full ? WEIR_OUTCOME_RETRY : WEIR_OUTCOME_REOPEN, "write", path, problem);
            return;
        }
    }
}

/* What cannot be forced to the disk is in the file, perhaps; nobody can tell, and to write it again would not
 * help. It counts as refused. */
static void make_safe(struct file *file, weir_outcome *outcome)
{
    struct output_file *target = &file->writer.target;
    if (file->settings.options->fsync != SETTINGS_SYNC_BATCH)
        return;
    if (target->dirty)
        wr_output_file_sync(target);
    if (!target->sync_problem || !outcome->done)
        return;
    outcome->rejected = outcome->done;
    snprintf(outcome->reason, sizeof outcome->reason, "fsync %.180s: %s", target->path,
             system_words(target->sync_problem));
}

static void file_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct file *file = self;
    outcome->done = 0;
    file->writer.target.sync_problem = 0;
    int problem = wr_output_file_make_sure(&file->writer.target);
    if (problem) {
        say(outcome, WEIR_OUTCOME_REOPEN, "open", file->settings.options->path, problem);
        return;
    }
    write_batch(file, batch, outcome);
    make_safe(file, outcome);
    plan(file);
}

static void file_flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct file *file = self;
    (void)timeout_ms;
    (void)outcome;
    if (file->writer.target.dirty)
        wr_output_file_sync(&file->writer.target);
    plan(file);
}

static const weir_handler_type file_type = {
    .size = sizeof file_type,
    .abi = WEIR_ABI,
    .name = "file",
    .summary = "appends values to a file",
    .formats = WEIR_FORMAT_LINES,
    .options = wr_settings_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct settings_options),
    .create = file_create,
    .open = file_open,
    .emit = file_emit,
    .flush = file_flush,
    .close = file_close,
    .destroy = file_destroy,
    .wake = file_wake,
    .abandon = file_abandon,
    .probe = file_probe,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &file_type : NULL;
}
