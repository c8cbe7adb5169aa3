#include "spool_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "segment/batch.h"
#include "text/buffer.h"
#include "command.h"
#include "format/encoder.h"
#include "format/format.h"
#include "spool/spool_block.h"
#include "os/owner_dir.h"
#include "spool/spool_disk.h"
#include "spool/spool_reader.h"

/* ---- Files ----------------------------------------------------------------------------------- */

/* Names live as long as the process does, so all files share a registry. NULL without memory. */
static struct wr_registry *find_registry(void)
{
    static struct wr_registry registry;
    static bool made;
    if (!made && !wr_registry_init(&registry))
        return NULL;
    made = true;
    atomic_store(&registry.max, WR_REGISTRY_LARGEST_MAX);
    return &registry;
}

/* A file as it is read, part by part. */
struct input_line {
    struct wr_buffer data;
    struct wr_registry *registry;
    uint64_t labels_made;
    struct wr_spool_reader reader;
};

/* false: it cannot be read, or there is no memory. */
static bool start_reading(struct input_line *line_reader, const struct spool_read_box *box, const char *name)
{
    struct wr_buffer path = {0};
    *line_reader = (struct input_line){.registry = find_registry()};
    wr_buffer_put_format(&path, "%s/%s/%s", box->place, box->name, name);
    const char *text = wr_buffer_text(&path);
    bool read = text && line_reader->registry && wr_spool_disk_read(text, &line_reader->data) == 0;
    wr_buffer_fini(&path);
    if (!read) {
        wr_buffer_fini(&line_reader->data);
        return false;
    }
    wr_spool_reader_init(&line_reader->reader, line_reader->data.data, line_reader->data.length,
                         line_reader->registry, &line_reader->labels_made);
    return true;
}

static void end_reading(struct input_line *line_reader)
{
    wr_spool_reader_fini(&line_reader->reader);
    wr_buffer_fini(&line_reader->data);
}

/* The next part of which something is not settled; NULL: that was the last one. */
static const struct wr_spool_part *next_part(struct input_line *line_reader, uint32_t settled)
{
    for (;;) {
        const struct wr_spool_part *part = wr_spool_reader_look(&line_reader->reader);
        if (part->kind == WR_SPOOL_PART_END || part->kind == WR_SPOOL_PART_NO_MEMORY)
            return NULL;
        if (part->first + part->count > settled)
            return part;
        wr_spool_reader_take(&line_reader->reader);
    }
}

static uint32_t skip_of(const struct wr_spool_part *part, uint32_t settled)
{
    return settled > part->first ? settled - part->first : 0;
}

