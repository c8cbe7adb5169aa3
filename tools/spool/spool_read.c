#include "spool_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/command.h"
#include "config/common_options.h"
#include "format/encoder.h"
#include "format/format.h"
#include "handler/parts.h"
#include "os/owner_dir.h"
#include "segment/batch.h"
#include "spool/spool_block.h"
#include "spool/spool_disk.h"
#include "spool/spool_reader.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"
#include "text/region.h"

/* ---- Files ----------------------------------------------------------------------------------- */

/* Shared by all files, because names are never freed. */
static struct wr_registry *find_registry(void)
{
    static struct wr_registry registry;
    static bool made;
    if (!made && !wr_registry_init(&registry))
        command_out_of_memory();
    made = true;
    atomic_store(&registry.max, WR_REGISTRY_LARGEST_MAX);
    return &registry;
}

struct file {
    struct wr_buffer data;
    struct wr_registry *registry;
    uint64_t labels_made;
    struct wr_spool_reader reader;
};

/* Returns 0, or errno with nothing to close. */
static int open_file(struct file *file, const struct spool_read_box *box, const char *name)
{
    struct wr_buffer path = {0};
    *file = (struct file){.registry = find_registry()};
    wr_buffer_put_format(&path, "%s/%s/%s", box->place, box->folder.name, name);
    int problem = wr_spool_disk_read(command_text(&path), &file->data);
    wr_buffer_fini(&path);
    if (problem)
        wr_buffer_fini(&file->data);
    else
        wr_spool_reader_init(&file->reader, file->data.data, file->data.length, file->registry,
                             &file->labels_made);
    return problem;
}

static void close_file(struct file *file)
{
    wr_spool_reader_fini(&file->reader);
    wr_buffer_fini(&file->data);
}

/* The next part with undelivered samples, or NULL. */
static const struct wr_spool_part *next_part(struct file *file, uint32_t settled)
{
    for (;;) {
        const struct wr_spool_part *part = wr_spool_reader_look(&file->reader);
        if (part->kind == WR_SPOOL_PART_END || part->kind == WR_SPOOL_PART_NO_MEMORY)
            return NULL;
        if (part->first + part->count > settled)
            return part;
        wr_spool_reader_take(&file->reader);
    }
}

static uint32_t count_settled(const struct wr_spool_part *part, uint32_t settled)
{
    return settled > part->first ? settled - part->first : 0;
}

/* Sets the fields of `measured`, and from the first readable file those of the box. Returns false if a process
 * has deleted the file since it was listed. */
