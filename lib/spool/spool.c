#include "spool/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "registry/reuse.h"
#include "text/error.h"
#include "spool/spool_block.h"
#include "spool/spool_disk.h"

enum {
    FILES_IN_LIMIT = 16, /* drop_oldest drops one file at a time */
    SMALLEST_FILE = 16 * 1024,
    LARGEST_FILE = 4 * 1024 * 1024,
};

uint64_t wr_spool_file_bytes(uint64_t limit)
{
    uint64_t bytes = limit / FILES_IN_LIMIT;
    return bytes < SMALLEST_FILE ? SMALLEST_FILE : bytes > LARGEST_FILE ? LARGEST_FILE : bytes;
}

struct wr_spool *wr_spool_new(const char *handler, struct wr_registry *registry)
{
    struct wr_spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return NULL;
    spool->handler = handler;
    spool->registry = registry;
    spool->writer.registry = registry;
    return spool;
}

static void stop_reading(struct wr_spool *spool)
{
    if (spool->reading)
        wr_spool_reader_fini(&spool->reader);
    spool->reading = false;
    wr_buffer_fini(&spool->data);
}

void wr_spool_free(struct wr_spool *spool)
{
    if (!spool)
        return;
    stop_reading(spool);
    wr_spool_index_fini(&spool->index);
    wr_spool_writer_fini(&spool->writer);
    wr_buffer_fini(&spool->out);
    free(spool);
}

static void fail(struct wr_error *error, const char *path, int problem)
{
    wr_error_set(error, problem == ENOMEM ? WEIR_ERR_MEMORY : WEIR_ERR_CONFIG, "%s: %s", path,
                 problem == ENOMEM ? "out of memory" : wr_error_system_text(problem));
}

/* ---- The files ------------------------------------------------------------------------------- */

/* Deletes a file, or sets it aside if it is damaged. Returns whether it was set aside. */
static bool finish(struct wr_spool *spool, struct wr_spool_file *file, bool damaged)
{
    if (spool->index.first == file)
        stop_reading(spool);
    if (spool->open == file)
        spool->open = NULL;
    return wr_spool_index_finish(&spool->index, file, damaged);
}

/* ---- Putting --------------------------------------------------------------------------------- */

static void add_count(struct wr_spool_count *count, const struct wr_spool_file *file, uint64_t samples,
                      uint64_t values)
{
    count->samples += samples;
    count->own += file->own ? samples : 0;
    count->values += values;
}

/* Drops the oldest file that is not in use. Returns false if there is none. */
static bool drop_oldest(struct wr_spool *spool, const struct wr_spool_terms *terms,
                        struct wr_spool_count *dropped)
{
    struct wr_spool_file *file = spool->index.first;
    if (file && terms->first_in_use)
        file = file->next;
    if (!terms->drop_oldest || !file)
        return false;
    add_count(dropped, file, file->count - file->settled, file->values);
    finish(spool, file, false);
    return true;
}

/* Encodes the samples to spool->out, with a head if they begin a file. Returns false if out of memory. */
static bool encode(struct wr_spool *spool, const struct wr_range *range, const struct wr_label_set *labels)
{
    wr_buffer_clear(&spool->out);
    if (!spool->open) {
        const struct wr_spool_writer_info info = {spool->handler, (uint32_t)getpid(), wr_clock_wall_ns(),
                                                  range->position};
        wr_spool_writer_begin(&spool->writer);
        wr_spool_block_put_head(&spool->out, &info);
    }
    return wr_spool_writer_put(&spool->writer, range, labels, &spool->out) && !spool->out.failed;
}

/* Writes spool->out to the file. Returns 0 or errno. */
static int write_out(struct wr_spool *spool, const struct wr_range *range)
{
    struct wr_spool_file *file = spool->open;
    if (!file) {
        file = calloc(1, sizeof *file);
        if (!file)
            return ENOMEM;
        *file = (struct wr_spool_file){.dir = spool->index.own, .number = range->position, .own = true};
    }
    char *path = wr_owner_dir_file(file->dir, file->number);
    int problem = path ? wr_spool_disk_write(path, file->bytes, spool->out.data, spool->out.length) : ENOMEM;
    free(path);
    if (problem) {
        if (!spool->open)
            free(file);
        return problem;
    }
    file->count += range->count;
    file->values += wr_range_values(range);
    if (spool->open) {
        file->bytes += spool->out.length;
        spool->index.bytes += spool->out.length;
    } else {
        file->bytes = spool->out.length;
        if (!spool->index.first || spool->index.first->number > file->number)
            stop_reading(spool); /* another file is the first one now */
        wr_spool_index_put(&spool->index, file);
        spool->open = file->next ? NULL : file;
    }
    spool->open_end = range->position + range->count;
    return 0;
}

/* Decides whether the range begins a new file: it is older than what the open file has, or that is full or
 * being read. */
static void choose_file(struct wr_spool *spool, const struct wr_spool_terms *terms,
                        const struct wr_range *range)
{
    bool is_read = spool->reading && spool->open == spool->index.first;
    if (spool->open && (is_read || spool->open->bytes >= wr_spool_file_bytes(terms->limit) ||
                        range->position < spool->open_end))
        spool->open = NULL;
}

