/* Journals: for any contents of the files of a dead process, recovery ends, and lanes receive whole events of
 * existing series, as many as inspecting the files predicts, and only once. The first byte selects the kind of
 * the rest:
 *
 *   0  damage to an intact journal, each: file and kind, a two-byte offset, and the bytes written there
 *   1  whole files, each: which one, a two-byte length, its contents; the others are intact
 *   2  as 0, for the files of cells
 *   3  as 1, for the files of cells */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/common.h"
#include "../support/deliver.h"
#include "dispatch/dispatcher.h"
#include "text/error.h"
#include "fuzz.h"
#include "journal/journal.h"
#include "journal/journal_reader.h"
#include "lane/lane_internal.h"
#include "config/config_read.h"
#include "engine/recovery.h"
#include "dispatch/router.h"
#include "registry/series.h"
#include "spool/spool_disk.h"
#include "registry/stream.h"
#include "lane/lane_stats.h"
#include "text/utf8.h"

enum { MANY_SERIES = 100000, RING_SLOTS = 32, SEGMENT_ROOM = 8, TEXT_ROOM = 128, LANES = 2 };
enum { ALL_OF_A = 26, ALL_OF_B = 15 }; /* the values of an intact journal for each lane */
enum { META, SERIES, MORE_SERIES, RING, OTHER_RING, SEGMENT, OTHER_SEGMENT, NO_SEGMENT, CELLS, BUCKETS, FILES };
enum { OF_CELLS = FILES - CELLS };

/* The files that are damaged. Not all of them are in an intact journal. */
static const char *const names[FILES] = {"meta.0", "series.0", "series.1", "ring.1",  "ring.9",
                                         "seg.2",  "seg.3",    "seg.4",    "cells.4", "cells.5"};
static const char *const lane_names[LANES] = {"A", "B"};

/* The intact files, and the files of this run. */
struct contents {
    struct wr_buffer data;
    bool exists;
};

static struct contents sound[FILES], files[FILES];

static struct wr_log log_of_nothing;
static struct wr_registry registry;
static struct wr_producers producers;
static const struct wr_worker_env worker_env = {.registry = &registry};
static struct wr_dispatcher dispatcher;
static struct wr_config *config;
static struct wr_lane *lanes[LANES];
static char place[300], dir[500];

/* ---- Files ----------------------------------------------------------------------------------- */

static void put_path(char path[500], const char *folder, const char *name)
{
    FUZZ_CHECK(snprintf(path, 500, "%s/%s", folder, name) < 500);
}

static void empty_folder(const char *path)
{
    const struct dirent *entry;
    DIR *folder = opendir(path);
    char inside[500];
    while (folder && (entry = readdir(folder))) {
        put_path(inside, path, entry->d_name);
        unlink(inside);
    }
    if (folder)
        closedir(folder);
}

static void remove_all(void)
{
    empty_folder(dir);
    rmdir(dir);
    empty_folder(place);
}

static void remove_place(void)
{
    remove_all();
    rmdir(place);
}

static void write_files(void)
{
    char path[500];
    FUZZ_CHECK(mkdir(dir, 0700) == 0);
    put_path(path, dir, "lock");
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (int i = 0; i < FILES; i++) {
        put_path(path, dir, names[i]);
        int fd = files[i].exists ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
        FUZZ_CHECK(fd >= 0 || !files[i].exists);
        size_t length = files[i].data.length;
        if (files[i].exists)
            FUZZ_CHECK(!length || write(fd, files[i].data.data, length) == (ssize_t)length);
        if (fd >= 0)
            close(fd);
    }
}

/* ---- An intact journal ----------------------------------------------------------------------- */

static uint32_t make_series(const char *group, const char *name, uint16_t flags)
{
    const weir_label label = {"route", "/x"};
    struct wr_error error;
    struct weir_stream *stream = wr_stream_get(&registry, group, &label, 1, &error);
    return wr_series_get(&registry, stream, name, flags, &error)->series;
}