static void measure(struct spool_read_file *file, struct spool_read_box *box)
{
    struct input_line line_reader;
    struct wr_spool_writer_info info;
    const struct wr_spool_part *part;
    size_t length;
    file->damaged = true;
    if (!start_reading(&line_reader, box, file->name))
        return;
    file->bytes = line_reader.data.length;
    file->settled = wr_spool_block_read_mark(line_reader.data.data, line_reader.data.length);
    if (!box->created_ns &&
        wr_spool_block_read_head(line_reader.data.data, line_reader.data.length, &info, &length)) {
        snprintf(box->handler, sizeof box->handler, "%s", info.handler);
        box->pid = info.pid;
        box->created_ns = info.created_ns;
    }
    uint32_t version = wr_spool_block_read_version(line_reader.data.data, line_reader.data.length);
    file->other_version = version == WR_SPOOL_BLOCK_VERSION ? 0 : version;
    while ((part = next_part(&line_reader, file->settled))) {
        uint32_t skip = skip_of(part, file->settled), samples = part->count - skip;
        if (part->kind == WR_SPOOL_PART_GOOD && !file->good)
            file->first = wr_sample_id_behind(&part->id, skip);
        if (part->kind == WR_SPOOL_PART_GOOD)
            file->good += samples;
        else
            file->lost += samples;
        wr_spool_reader_take(&line_reader.reader);
    }
    file->damaged = line_reader.reader.damaged || line_reader.reader.no_memory;
    end_reading(&line_reader);
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

static bool is_locked(const char *folder)
{
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/lock", folder);
    const char *text = wr_buffer_text(&path);
    int fd = text ? open(text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    wr_buffer_fini(&path);
    return locked;
}

/* false: no memory. */
static bool look_into(struct spool_read_box *box)
{
    struct wr_buffer path = {0};
    size_t count = 0;
    wr_buffer_put_format(&path, "%s/%s", box->place, box->name);
    struct wr_owner_dir place = {.path = wr_buffer_take(&path), .lock = -1};
    uint64_t *numbers = place.path ? wr_owner_dir_list(&place, &count) : NULL;
    box->in_use = place.path && is_locked(place.path);
    box->files = calloc(count + 1, sizeof *box->files);
    for (size_t i = 0; box->files && i < count; i++) {
        struct spool_read_file *file = &box->files[box->file_count++];
        snprintf(file->name, sizeof file->name, WR_OWNER_DIR_FILE_FORMAT, numbers[i]);
        measure(file, box);
    }
    free(numbers);
    free(place.path);
    return box->files;
}

static int compare(const void *a, const void *b)
{
    const struct spool_read_box *first = a, *second = b;
    if (first->created_ns != second->created_ns)
        return first->created_ns < second->created_ns ? -1 : 1;
    return strcmp(first->name, second->name);
}

/* Adds a box to the list. */
static bool add_box(struct wr_buffer *boxes, const char *place, const char *name)
{
    struct spool_read_box box = {.place = place, .name = strdup(name), .handler = "?"};
    if (!box.name || !look_into(&box)) {
        free((char *)box.name);
        errno = ENOMEM;
        return false;
    }
    wr_buffer_put(boxes, &box, sizeof box);
    return true;
}

static bool find_boxes(struct wr_buffer *boxes, const char *place)
{
    const struct dirent *entry;
    bool good = true;
    DIR *folder = opendir(place);
    while (folder && good && (entry = readdir(folder)))
        if (wr_owner_dir_is_name(entry->d_name, NULL))
            good = add_box(boxes, place, entry->d_name);
    if (folder)
        closedir(folder);
    return folder && good;
}

bool spool_read_walk(const char *place, bool (*visit)(const struct spool_read_box *box, void *ctx), void *ctx)
{
    struct wr_buffer list = {0};
    bool good = find_boxes(&list, place);
    struct spool_read_box *boxes = (struct spool_read_box *)list.data;
    size_t count = list.length / sizeof *boxes;
    if (count)
        qsort(boxes, count, sizeof *boxes, compare);
    for (size_t i = 0; good && i < count && visit(&boxes[i], ctx); i++)
        continue;
    for (size_t i = 0; i < count; i++) {
        free(boxes[i].files);
        free((char *)boxes[i].name);
    }
    wr_buffer_fini(&list);
    return good;
}

/* ---- Printing -------------------------------------------------------------------------------- */

static bool print_part(struct input_line *line_reader, const struct wr_spool_part *part, uint32_t settled)
{
    struct wr_segment_pool pool = {0};
    struct wr_encoder encoder;
    weir_encoded encoded;
    struct wr_batch_core core = {.registry = line_reader->registry,
                                 .labels_number = part->labels ? part->labels->number : 0};
    struct wr_range range = {.segment = wr_segment_new(&pool, part->count),
                             .id = wr_sample_id_behind(&part->id, skip_of(part, settled))};
    bool good = range.segment &&
                wr_spool_reader_load(&line_reader->reader, part, skip_of(part, settled), range.segment);
    wr_encoder_init(&encoder, wr_format_find("json"), NULL);
    if (good) {
        range.count = range.segment->count;
        weir_batch batch = wr_batch_of(&range, &core, part->labels);
        wr_encoder_begin(&encoder);
        good = wr_encoder_encode(&encoder, &batch, 0, SIZE_MAX, &encoded) &&
               fwrite(encoded.data, 1, encoded.length, stdout) == encoded.length;
    }
    wr_encoder_fini(&encoder);
    wr_segment_drop(range.segment);
    return good;
}

/* false: standard output cannot be written, or there is no memory. */
static bool print_file(const struct spool_read_box *box, const struct spool_read_file *file)
{
    struct input_line line_reader;
    const struct wr_spool_part *part;
    bool good = true;
    if (!start_reading(&line_reader, box, file->name))
        return true; /* it is counted as damaged by then, or its process has just finished with it */
    while (good && (part = next_part(&line_reader, file->settled))) {
        good = part->kind != WR_SPOOL_PART_GOOD || print_part(&line_reader, part, file->settled);
        wr_spool_reader_take(&line_reader.reader);
    }
    end_reading(&line_reader);
    return good && fflush(stdout) == 0;
}

bool spool_read_print(const struct spool_read_box *box, void *ctx)
{
    bool *complete = ctx, good = true;
    for (size_t i = 0; good && i < box->file_count; i++) {
        const struct spool_read_file *file = &box->files[i];
        if (file->damaged) {
            *complete = false;
            if (file->other_version)
                command_fail("%s/%s/%s: format %u, which this version of weir does not read", box->place,
                             box->name, file->name, file->other_version);
            else
                command_fail("%s/%s/%s: damaged, %llu values lost", box->place, box->name, file->name,
                             (unsigned long long)file->lost);
        }
        good = print_file(box, file);
    }
    *complete &= good;
    return good || command_fail("standard output cannot be written, or there is no memory") == EXIT_GOOD;
}