static enum wr_spool_result try_to_put(struct wr_spool *spool, const struct wr_spool_terms *terms,
                                       const struct wr_range *range, const struct wr_label_set *labels,
                                       struct wr_error *error)
{
    if (!encode(spool, range, labels)) {
        fail(error, spool->index.place, ENOMEM);
        return WR_SPOOL_FAILED;
    }
    if (spool->index.bytes + spool->out.length > terms->limit) {
        wr_error_set(error, WEIR_ERR_FULL, "%s: spool_limit is reached", spool->index.place);
        return WR_SPOOL_FULL;
    }
    int problem = write_out(spool, range);
    if (!problem)
        return WR_SPOOL_OK;
    fail(error, spool->index.place, problem);
    return wr_spool_disk_is_full(problem) ? WR_SPOOL_FULL : WR_SPOOL_FAILED;
}

enum wr_spool_result wr_spool_put(struct wr_spool *spool, const struct wr_spool_terms *terms,
                                  const struct wr_range *range, const struct wr_label_set *labels,
                                  struct wr_spool_count *dropped, struct wr_error *error)
{
    enum wr_spool_result result;
    bool same;
    *dropped = (struct wr_spool_count){0};
    if (!wr_spool_index_ensure_own(&spool->index, terms->place, spool->handler, &same, error))
        return WR_SPOOL_FAILED;
    if (!same)
        spool->open = NULL;
    choose_file(spool, terms, range);
    do {
        result = try_to_put(spool, terms, range, labels, error);
        if (result != WR_SPOOL_OK)
            spool->open = NULL; /* the writer may have counted definitions that were not written */
    } while (result == WR_SPOOL_FULL && drop_oldest(spool, terms, dropped));
    return result;
}

bool wr_spool_adopt(struct wr_spool *spool, const char *place, struct wr_spool_found *found,
                    struct wr_error *error)
{
    return wr_spool_index_adopt(&spool->index, place, spool->handler, found, error);
}

/* ---- Fetching -------------------------------------------------------------------------------- */

/* Returns 0 or errno. */
static int start_reading(struct wr_spool *spool)
{
    const struct wr_spool_file *file = spool->index.first;
    stop_reading(spool);
    char *path = wr_owner_dir_file(file->dir, file->number);
    int problem = path ? wr_spool_disk_read(path, &spool->data) : ENOMEM;
    free(path);
    if (problem)
        return problem;
    wr_spool_reader_init(&spool->reader, spool->data.data, spool->data.length, spool->registry,
                         &spool->labels_made);
    spool->reading = true;
    return 0;
}

/* Reads the file again if samples were fetched and not settled, or if ids may stand for other series: those of
 * what is on disk are not kept. Returns 0 or errno. */
static int make_readable(struct wr_spool *spool)
{
    const struct wr_spool_reader *reader = &spool->reader;
    bool again = spool->reading && (reader->index > spool->index.first->settled || reader->no_memory ||
                                    reader->releases != wr_reuse_releases(spool->registry));
    return spool->reading && !again ? 0 : start_reading(spool);
}

/* The file is missing, is no regular file, or cannot be read: another try would fail in the same way. */
static bool is_permanent(int problem)
{
    return problem == ENOENT || problem == ENOTDIR || problem == ELOOP || problem == EINVAL || problem == EIO;
}

static void write_mark(const struct wr_spool_file *file)
{
    struct wr_spool_mark mark = wr_spool_block_mark(file->settled);
    char *path = wr_owner_dir_file(file->dir, file->number);
    /* if this fails, samples that were settled are delivered again after a crash */
    if (path)
        wr_spool_disk_overwrite(path, wr_spool_block_mark_offset, &mark, sizeof mark);
    free(path);
}

/* Counts samples at the front as lost, up to number `end` of the file. */
static void lose(struct wr_spool_file *file, uint32_t end, struct wr_spool_batch *batch)
{
    if (end <= file->settled)
        return;
    add_count(&batch->lost, file, end - file->settled, end - file->settled);
    file->values -= end - file->settled;
    file->settled = end;
}

/* Returns the first part of the first file that is not settled, or NULL at its end. Damaged samples before it
 * are counted as lost. */
static const struct wr_spool_part *find_part(struct wr_spool *spool, struct wr_spool_batch *batch)
{
    struct wr_spool_file *file = spool->index.first;
    for (;;) {
        const struct wr_spool_part *part = wr_spool_reader_look(&spool->reader);
        uint32_t end = part->first + part->count;
        if (part->kind == WR_SPOOL_PART_END)
            return NULL;
        if (part->kind == WR_SPOOL_PART_NO_MEMORY || (part->kind == WR_SPOOL_PART_GOOD && end > file->settled))
            return part;
        if (part->kind == WR_SPOOL_PART_LOST)
            lose(file, end, batch);
        wr_spool_reader_take(&spool->reader);
    }
}

