#include "journal_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owner_folder.h"
#include "journal/journal_reader.h"
#include "os/dir_list.h"
#include "os/owner_dir.h"
#include "segment/segment.h"
#include "text/buffer.h"

/* ---- A box ----------------------------------------------------------------------------------- */

static struct journal_read_handler *find_handler(struct journal_read_box *box, struct wr_buffer *handlers,
                                                 const char *name)
{
    struct journal_read_handler *items = (struct journal_read_handler *)handlers->data;
    for (size_t i = 0; i < box->handler_count; i++)
        if (strcmp(items[i].name, name) == 0)
            return &items[i];
    if (!wr_buffer_reserve(handlers, sizeof *items))
        return NULL;
    struct journal_read_handler handler = {.name = strdup(name)};
    if (!handler.name)
        return NULL;
    wr_buffer_put(handlers, &handler, sizeof handler);
    return (struct journal_read_handler *)handlers->data + box->handler_count++;
}

/* Sets *id to that of the first of them. */
static uint64_t count_unsettled(const struct wr_journal_reader *reader, const struct wr_segment_file *file,
                                uint32_t slot, struct wr_sample_id *id)
{
    uint32_t first = 0, length, count = wr_journal_reader_count(reader, file);
    uint64_t values = 0;
    for (; (length = wr_journal_reader_unsettled(file, slot, &first, count)); first += length) {
        if (!values)
            *id = wr_sample_id_behind(&file->ids[slot], first);
        for (uint32_t i = first; i < first + length; i++)
            values += wr_sample_values(&file->samples[i]);
    }
    return values;
}

static uint64_t count_cells(struct wr_cells_block *block, uint64_t round)
{
    struct wr_journal_cells_walk walk = {.block = block, .round = round};
    struct wr_journal_cells cells;
    uint64_t values = 0;
    while (wr_journal_cells_next(&walk, &cells))
        values += cells.taken.values;
    return values;
}

/* Returns false if out of memory, as the next functions do. */
static bool count_segment(struct journal_read_box *box, struct wr_buffer *handlers,
                          const struct wr_journal_reader *reader, const struct wr_segment_file *file)
{
    for (uint32_t slot = 0; slot < file->head->lanes; slot++) {
        struct wr_sample_id first;
        uint64_t values = count_unsettled(reader, file, slot, &first);
        struct journal_read_handler *handler =
            values ? find_handler(box, handlers, wr_segment_file_lane(file, slot)) : NULL;
        if (values && !handler)
            return false;
        if (handler && !handler->values)
            handler->first = first;
        if (handler)
            handler->values += values;
    }
    return true;
}

static bool count_all(struct journal_read_box *box, const struct wr_journal_reader *reader)
{
    struct wr_buffer handlers = {0};
    bool counted = true;
    box->pid = reader->head->pid;
    box->created_ns = reader->head->created_ns;
    box->damaged = reader->damaged;
    for (size_t i = 0; i < reader->ring_count; i++)
        box->in_rings += wr_journal_reader_count_ring(&reader->rings[i]);
    for (size_t i = 0; i < reader->cells_count; i++)
        box->in_rings += count_cells(reader->cells[i].block, reader->round);
    for (size_t i = 0; counted && i < reader->segment_count; i++)
        counted = count_segment(box, &handlers, reader, reader->segments[i]);
    box->handlers = (struct journal_read_handler *)handlers.data;
    return counted;
}

/* A box that cannot be opened is damaged, unless a process is creating or deleting it. */
static bool read_box(struct journal_read_box *box, const char *place)
{
    struct wr_journal_reader reader;
    struct wr_buffer path = {0};
    bool read = true;
    wr_buffer_put_format(&path, "%s/%s", place, box->name);
    const char *folder = wr_buffer_text(&path);
    if (folder) {
        box->in_use = owner_folder_is_in_use(place, box->name);
        switch (wr_journal_reader_open(&reader, folder, false)) {
        case WR_JOURNAL_READ:
            read = count_all(box, &reader);
            wr_journal_reader_close(&reader);
            break;
        case WR_JOURNAL_NOTHING: break;
        case WR_JOURNAL_OTHER_VERSION: box->other_version = reader.version; /* fallthrough */
        default: box->damaged = true;
        }
    }
    wr_buffer_fini(&path);
    return folder && read;
}

/* ---- All boxes ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct journal_read_box *first = a, *second = b;
    if (first->created_ns != second->created_ns)
        return first->created_ns < second->created_ns ? -1 : 1;
    return strcmp(first->name, second->name);
}

static bool add_box(struct wr_buffer *boxes, const char *place, const char *name)
{
    struct journal_read_box box = {.name = strdup(name)};
    bool read = box.name && read_box(&box, place);
    wr_buffer_put(boxes, &box, sizeof box);
    if (!read)
        errno = ENOMEM;
    return read && !boxes->failed;
}

static void free_boxes(struct wr_buffer *list)
{
    struct journal_read_box *boxes = (struct journal_read_box *)list->data;
    for (size_t i = 0; i < list->length / sizeof *boxes; i++) {
        for (size_t j = 0; j < boxes[i].handler_count; j++)
            free((char *)boxes[i].handlers[j].name);
        free(boxes[i].handlers);
        free((char *)boxes[i].name);
    }
    wr_buffer_fini(list);
}

bool journal_read_walk(const char *place, bool (*visit)(const struct journal_read_box *box, void *ctx),
                       void *ctx)
{
    struct wr_buffer list = {0};
    const struct dirent *entry;
    int error = 0;
    DIR *folder = opendir(place);
    bool complete = folder;
    while (complete && (entry = wr_dir_list_next(folder, &error)))
        if (wr_owner_dir_is_name(entry->d_name, WR_JOURNAL_DIR))
            complete = add_box(&list, place, entry->d_name);
    if (complete && error) {
        errno = error;
        complete = false;
    }
    error = errno;
    if (folder)
        closedir(folder);
    struct journal_read_box *boxes = (struct journal_read_box *)list.data;
    size_t count = list.length / sizeof *boxes;
    if (count)
        qsort(boxes, count, sizeof *boxes, compare);
    for (size_t i = 0; complete && i < count && visit(&boxes[i], ctx); i++)
        continue;
    free_boxes(&list);
    errno = error;
    return complete;
}