static void fill_ring(struct wr_ring_block *ring, uint32_t a, uint32_t b, uint32_t total)
{
    const weir_sample slots[] = {
        {.series = a, .value.f64 = 1}, /* taken */
        {.series = b, .flags = WR_RING_TEXT, .time_ns = 1, .value.f64 = 2, .note = 40},
        {0},
        {0},
        {.series = a, .flags = WR_RING_TICKS | WEIR_SAMPLE_MORE, .time_ns = 5000, .value.f64 = 3},
        {.series = a, .flags = WR_RING_TICKS, .time_ns = 5000, .value.f64 = 4},
        {.series = total, .kind = WEIR_KIND_INT, .flags = WEIR_SAMPLE_CUMULATIVE, .value.i64 = 5},
    };
    memcpy(ring->slots, slots, sizeof slots);
    memset(&ring->slots[2], 'm', 40);
    wr_versioned_set(&ring->taken, 1);
    atomic_store(&ring->tail, WR_COUNT_OF(slots));
}

static void fill_segment(struct wr_journal *journal, struct wr_segment_file *file, uint32_t series)
{
    for (uint32_t slot = 0; slot < file->head->lanes; slot++)
        file->ids[slot] = (struct wr_sample_id){{{1}}, 100};
    wr_journal_begin(journal, file, wr_journal_feed(journal));
    for (uint32_t i = 0; i < SEGMENT_ROOM - 1; i++)
        file->samples[i] = (weir_sample){
            .series = series, .flags = i % 3 == 1 ? WEIR_SAMPLE_MORE : 0, .time_ns = 1, .value.f64 = i};
    wr_segment_file_put_text(file, "first", 5);
    wr_segment_file_put_text(file, "second", 6);
    file->samples[0].note = 1;
    file->samples[4].note = 2;
    wr_segment_file_settle(file, 0, 0, 1);
    wr_versioned_put(&file->head->committed, wr_journal_round(journal), SEGMENT_ROOM - 1);
}

/* Of two series, of one of which a part was taken. */
static struct wr_cells_block *make_cells(struct wr_journal *journal, uint32_t first)
{
    enum { CELLS_COUNT = 2 };
    size_t size = CELLS_COUNT * (sizeof(struct wr_cell) + sizeof(struct wr_cell_kept));
    struct wr_cells_block *block = wr_journal_cells(journal, sizeof *block + size, 1);
    FUZZ_CHECK(block);
    block->first = first;
    block->count = CELLS_COUNT;
    for (uint32_t i = 0; i < CELLS_COUNT; i++) {
        struct wr_cell *cell = wr_cells_block_cells(block) + i;
        atomic_store(&cell->values, 5 - i);
        atomic_store(&cell->sum, 2 * (5 - i));
    }
    wr_versioned_set(&wr_cells_block_kept(block)->values, 1);
    wr_versioned_set(&wr_cells_block_kept(block)->sum, wr_cell_word(2));
    return block;
}

static void make_buckets(struct wr_journal *journal, uint32_t series)
{
    enum { COUNT = 3 };
    static const double bounds[COUNT - 1] = {1, 10};
    size_t size = wr_cell_buckets_size(COUNT);
    struct wr_cells_block *block = wr_journal_cells(journal, sizeof *block + size + WR_LINE, 1);
    FUZZ_CHECK(block);
    struct wr_cell_buckets *buckets = wr_cells_block_buckets(block);
    buckets->size = (uint32_t)size;
    buckets->series = series;
    buckets->count = COUNT;
    atomic_store(&buckets->sum, 31);
    atomic_store(&buckets->min, 0.5);
    atomic_store(&buckets->max, 20);
    atomic_store(&buckets->values[0], 1);
    atomic_store(&buckets->values[2], 1);
    memcpy((double *)wr_cell_buckets_bounds(buckets), bounds, sizeof bounds);
}

static void fill_journal(struct wr_journal *journal)
{
    uint32_t a = make_series("a", "latency", 0), b = make_series("b.inner", "size", 0);
    uint32_t total = make_series("b", "requests", WEIR_SAMPLE_CUMULATIVE);
    const struct wr_segment_shape one = {SEGMENT_ROOM, TEXT_ROOM, 1, lane_names};
    const struct wr_segment_shape both = {SEGMENT_ROOM, TEXT_ROOM, LANES, lane_names};
    struct wr_ring_block *ring = wr_journal_ring(journal, RING_SLOTS, 1);
    struct wr_segment_file *first = wr_journal_segment(journal, &one, 1);
    struct wr_segment_file *second = wr_journal_segment(journal, &both, 1);
    FUZZ_CHECK(ring && first && second);
    fill_ring(ring, a, b, total);
    fill_segment(journal, first, a);
    fill_segment(journal, second, b);
    struct wr_cells_block *cells = make_cells(journal, a);
    make_buckets(journal, b);
    wr_journal_commit(journal);
    /* would differ in each run */
    journal->head->pid = 1;
    journal->head->created_ns = 1;
    journal->head->lines[0] = (struct wr_timeline){{1000, 1}, {2000, 1001}, UINT64_C(1) << 32};
    wr_segment_file_close(first);
    wr_segment_file_close(second);
    cells->next = NULL;
}