/* Whether the part can be appended to the batch. */
static bool fits(const struct wr_spool_part *part, const struct wr_spool_batch *batch,
                 const struct wr_label_set *labels, const struct wr_spool_want *want)
{
    const struct wr_range *range = &batch->range;
    return part->kind == WR_SPOOL_PART_GOOD && part->labels == labels &&
           part->position == range->position + range->count &&
           wr_sample_id_follows(&part->id, &range->id, range->count) &&
           part->count <= range->segment->room - range->count && range->bytes + part->length <= want->bytes;
}

static bool load(struct wr_spool *spool, const struct wr_spool_part *part, uint32_t skip,
                 struct wr_range *range)
{
    if (!wr_spool_reader_load(&spool->reader, part, skip, range->segment))
        return false;
    range->count = range->segment->count;
    range->bytes += part->length;
    wr_spool_reader_take(&spool->reader);
    return true;
}

/* Fills the batch, beginning with a part. Returns false if out of memory. */
static bool fill(struct wr_spool *spool, const struct wr_spool_part *part, const struct wr_spool_want *want,
                 struct wr_spool_batch *batch)
{
    const struct wr_spool_file *file = spool->index.first;
    uint32_t skip = file->settled > part->first ? file->settled - part->first : 0;
    uint32_t rest = file->count - file->settled, room = want->samples < rest ? want->samples : rest;
    if (room < part->count - skip) /* at least the part, whatever became of the file since it was counted */
        room = part->count - skip;
    struct wr_label_set *labels = part->labels;
    struct wr_range *range = &batch->range;
    *range = (struct wr_range){
        .segment = wr_segment_new(&spool->pool, room),
        .position = part->position + skip,
        .id = wr_sample_id_behind(&part->id, skip),
    };
    bool good = range->segment && load(spool, part, skip, range);
    while (good && fits(part = wr_spool_reader_look(&spool->reader), batch, labels, want))
        good = load(spool, part, 0, range);
    if (!good) {
        wr_segment_drop(range->segment);
        *range = (struct wr_range){0};
        return false;
    }
    batch->own = file->own;
    batch->labels = wr_labels_equal(labels, want->labels) ? want->labels : labels;
    wr_labels_hold(batch->labels);
    range->bytes = wr_segment_bytes(range->segment, 0, range->count);
    range->since_ns = wr_clock_monotonic_ns();
    return true;
}

/* Finishes a file that cannot be read, or ends before everything was settled. */
static enum wr_spool_result give_up(struct wr_spool *spool, struct wr_spool_batch *batch)
{
    struct wr_spool_file *file = spool->index.first;
    bool damaged = !spool->reading || spool->reader.damaged || file->settled < file->count;
    lose(file, file->count, batch);
    batch->kept_bad |= finish(spool, file, damaged);
    return WR_SPOOL_OK;
}

/* Fetches from the first file. */
static enum wr_spool_result fetch(struct wr_spool *spool, const struct wr_spool_want *want,
                                  struct wr_spool_batch *batch, struct wr_error *error)
{
    const struct wr_spool_file *file = spool->index.first;
    uint32_t settled = file->settled;
    int problem = make_readable(spool);
    const struct wr_spool_part *part = problem ? NULL : find_part(spool, batch);
    if (is_permanent(problem) || (!problem && !part))
        return give_up(spool, batch);
    if (part && part->kind == WR_SPOOL_PART_GOOD && fill(spool, part, want, batch)) {
        if (file->settled != settled)
            write_mark(file);
        return WR_SPOOL_OK;
    }
    stop_reading(spool);
    fail(error, file->dir->path, problem ? problem : ENOMEM);
    return WR_SPOOL_FAILED;
}

enum wr_spool_result wr_spool_fetch(struct wr_spool *spool, const struct wr_spool_want *want,
                                    struct wr_spool_batch *batch, struct wr_error *error)
{
    *batch = (struct wr_spool_batch){0};
    enum wr_spool_result result = WR_SPOOL_OK;
    while (result == WR_SPOOL_OK && spool->index.first && !batch->range.segment)
        result = fetch(spool, want, batch, error);
    return result;
}

bool wr_spool_settle(struct wr_spool *spool, uint32_t samples, uint64_t values)
{
    struct wr_spool_file *file = spool->index.first;
    file->settled += samples;
    file->values -= values;
    if (file->settled >= file->count)
        return finish(spool, file, spool->reading && spool->reader.damaged);
    write_mark(file);
    return false;
}

/* ---- The end --------------------------------------------------------------------------------- */

uint64_t wr_spool_front(const struct wr_spool *spool)
{
    const struct wr_spool_file *file = spool->index.last && spool->index.last->own ? spool->index.first : NULL;
    while (file && !file->own)
        file = file->next;
    return file ? file->number + file->settled : 0;
}

void wr_spool_tidy(struct wr_spool *spool)
{
    wr_spool_index_tidy(&spool->index);
}

void wr_spool_leave(struct wr_spool *spool)
{
    spool->open = NULL;
    wr_spool_index_leave(&spool->index);
}

void wr_spool_abandon(const struct wr_spool *spool)
{
    wr_spool_index_abandon(&spool->index);
}
