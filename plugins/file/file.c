/* file: appends values to a file, in whole lines, and optionally rotates it by size or time.
 *
 * settings.c checks the options, output_file.c opens and writes the file, writer.c writes encoded values,
 * rotation.c rotates, archive.c lists the old files, maintenance.c and compress.c delete and compress them. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../output.h"
#include "file_lock.h"
#include "settings.h"
#include "maintenance.h"
#include "writer.h"

struct file {
    const weir_host *host;
    const weir_encoder *encoder;
    struct settings settings;
    struct writer writer;
    struct maintenance maintenance;
    unsigned seen_opened; /* output.opened when maintenance was last started */
    int64_t sync_due_ms;  /* with fsync "interval": when to sync; INT64_MAX: nothing to sync */
    int64_t wake_ms;      /* the last time passed to wake_in; INT64_MAX: none */
};

/* ---- Creating -------------------------------------------------------------------------------- */

static void *file_create(const weir_host *host, const void *given)
{
    struct settings settings;
    if (!wr_settings_init(&settings, host, given))
        return NULL;
    struct file *file = wr_system_allocate(host, sizeof *file);
    if (!file)
        return NULL;
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

static void schedule_sync(struct file *file)
{
    const struct settings_options *options = file->settings.options;
    if (!file->writer.output.dirty)
        file->sync_due_ms = INT64_MAX;
    else if (options->fsync == SETTINGS_SYNC_INTERVAL && file->sync_due_ms == INT64_MAX)
        file->sync_due_ms = wr_output_now_ms() + options->fsync_interval_ns / 1000000;
}

/* There may be new old files whenever a file was opened, whichever process has rotated it. */
static void schedule_maintenance(struct file *file)
{
    const struct output_file *output = &file->writer.output;
    if (file->seen_opened == output->opened)
        return;
    file->seen_opened = output->opened;
    wr_maintenance_begin(&file->maintenance);
}

static void schedule(struct file *file)
{
    schedule_maintenance(file);
    schedule_sync(file);
    int64_t sync_ms = file->sync_due_ms, maintenance_ms = file->maintenance.due_ms;
    int64_t due_ms = sync_ms < maintenance_ms ? sync_ms : maintenance_ms;
    if (due_ms == file->wake_ms)
        return;
    int64_t left_ms = due_ms - wr_output_now_ms();
    file->wake_ms = due_ms;
    file->host->wake_in(file->host, due_ms == INT64_MAX ? -1 : left_ms > 0 ? left_ms : 0);
}

static void file_wake(void *self, int why, weir_outcome *outcome)
{
    struct file *file = self;
    struct output_file *output = &file->writer.output;
    (void)outcome;
    if (why == WEIR_WAKE_RELOAD) {
        wr_output_file_follow(output);
    } else {
        file->wake_ms = INT64_MAX;
        if (wr_output_now_ms() >= file->sync_due_ms && output->dirty)
            wr_output_file_sync(output);
        wr_maintenance_run(&file->maintenance, output->path);
    }
    schedule(file);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void set_outcome(weir_outcome *outcome, int code, const char *operation, const char *path, int error)
{
    wr_system_fail(outcome, code, "%s %.120s: %s", operation, path, wr_file_error_text(error));
}

static void file_open(void *self, weir_outcome *outcome)
{
    struct file *file = self;
    int error = wr_output_file_reopen(&file->writer.output);
    if (error)
        set_outcome(outcome, WEIR_OUTCOME_RETRY, "open", file->settings.options->path, error);
    else
        schedule(file);
}

static void file_close(void *self)
{
    struct file *file = self;
    wr_maintenance_stop(&file->maintenance, file->writer.output.path);
    wr_output_file_close(&file->writer.output);
    file->sync_due_ms = file->wake_ms = INT64_MAX;
}

static void file_abandon(void *self)
{
    const struct file *file = self;
    wr_output_file_abandon(&file->writer.output);
    wr_maintenance_abandon(&file->maintenance);
}

static void file_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct file *file = self;
    bool exists = false;
    (void)timeout_ms;
    int error = wr_output_file_probe(&file->writer.output, &exists);
    if (error)
        set_outcome(outcome, WEIR_OUTCOME_RETRY, "open", file->settings.options->path, error);
    else if (!exists)
        snprintf(outcome->reason, sizeof outcome->reason, "it does not exist yet");
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void write_batch(struct file *file, const weir_batch *batch, weir_outcome *outcome)
{
    weir_encoded encoded;
    const char *path = file->writer.output.path;
    uint32_t settled;
    while (outcome->done < batch->count) {
        if (!file->encoder->encode(file->host, batch, outcome->done, wr_writer_chunk(&file->writer),
                                   &encoded)) {
            set_outcome(outcome, WEIR_OUTCOME_RETRY, "write", path, ENOMEM);
            return;
        }
        int error = wr_writer_write(&file->writer, &encoded, &settled);
        outcome->done += settled;
        if (error) {
            /* after ENOSPC and the like the file is intact; after other errors it may not be */
            bool intact = error == ENOSPC || error == EDQUOT || error == EFBIG || error == FILE_ERROR_LOCKED;
            set_outcome(outcome, intact ? WEIR_OUTCOME_RETRY : WEIR_OUTCOME_REOPEN, "write", path, error);
            return;
        }
    }
}

/* After a failed fsync the state on disk is unknown, and writing again would not help: the values count as
 * rejected. */
static void sync_batch(struct file *file, weir_outcome *outcome)
{
    struct output_file *output = &file->writer.output;
    if (file->settings.options->fsync != SETTINGS_SYNC_BATCH)
        return;
    if (output->dirty)
        wr_output_file_sync(output);
    if (!output->sync_error || !outcome->done)
        return;
    outcome->rejected = outcome->done;
    snprintf(outcome->reason, sizeof outcome->reason, "fsync %.180s: %s", output->path,
             wr_system_strerror(output->sync_error));
}

static void file_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct file *file = self;
    outcome->done = 0;
    file->writer.output.sync_error = 0;
    int error = wr_output_file_ensure(&file->writer.output);
    if (error) {
        set_outcome(outcome, WEIR_OUTCOME_REOPEN, "open", file->settings.options->path, error);
        return;
    }
    write_batch(file, batch, outcome);
    sync_batch(file, outcome);
    schedule(file);
}

static void file_emit_now(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct file *file = self;
    weir_encoded encoded;
    outcome->done = 0;
    outcome->code = WEIR_OUTCOME_NOT_NOW;
    if (!file->encoder->encode(file->host, batch, 0, wr_writer_chunk(&file->writer), &encoded))
        return;
    if (encoded.length && !wr_output_file_write_now(&file->writer.output, encoded.data, encoded.length))
        return;
    outcome->done = encoded.count;
    if (outcome->done == batch->count)
        outcome->code = WEIR_OUTCOME_OK;
}

static void file_flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct file *file = self;
    (void)timeout_ms;
    (void)outcome;
    if (file->writer.output.dirty)
        wr_output_file_sync(&file->writer.output);
    schedule(file);
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
    .flags = WEIR_TYPE_SHARES_NOTHING,
    .emit_now = file_emit_now,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &file_type : NULL;
}