/* Keeps the files, without the zeros after the used part of the series. */
static void keep_journal(void)
{
    char path[500];
    for (int i = 0; i < FILES; i++) {
        put_path(path, dir, names[i]);
        sound[i].exists = access(path, F_OK) == 0;
        if (sound[i].exists)
            FUZZ_CHECK(wr_spool_disk_read(path, &sound[i].data) == 0);
    }
    struct wr_buffer *series = &sound[SERIES].data;
    while (series->length && !series->data[series->length - 1])
        series->length--;
    series->length = (series->length + 7) / 8 * 8;
}

static void make_journal(void)
{
    struct wr_deferred_log words = {0};
    struct wr_error error;
    struct wr_journal *journal = wr_journal_start(place, &registry, &words, &error);
    FUZZ_CHECK(journal);
    fill_journal(journal);
    snprintf(dir, sizeof dir, "%s", journal->dir.path);
    keep_journal();
    wr_journal_stop(journal);
    remove_all();
    wr_mapped_file_close(&journal->meta);
    wr_mapped_file_close(&journal->series.map);
    free(journal->dir.path);
    free(journal);
}

/* ---- The recovering process ------------------------------------------------------------------ */

static void set_up(void)
{
    static const char text[] = "{\"groups\": {\"a\": [\"A\"], \"b\": [\"A\", \"B\"]}}";
    static bool done;
    struct wr_error error;
    if (done)
        return;
    done = true;
    const char *temporary = getenv("TMPDIR");
    snprintf(place, sizeof place, "%s/weir-fuzz-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    FUZZ_CHECK(mkdtemp(place));
    atexit(remove_place);
    FUZZ_CHECK(wr_registry_init(&registry) && wr_producers_init(&producers));
    atomic_store(&registry.max, MANY_SERIES); /* names from the fuzzer are never freed */
    wr_dispatcher_init(&dispatcher, &registry, &worker_env);
    dispatcher.running = true; /* so that no thread is started */
    config = wr_config_read_text("text", text, sizeof text - 1, NULL, &error);
    FUZZ_CHECK(config);
    make_journal();
}

static struct wr_lane *find_lane(void *ctx, const char *handler, struct wr_lane_settings *settings)
{
    (void)ctx;
    *settings =
        (struct wr_lane_settings){.queue_bytes = 1024 * 1024, .batch = 5000, .batch_bytes = 1024 * 1024};
    for (int i = 0; i < LANES; i++)
        if (strcmp(lane_names[i], handler) == 0)
            return lanes[i];
    return NULL;
}

static void start(void)
{
    for (int i = 0; i < LANES; i++) {
        lanes[i] = wr_lane_new(lane_names[i], &log_of_nothing, &dispatcher.wakeup, NULL);
        FUZZ_CHECK(lanes[i]);
    }
    struct wr_router *router = wr_router_new(config, &dispatcher.drain.pool, false, find_lane, NULL, NULL);
    FUZZ_CHECK(router);
    for (size_t i = 0; i < router->lane_count; i++)
        router->lanes[i].started = true; /* the fuzzer is the worker */
    wr_router_free(wr_dispatcher_switch(&dispatcher, router), 0);
}

static void stop(void)
{
    wr_router_free(dispatcher.drain.router, 0);
    dispatcher.drain.router = NULL;
    for (int i = 0; i < LANES; i++)
        wr_lane_free_unused(lanes[i]);
    wr_segment_pool_set(&dispatcher.drain.pool, 0);
}

/* ---- Expected results ------------------------------------------------------------------------ */

struct expectation {
    enum wr_journal_reading reading;
    uint64_t samples[LANES];
    uint64_t kept; /* for others */
    bool is_last;  /* its rings use the last round number, so they are not read again */
};

static bool is_within(const char *group, const char *ancestor)
{
    size_t length = strlen(ancestor);
    return strncmp(group, ancestor, length) == 0 && (!group[length] || group[length] == '.');
}

/* Whether the series is valid and its samples are routed to the lane. */
static bool goes_to(const struct wr_journal_views *views, uint32_t id, int lane)
{
    struct wr_series_codec_room room;
    weir_series view;
    struct wr_error error;
    if (!wr_journal_views_get(views, id, &view, &room))
        return false;
    struct weir_stream *stream = wr_stream_get(&registry, view.group, view.labels, view.label_count, &error);
    if (wr_series_get(&registry, stream, view.name, view.cumulative ? WEIR_SAMPLE_CUMULATIVE : 0, &error)
            ->stream->refusal)
        return false;
    return is_within(view.group, "b") || (lane == 0 && is_within(view.group, "a"));
}

static void expect_ring(const struct wr_journal_reader *reader, const struct wr_journal_reader_ring *ring,
                        struct expectation *expected)
{
    struct wr_journal_event event;
    for (uint64_t at = ring->taken; at < ring->tail && wr_journal_reader_event(ring, at, &event);
         at = event.end)
        for (int lane = 0; lane < LANES; lane++)
            if (goes_to(&reader->views, event.series, lane))
                expected->samples[lane] += event.samples;
}

static void expect_cells(const struct wr_journal_reader *reader, struct wr_cells_block *block,
                         struct expectation *expected)
{
    struct wr_journal_cells_walk walk = {.block = block, .round = reader->round};
    struct wr_journal_cells found;
    while (wr_journal_cells_next(&walk, &found))
        for (int lane = 0; lane < LANES; lane++)
            if (goes_to(&reader->views, found.series, lane))
                expected->samples[lane] += found.taken.values;
}

/* A summary there would need a text that no fuzzer finds, so it is one sample that is invalid. */
static void expect_segment(const struct wr_journal_reader *reader, const struct wr_segment_file *file,
                           struct expectation *expected)
{
    for (uint32_t slot = 0; slot < file->head->lanes; slot++) {
        const char *name = wr_segment_file_lane(file, slot);
        uint32_t first = 0, length, count = wr_journal_reader_count(reader, file);
        uint64_t *to = strcmp(name, "A") == 0   ? &expected->samples[0]
                       : strcmp(name, "B") == 0 ? &expected->samples[1]
                                                : &expected->kept;
        for (; (length = wr_journal_reader_unsettled(file, slot, &first, count)); first += length)
            *to += length;
    }
}

static void expect(struct expectation *expected)
{
    struct wr_journal_reader reader;
    *expected = (struct expectation){.reading = wr_journal_reader_open(&reader, dir, false)};
    if (expected->reading != WR_JOURNAL_READ)
        return;
    expected->is_last = (reader.ring_count || reader.cells_count) && reader.round == UINT64_MAX - 1;
    for (size_t i = 0; i < reader.ring_count; i++)
        expect_ring(&reader, &reader.rings[i], expected);
    for (size_t i = 0; i < reader.cells_count; i++)
        expect_cells(&reader, reader.cells[i].block, expected);
    for (size_t i = 0; i < reader.segment_count; i++)
        expect_segment(&reader, reader.segments[i], expected);
    wr_journal_reader_close(&reader);
}

/* ---- Recovered samples ----------------------------------------------------------------------- */

static void check_sample(const struct wr_range *range, const weir_sample *sample)
{
    FUZZ_CHECK(sample->series < atomic_load(&registry.series));
    const weir_series *view = atomic_load(&wr_registry_series(&registry, sample->series)->view);
    FUZZ_CHECK(sample->kind <= WEIR_KIND_INT || (sample->kind == WEIR_KIND_SUMMARY && sample->note));
    FUZZ_CHECK(!(sample->flags & ~(WEIR_SAMPLE_MORE | WEIR_SAMPLE_CUMULATIVE)));
    FUZZ_CHECK(!(sample->flags & WEIR_SAMPLE_CUMULATIVE) == !view->cumulative);
    if (!sample->note)
        return;
    const struct wr_segment_notes *notes = atomic_load(&range->segment->notes);
    FUZZ_CHECK(notes && sample->note < notes->count);
    const char *text = notes->texts[sample->note];
    FUZZ_CHECK(wr_utf8_is_valid(text, strlen(text), NULL));
}

static void check_samples(const struct wr_range *range)
{
    for (uint32_t i = 0; i < range->count; i++)
        check_sample(range, &range->segment->samples[range->first + i]);
    FUZZ_CHECK(!(range->segment->samples[range->first + range->count - 1].flags & WEIR_SAMPLE_MORE));
}

static void drain(struct wr_lane *lane)
{
    weir_handler_stats stats;
    while (!wr_queue_is_empty(&lane->ledger.queue))
        deliver_oldest(lane, 3, check_samples);
    wr_lane_stats_get(&stats, lane, 0);
    FUZZ_CHECK(stats.recovered == stats.delivered + stats.dropped[WEIR_DROPPED_CORRUPT]);
}

static void recover(void)
{
    struct wr_recovery recovery = {0};
    wr_recovery_run(&recovery, place, &dispatcher, 1);
    for (int i = 0; i < LANES; i++)
        drain(lanes[i]);
    wr_recovery_leave(&recovery);
    while (recovery.journals) {
        struct wr_recovery_journal *left = recovery.journals;
        recovery.journals = left->next;
        free(left->dir.path);
        free(left);
    }
    struct wr_deferred_texts texts = wr_deferred_log_take(&dispatcher.deferred_log);
    wr_deferred_log_write(&texts, &log_of_nothing);
}

/* damaged: samples may be missing. */
static void try_journal(bool damaged)
{
    struct expectation expected;
    write_files();
    start();
    expect(&expected);
    recover();
    for (int i = 0; i < LANES; i++)
        FUZZ_CHECK(lanes[i]->ledger.recovered == expected.samples[i]);
    if (!damaged)
        FUZZ_CHECK(lanes[0]->ledger.delivered == ALL_OF_A && lanes[1]->ledger.delivered == ALL_OF_B);
    bool is_left = expected.reading == WR_JOURNAL_UNREADABLE || expected.reading == WR_JOURNAL_OTHER_VERSION ||
                   expected.kept || expected.is_last;
    FUZZ_CHECK((access(dir, F_OK) == 0) == is_left);
    recover();
    for (int i = 0; i < LANES; i++)
        FUZZ_CHECK(lanes[i]->ledger.recovered == expected.samples[i]);
    stop();
    remove_all();
}

/* ---- Input ----------------------------------------------------------------------------------- */

static void set_contents(struct contents *to, const void *data, size_t length)
{
    wr_buffer_clear(&to->data);
    wr_buffer_put(&to->data, data, length);
    to->exists = true;
}

/* of_cells: which files they are; as in the next function. */
static void damage(const uint8_t **at, const uint8_t *end, bool of_cells)
{
    enum { BYTE, WORD, CUT, GONE };
    const uint8_t *patch = *at;
    struct contents *file = &files[of_cells ? CELLS + patch[0] % OF_CELLS : patch[0] % CELLS];
    size_t offset = (size_t)(patch[1] | patch[2] << 8), length = file->data.length;
    int kind = patch[0] / CELLS % 4;
    *at = patch + (kind == BYTE ? 4 : kind == WORD ? 11 : 3);
    if (*at > end) {
        *at = end;
        return;
    }
    if (kind == CUT && offset < length)
        file->data.length = offset;
    else if (kind == GONE)
        file->exists = false;
    else if (kind == BYTE && length)
        file->data.data[offset % length] = (char)patch[3];
    else if (kind == WORD && length >= 8)
        memcpy(&file->data.data[offset % (length - 7) / 8 * 8], patch + 3, 8);
}

static void replace(const uint8_t **at, const uint8_t *end, bool of_cells)
{
    const uint8_t *head = *at;
    size_t length = (size_t)(head[1] | head[2] << 8), rest = (size_t)(end - head) - 3;
    length = length < rest ? length : rest;
    set_contents(&files[of_cells ? CELLS + head[0] % OF_CELLS : head[0] % CELLS], head + 3, length);
    *at = head + 3 + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *at = data + 1, *end = data + size;
    if (size == 0)
        return 0;
    set_up();
    for (int i = 0; i < FILES; i++) {
        set_contents(&files[i], sound[i].data.data, sound[i].data.length);
        files[i].exists = sound[i].exists;
    }
    while (end - at >= 3)
        (data[0] % 2 ? replace : damage)(&at, end, data[0] & 2);
    try_journal(size > 1);
    return 0;
}