static bool measure(struct spool_read_file *measured, struct spool_read_box *box)
{
    struct file file;
    struct wr_spool_writer_info info;
    const struct wr_spool_part *part;
    size_t length;
    measured->is_damaged = true;
    int problem = open_file(&file, box, measured->name);
    if (problem)
        return problem != ENOENT;
    measured->bytes = file.data.length;
    measured->settled = wr_spool_block_read_mark(file.data.data, file.data.length);
    if (!box->folder.created_ns && wr_spool_block_read_head(file.data.data, file.data.length, &info, &length)) {
        snprintf(box->handler, sizeof box->handler, "%s", info.handler);
        box->folder.pid = info.pid;
        box->folder.created_ns = info.created_ns;
    }
    uint32_t version = wr_spool_block_read_version(file.data.data, file.data.length);
    measured->other_version = version == WR_SPOOL_BLOCK_VERSION ? 0 : version;
    while ((part = next_part(&file, measured->settled))) {
        uint32_t settled = count_settled(part, measured->settled), samples = part->count - settled;
        if (part->kind == WR_SPOOL_PART_GOOD && !measured->readable)
            measured->first = wr_sample_id_behind(&part->id, settled);
        if (part->kind == WR_SPOOL_PART_GOOD)
            measured->readable += samples;
        else
            measured->damaged += samples;
        wr_spool_reader_take(&file.reader);
    }
    measured->is_damaged = file.reader.damaged || file.reader.no_memory;
    close_file(&file);
    return true;
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

/* A process may have deleted the folder since it was listed. */
static void read_files(struct spool_read_box *box)
{
    size_t count = 0;
    struct wr_owner_dir folder = {.path = command_join(box->place, box->folder.name), .lock.fd = -1};
    uint64_t *numbers = wr_owner_dir_list(&folder, &count);
    if (!numbers && errno != ENOENT)
        box->problem = errno;
    box->files = command_must(calloc(count + 1, sizeof *box->files));
    for (size_t i = 0; numbers && i < count; i++) {
        struct spool_read_file *file = &box->files[box->file_count];
        snprintf(file->name, sizeof file->name, WR_OWNER_DIR_FILE_FORMAT, numbers[i]);
        box->file_count += measure(file, box);
        if (box->folder.in_use && i + 1 == count) /* it may be incomplete because it is being written */
            file->is_damaged = file->other_version;
    }
    free(numbers);
    free(folder.path);
}

/* What the folder's name, HANDLER.CHECKSUM.PID.N, says of one in which no file is readable. A running process
 * has an empty one when all was delivered. */
static void read_name(struct spool_read_box *box)
{
    struct stat status;
    struct wr_buffer lock = {0};
    size_t length = strcspn(box->folder.name, ".");
    snprintf(box->handler, sizeof box->handler, "%.*s", (int)length, box->folder.name);
    box->is_altered = !wr_owner_dir_is_name(box->folder.name, box->handler);
    box->folder.pid = (uint32_t)strtoul(box->folder.name + length + sizeof ".01234567." - 1, NULL, 10);
    wr_buffer_put_format(&lock, "%s/%s/lock", box->place, box->folder.name);
    if (lstat(command_text(&lock), &status) == 0) /* written when the folder was made */
        box->folder.created_ns = status.st_mtim.tv_sec * WR_NS_PER_S + status.st_mtim.tv_nsec;
    wr_buffer_fini(&lock);
}

static void read_box(void *made, const char *place)
{
    struct spool_read_box *box = made;
    box->place = place;
    read_files(box);
    if (!box->folder.created_ns)
        read_name(box);
}

static void fini_box(void *made)
{
    struct spool_read_box *box = made;
    free(box->files);
}

const struct owner_folder_kind spool_read_kind = {sizeof(struct spool_read_box), NULL, read_box, fini_box};

/* ---- Printing -------------------------------------------------------------------------------- */

/* How values are printed. */
struct printer {
    const struct spool_read_box *box;
    struct wr_encoder encoder; /* for one part of a file: the numbers of label sets are those of the file */
    struct wr_parts parts;
    struct wr_parts_rules rules;
    bool complete; /* false: something could not be printed, and was named */
};

/* Returns false if out of memory. */
static bool begin_printing(struct printer *printer, const struct spool_read_box *box)
{
    struct wr_common_options options = {0};
    struct wr_region memory = {0};
    const struct wr_options_fill fill = {
        .table = wr_common_options_table(), .target = &options, .keep = &memory};
    struct wr_error error;
    *printer = (struct printer){.box = box, .complete = true};
    bool done = wr_options_set_defaults(&fill, &error) &&
                wr_percentiles_read(&printer->rules.percentiles, &options.percentiles, &error);
    wr_region_fini(&memory);
    return done;
}

static void end_printing(struct printer *printer)
{
    wr_parts_fini(&printer->parts);
}

static bool print_batch(struct printer *printer, const weir_batch *batch)
{
    weir_encoded encoded;
    wr_encoder_begin(&printer->encoder);
    return wr_encoder_encode(&printer->encoder, batch, 0, SIZE_MAX, &encoded) &&
           fwrite(encoded.data, 1, encoded.length, stdout) == encoded.length;
}

/* Summaries are taken apart, as for a handler that takes none. */
static bool print_range(struct printer *printer, struct wr_range range, struct wr_batch_core *core,
                        const struct wr_label_set *labels)
{
    struct wr_parts *parts = &printer->parts;
    while (range.count) {
        weir_batch batch = wr_batch_of(&range, core, labels);
        enum wr_parts_result result =
            wr_parts_make(parts, &batch, &range.id, (struct wr_registry *)core->registry, &printer->rules);
        uint32_t done = result == WR_PARTS_MADE ? parts->originals : 1;
        if (result == WR_PARTS_NO_MEMORY || (result == WR_PARTS_MADE && !print_batch(printer, &parts->batch)))
            return false;
        if (result == WR_PARTS_REFUSED) {
            command_fail("%s/%s: %s", printer->box->place, printer->box->folder.name, parts->why);
            printer->complete = false;
        }
        range.first += done;
        range.count -= done;
        range.id.sequence += done;
    }
    return true;
}

static bool print_part(struct printer *printer, struct file *file, const struct wr_spool_part *part,
                       uint32_t settled)
{
    struct wr_segment_pool pool = {0};
    struct wr_batch_core core = {.registry = file->registry,
                                 .labels_number = part->labels ? part->labels->number : 0};
    struct wr_range range = {.segment = wr_segment_new(&pool, part->count),
                             .id = wr_sample_id_behind(&part->id, count_settled(part, settled))};
    bool printed =
        range.segment && wr_spool_reader_load(&file->reader, part, count_settled(part, settled), range.segment);
    if (printed) {
        range.count = range.segment->count;
        wr_encoder_init(&printer->encoder, &wr_format_json, wr_format_json_whole);
        printed = print_range(printer, range, &core, part->labels);
        wr_encoder_fini(&printer->encoder);
    }
    wr_segment_drop(range.segment);
    return printed;
}

/* Returns false if stdout cannot be written or memory has run out. */
static bool print_file(struct printer *printer, const struct spool_read_file *measured)
{
    struct file file;
    const struct wr_spool_part *part;
    bool printed = true;
    if (open_file(&file, printer->box, measured->name) != 0)
        return true; /* counted as damaged, or the running process has just deleted it */
    while (printed && (part = next_part(&file, measured->settled))) {
        printed = part->kind != WR_SPOOL_PART_GOOD || print_part(printer, &file, part, measured->settled);
        wr_spool_reader_take(&file.reader);
    }
    close_file(&file);
    return printed && fflush(stdout) == 0;
}

bool spool_read_print(const struct spool_read_box *box, bool *complete)
{
    struct printer printer;
    bool printed = begin_printing(&printer, box);
    if (box->problem) {
        *complete = false;
        command_fail("%s/%s: %s", box->place, box->folder.name, strerror(box->problem));
    }
    for (size_t i = 0; printed && i < box->file_count; i++) {
        const struct spool_read_file *file = &box->files[i];
        if (file->is_damaged) {
            *complete = false;
            if (file->other_version)
                command_fail("%s/%s/%s: format %" PRIu32 ", which this version of weir cannot read", box->place,
                             box->folder.name, file->name, file->other_version);
            else
                command_fail("%s/%s/%s: damaged, %" PRIu64 " values lost", box->place, box->folder.name,
                             file->name, file->damaged);
        }
        printed = print_file(&printer, file);
    }
    if (!printed)
        command_fail("standard output cannot be written, or out of memory");
    *complete &= printed && printer.complete;
    end_printing(&printer);
    return printed;
}
