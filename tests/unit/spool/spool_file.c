/* Files of a spool: written, read back, damaged at every byte, truncated at every length. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../support/failing.h"
#include "text/common.h"
#include "text/error.h"
#include "producer/ring.h"
#include "registry/family.h"
#include "registry/series.h"
#include "spool/spool_block.h"
#include "spool/spool_reader.h"
#include "spool/spool_writer.h"
#include "registry/stream.h"

enum { MOST = 64, FIRST_POSITION = 1000 };

static struct wr_registry written, read_back; /* of the writing and of the reading process */
static struct wr_segment_pool pool;
static struct wr_segment *segment; /* all samples ever written to the file */
static struct wr_spool_writer writer;
static struct wr_buffer file;
static uint32_t put_so_far, block_of[MOST]; /* a sample's block */
static size_t blocks[MOST];                 /* offset of the block of samples number n */
static const char *hosts[MOST];             /* its label */
static uint32_t block_count;
static uint64_t labels_made;
static const struct wr_sample_id first_id = {{{0xfe, 0xed}}, 70000};
static struct wr_label_set *here, *there;

static uint32_t series_of(struct wr_registry *registry, const char *group, const char *name,
                          const weir_label *labels, size_t count, uint16_t flags)
{
    struct wr_error error = {0};
    struct weir_stream *stream = wr_stream_get(registry, group, labels, count, &error);
    const struct weir_metric *metric = wr_series_get(registry, stream, name, flags, &error);
    cr_assert_eq(error.code, 0, "%s", error.text);
    return metric->series;
}

static void setup(void)
{
    cr_assert(wr_registry_init(&written) && wr_registry_init(&read_back));
    /* the ids of both processes differ */
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof name, "own%d", i);
        series_of(&read_back, "of.its.own", name, NULL, 0, 0);
    }
    segment = wr_segment_new(&pool, MOST);
    writer.registry = &written;
    wr_spool_writer_begin(&writer);
    const struct wr_spool_writer_info info = {"push", 4711, 17, FIRST_POSITION};
    wr_spool_block_put_head(&file, &info);
}

static void teardown(void)
{
    failing_set(false);
    wr_labels_drop(here);
    wr_labels_drop(there);
    here = there = NULL;
    wr_segment_drop(segment);
    wr_segment_pool_trim(&pool);
    wr_spool_writer_fini(&writer);
    wr_buffer_fini(&file);
}

TestSuite(spool_file, .init = setup, .fini = teardown);

/* ---- Writing --------------------------------------------------------------------------------- */

/* Appends an event of `samples` samples with consecutive values. */
static void append(uint32_t series, uint32_t samples, uint16_t flags, const char *note)
{
    for (uint32_t i = 0; i < samples; i++) {
        uint32_t number = segment->count++;
        weir_sample *sample = &segment->samples[number];
        *sample = (weir_sample){
            .series = series,
            .kind = number % 2 ? WEIR_KIND_INT : WEIR_KIND_DOUBLE,
            .flags = (uint16_t)(flags | (i + 1 < samples ? WEIR_SAMPLE_MORE : 0)),
            .time_ns = 1795219607576198123 + number,
        };
        sample->value.i64 = -(int64_t)number;
        if (number % 2 == 0)
            sample->value.f64 = number + 0.5;
        if (note && i == 0)
            sample->note = wr_segment_add_note(segment, note, strlen(note));
    }
}

/* The offset of the samples of the first block at or after `at`. */
static size_t find_samples(size_t at)
{
    struct wr_spool_block block;
    while ((at = wr_spool_block_find(file.data, file.length, at, &block)) < file.length) {
        if (block.kind == WR_SPOOL_BLOCK_SAMPLES)
            return at;
        at += sizeof block + block.length;
    }
    cr_assert(false, "no samples were expected");
    return at;
}

/* Writes the samples appended since the last call as one block. */
static void put(const struct wr_label_set *labels)
{
    size_t start = file.length;
    struct wr_range range = {
        .segment = segment,
        .first = put_so_far,
        .count = segment->count - put_so_far,
        .bytes = wr_segment_bytes(segment, put_so_far, segment->count - put_so_far),
        .position = FIRST_POSITION + put_so_far,
        .id = wr_sample_id_behind(&first_id, put_so_far),
    };
    cr_assert(wr_spool_writer_put(&writer, &range, labels, &file));
    for (; put_so_far < segment->count; put_so_far++)
        block_of[put_so_far] = block_count;
    hosts[block_count] = labels ? labels->items[0].value : NULL;
    blocks[block_count++] = find_samples(start);
}

static struct wr_label_set *make_labels(const char *value, uint64_t number)
{
    struct wr_error error = {0};
    weir_label label = {"host", value};
    weir_map map = {1, &label};
    return wr_labels_new(&map, number, &error);
}

/* A file with all kinds of blocks: four blocks of samples, with definitions before three of them. */
static void write_everything(void)
{
    static const weir_label route[] = {{"method", "GET"}, {"route", "/x"}};
    struct wr_error error;
    uint32_t a = series_of(&written, "my_app", "a", NULL, 0, 0);
    uint32_t b = series_of(&written, "my_app", "b", NULL, 0, 0);
    uint32_t c = series_of(&written, "my_app.db", "c", route, 2, WEIR_SAMPLE_CUMULATIVE);
    uint32_t d = series_of(&written, "my_app", "d", NULL, 0, 0);
    wr_family_describe(&written, wr_stream_get(&written, "my_app", NULL, 0, &error), "b", "ms",
                       "how long it took", &error);
    here = make_labels("here", 1);
    there = make_labels("there", 2);
    append(a, 1, 0, NULL);
    append(b, 3, 0, "a note");
    put(NULL);
    append(c, 1, WEIR_SAMPLE_CUMULATIVE, NULL);
    append(a, 1, 0, "more");
    append(b, 1, 0, "and more");
    put(here);
    append(d, 2, 0, NULL);
    put(there);
    append(a, 1, 0, NULL);
    append(d, 1, 0, NULL);
    put(there);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* What was read from a file. */
static struct {
    bool good[MOST];
    uint32_t good_count, lost;
    bool damaged, no_memory;
} got;

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_series(uint32_t is, uint32_t was)
{
    const weir_series *a = wr_registry_series(&read_back, is)->view,
                      *b = wr_registry_series(&written, was)->view;
    bool same = strcmp(a->group, b->group) == 0 && strcmp(a->name, b->name) == 0 &&
                is_same_text(a->unit, b->unit) && is_same_text(a->help, b->help) &&
                a->cumulative == b->cumulative && a->label_count == b->label_count;
    for (size_t i = 0; same && i < a->label_count; i++)
        same = strcmp(a->labels[i].key, b->labels[i].key) == 0 &&
               strcmp(a->labels[i].value, b->labels[i].value) == 0;
    return same;
}

/* The sample must be identical to the one written as number `number`. */
static void expect_sample(const weir_sample *is, const struct wr_segment *from, uint32_t number)
{
    const weir_sample *was = &segment->samples[number];
    cr_assert_lt(number, segment->count);
    cr_assert_eq(is->value.i64, was->value.i64, "sample %u", number);
    cr_assert_eq(is->time_ns, was->time_ns);
    cr_assert_eq(is->kind, was->kind);
    cr_assert_eq(is->flags, was->flags & (WEIR_SAMPLE_MORE | WEIR_SAMPLE_CUMULATIVE));
    cr_assert(is_same_series(is->series, was->series), "sample %u", number);
    cr_assert_eq(!is->note, !was->note);
    if (is->note)
        cr_assert_str_eq(wr_segment_texts(from)[is->note], wr_segment_texts(segment)[was->note]);
}

static void expect_labels(const struct wr_label_set *labels, uint32_t number)
{
    const char *host = hosts[block_of[number]];
    cr_assert_eq(!labels, !host);
    if (!labels)
        return;
    cr_assert_eq(labels->count, 1);
    cr_assert_str_eq(labels->items[0].key, "host");
    cr_assert_str_eq(labels->items[0].value, host);
}

static bool check_part(struct wr_spool_reader *reader, const struct wr_spool_part *part)
{
    struct wr_segment *loaded = wr_segment_new(&pool, part->count);
    bool whole = loaded && wr_spool_reader_load(reader, part, 0, loaded);
    got.no_memory |= !whole;
    if (whole) {
        cr_assert_eq(loaded->count, part->count);
        cr_assert_eq(part->position, FIRST_POSITION + part->first);
        cr_assert(wr_sample_id_follows(&part->id, &first_id, part->first));
        for (uint32_t i = 0; i < part->count; i++) {
            expect_sample(&loaded->samples[i], loaded, part->first + i);
            cr_assert_not(got.good[part->first + i]);
            got.good[part->first + i] = true;
        }
        got.good_count += part->count;
        expect_labels(part->labels, part->first);
    }
    wr_segment_drop(loaded);
    return whole;
}

/* Reads data to its end. Samples may be missing; those that are read must be as written and in order. */
static void read_data(const char *data, size_t size)
{
    struct wr_spool_reader reader;
    const struct wr_spool_part *part;
    memset(&got, 0, sizeof got);
    wr_spool_reader_init(&reader, data, size, &read_back, &labels_made);
    uint32_t index = 0;
    while ((part = wr_spool_reader_look(&reader))->kind != WR_SPOOL_PART_END) {
        got.no_memory |= part->kind == WR_SPOOL_PART_NO_MEMORY;
        if (got.no_memory)
            break;
        cr_assert_eq(part->first, index);
        index += part->count;
        if (part->kind == WR_SPOOL_PART_LOST)
            got.lost += part->count;
        else if (!check_part(&reader, part))
            break;
        wr_spool_reader_take(&reader);
    }
    got.damaged = reader.damaged;
    wr_spool_reader_fini(&reader);
}

static uint32_t measure(size_t length, bool expect_damage)
{
    bool damaged = !expect_damage;
    uint64_t values = 0;
    uint32_t samples = wr_spool_reader_measure(file.data, length, 0, &values, &damaged);
    cr_assert_eq(damaged, expect_damage, "%zu bytes", length);
    cr_assert_eq(values, samples);
    return samples;
}

Test(spool_file, written_samples_are_read_back_unchanged)
{
    write_everything();
    read_data(file.data, file.length);
    cr_assert_eq(got.good_count, segment->count);
    cr_assert_eq(got.lost, 0);
    cr_assert_not(got.damaged);
    cr_assert_eq(measure(file.length, false), segment->count);
}

Test(spool_file, the_head_identifies_the_writer)
{
    struct wr_spool_writer_info info;
    size_t length;
    cr_assert(wr_spool_block_read_head(file.data, file.length, &info, &length));
    cr_assert_str_eq(info.handler, "push");
    cr_assert_eq(info.pid, 4711);
    cr_assert_eq(info.created_ns, 17);
    cr_assert_eq(info.position, FIRST_POSITION);
    cr_assert_eq(length, file.length);
    cr_assert_eq(length % 8, 0);
}

Test(spool_file, the_mark_records_how_much_is_settled)
{
    cr_assert_eq(wr_spool_block_read_mark(file.data, file.length), 0);
    struct wr_spool_mark mark = wr_spool_block_mark(123456);
    memcpy(file.data + wr_spool_block_mark_offset, &mark, sizeof mark);
    cr_assert_eq(wr_spool_block_read_mark(file.data, file.length), 123456);
    file.data[wr_spool_block_mark_offset] ^= 1;
    cr_assert_eq(wr_spool_block_read_mark(file.data, file.length), 0, "an invalid mark settles nothing");
}

Test(spool_file, a_series_is_defined_once_in_a_file)
{
    uint32_t a = series_of(&written, "my_app", "a", NULL, 0, 0);
    append(a, 1, 0, NULL);
    put(NULL);
    size_t first = file.length;
    append(a, 1, 0, NULL);
    put(NULL);
    cr_assert_eq(file.length - first, sizeof(struct wr_spool_block) + sizeof(weir_sample));
    read_data(file.data, file.length);
    cr_assert_eq(got.good_count, 2);
}

Test(spool_file, another_file_repeats_all_definitions)
{
    uint32_t a = series_of(&written, "my_app", "a", NULL, 0, 0);
    append(a, 1, 0, NULL);
    put(NULL);
    file.length = 0;
    const struct wr_spool_writer_info info = {"push", 4711, 17, FIRST_POSITION};
    wr_spool_block_put_head(&file, &info);
    wr_spool_writer_begin(&writer);
    put_so_far = 0;
    block_count = 0;
    put(NULL);
    read_data(file.data, file.length);
    cr_assert_eq(got.good_count, 1);
    cr_assert_not(got.damaged);
}

Test(spool_file, flags_of_the_core_are_not_written)
{
    append(series_of(&written, "my_app", "a", NULL, 0, 0), 1, WR_RING_NO_WAIT, NULL);
    put(NULL);
    read_data(file.data, file.length);
    cr_assert_eq(got.good_count, 1);
}

Test(spool_file, samples_in_the_middle_can_be_skipped)
{
    struct wr_spool_reader reader;
    write_everything();
    wr_spool_reader_init(&reader, file.data, file.length, &read_back, &labels_made);
    const struct wr_spool_part *part = wr_spool_reader_look(&reader);
    wr_spool_reader_take(&reader);
    part = wr_spool_reader_look(&reader);
    cr_assert_eq(part->first, 4);
    struct wr_segment *loaded = wr_segment_new(&pool, MOST);
    cr_assert(wr_spool_reader_load(&reader, part, 2, loaded));
    cr_assert_eq(loaded->count, 1);
    expect_sample(&loaded->samples[0], loaded, 6);
    wr_segment_drop(loaded);
    wr_spool_reader_fini(&reader);
}

/* ---- Descriptions ---------------------------------------------------------------------------- */

Test(spool_file, descriptions_of_the_reading_process_take_precedence)
{
    struct wr_error error;
    struct weir_stream *stream = wr_stream_get(&read_back, "my_app", NULL, 0, &error);
    wr_family_describe(&read_back, stream, "b", "s", NULL, &error);
    struct weir_stream *written_stream = wr_stream_get(&written, "my_app", NULL, 0, &error);
    wr_family_describe(&written, written_stream, "b", "ms", "help", &error);
    append(series_of(&written, "my_app", "b", NULL, 0, 0), 1, 0, NULL);
    put(NULL);
    wr_family_describe(&written, written_stream, "b", "s", NULL, &error); /* this is expected */
    read_data(file.data, file.length);
    cr_assert_eq(got.good_count, 1);
}

/* ---- Damage ---------------------------------------------------------------------------------- */

/* The block that a byte of the file belongs to: its kind, and for blocks of samples its number. */
struct place {
    uint32_t kind; /* 0: the head */
    uint32_t number;
    bool header;
};

static struct place locate(size_t offset)
{
    struct wr_spool_block block;
    struct place place = {0};
    size_t at = wr_spool_block_find(file.data, file.length, 0, &block);
    for (uint32_t samples = 0; at < file.length && at <= offset;
         samples += place.kind == WR_SPOOL_BLOCK_SAMPLES) {
        place = (struct place){block.kind, samples, offset - at < sizeof block};
        at = wr_spool_block_find(file.data, file.length, at + sizeof block + block.length, &block);
    }
    return place;
}

static uint32_t samples_of(uint32_t block)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < segment->count; i++)
        count += block_of[i] == block;
    return count;
}

/* Whether block `block` depends on the definitions of `kind` before block `definitions_before`. */
static bool depends_on(uint32_t block, uint32_t definitions_before, uint32_t kind)
{
    if (kind == WR_SPOOL_BLOCK_LABELS) /* each set is used until the next one */
        return block == definitions_before || (definitions_before == 2 && block == 3);
    /* a and b come before block 0, c before 1, d before 2 */
    static const bool uses[4][4] = {{true, true, false, true}, {false, true}, {false, false, true, true}};
    return uses[definitions_before][block];
}

static void expect_damage(size_t offset, const struct place *place)
{
    bool is_mark = offset >= wr_spool_block_mark_offset &&
                   offset < wr_spool_block_mark_offset + sizeof(struct wr_spool_mark);
    uint32_t missing = 0;
    for (uint32_t i = 0; i < segment->count; i++) {
        uint32_t block = block_of[i];
        bool hit = place->kind == WR_SPOOL_BLOCK_SAMPLES
                       ? block == place->number
                       : place->kind && depends_on(block, place->number, place->kind);
        cr_assert_eq(got.good[i], !hit, "byte %zu, sample %u", offset, i);
        missing += hit;
    }
    cr_assert_eq(got.damaged, !is_mark, "byte %zu", offset);
    /* the number of samples in the last block is known from its header only */
    bool unknown = place->kind == WR_SPOOL_BLOCK_SAMPLES && place->header && place->number == block_count - 1;
    cr_assert_eq(got.lost, unknown ? 0 : missing, "byte %zu", offset);
}

Test(spool_file, a_damaged_byte_loses_its_block_only)
{
    write_everything();
    for (size_t offset = 0; offset < file.length; offset++) {
        struct place place = locate(offset);
        static const unsigned char masks[] = {0x01, 0x80, 0xff};
        for (size_t i = 0; i < sizeof masks; i++) {
            file.data[offset] ^= (char)masks[i];
            read_data(file.data, file.length);
            expect_damage(offset, &place);
            file.data[offset] ^= (char)masks[i];
        }
    }
}

static uint32_t samples_before(size_t length)
{
    uint32_t samples = 0;
    for (uint32_t block = 0; block < block_count; block++) {
        struct wr_spool_block header;
        memcpy(&header, file.data + blocks[block], sizeof header);
        if (length >= blocks[block] + sizeof header + header.length)
            samples += samples_of(block);
    }
    return samples;
}

/* As its process leaves it that is killed while it writes. */
Test(spool_file, the_end_of_a_file_may_be_missing_at_any_byte_without_being_damage)
{
    write_everything();
    for (size_t length = 0; length < file.length; length++) {
        uint32_t whole = samples_before(length);
        read_data(file.data, length);
        cr_assert_eq(got.good_count, whole, "%zu bytes", length);
        cr_assert_eq(got.lost, 0, "%zu bytes", length);
        cr_assert_not(got.damaged, "%zu bytes", length);
        cr_assert_eq(measure(length, false), whole, "%zu bytes", length);
        for (uint32_t i = 0; i < segment->count; i++)
            cr_assert_eq(got.good[i], i < whole);
    }
}

Test(spool_file, damage_in_front_of_a_missing_end_is_found)
{
    write_everything();
    size_t cut = blocks[3] + sizeof(struct wr_spool_block);
    file.data[blocks[2]] ^= 1;
    for (size_t length = blocks[3] + 1; length < file.length; length++) {
        read_data(file.data, length);
        cr_assert(got.damaged, "%zu bytes", length);
        cr_assert_eq(got.good_count, samples_of(0) + samples_of(1));
        cr_assert_eq(got.lost, length < cut ? 0 : samples_of(2), "the next header tells how many samples");
        cr_assert_eq(measure(length, true), got.good_count + got.lost);
    }
}

Test(spool_file, an_end_that_is_not_of_a_block_is_damage)
{
    static const char garbage[200] = "this is not a block";
    write_everything();
    for (size_t bytes = 1; bytes <= sizeof garbage; bytes++) {
        size_t whole = file.length;
        wr_buffer_put(&file, garbage, bytes);
        read_data(file.data, file.length);
        cr_assert(got.damaged, "%zu bytes", bytes);
        cr_assert_eq(got.good_count, segment->count);
        file.length = whole;
        read_data(garbage, bytes);
        cr_assert(got.damaged, "%zu bytes", bytes);
    }
}

Test(spool_file, two_damaged_places_lose_what_each_loses)
{
    write_everything();
    file.data[blocks[0] + sizeof(struct wr_spool_block)] ^= 1;
    file.data[blocks[2]] ^= 1;
    read_data(file.data, file.length);
    cr_assert_eq(got.lost, samples_of(0) + samples_of(2));
    cr_assert_eq(got.good_count, samples_of(1) + samples_of(3));
}

/* Changes a block and corrects its checksum, so that only the contents are invalid. */
static void forge(size_t at, void (*change)(struct wr_spool_block *block, char *payload))
{
    struct wr_spool_block block;
    memcpy(&block, file.data + at, sizeof block);
    struct wr_buffer forged = {0};
    change(&block, file.data + at + sizeof block);
    size_t start = wr_spool_block_begin(&forged);
    wr_buffer_put(&forged, file.data + at + sizeof block, block.length);
    wr_spool_block_end(&forged, start, &block);
    memcpy(file.data + at, forged.data, forged.length);
    wr_buffer_fini(&forged);
}

static void refer_to_nothing(struct wr_spool_block *block, char *payload)
{
    (void)block;
    memset(payload + offsetof(weir_sample, series), 0xff, 4);
}

static void claim_too_many(struct wr_spool_block *block, char *payload)
{
    (void)payload;
    block->count = UINT32_MAX / 32;
}

static void claim_a_far_end(struct wr_spool_block *block, char *payload)
{
    (void)payload;
    block->count = UINT32_MAX;
}

static void claim_notes(struct wr_spool_block *block, char *payload)
{
    (void)block;
    payload[offsetof(weir_sample, note)] = 7;
}

static void claim_labels(struct wr_spool_block *block, char *payload)
{
    (void)payload;
    block->labels = 3;
}

static void claim_another_kind(struct wr_spool_block *block, char *payload)
{
    (void)block;
    payload[offsetof(weir_sample, kind)] = 99;
}

static void leave_the_last_event_open(struct wr_spool_block *block, char *payload)
{
    payload[(block->count - 1) * sizeof(weir_sample) + offsetof(weir_sample, flags)] = WEIR_SAMPLE_MORE;
}

static void begin_again(struct wr_spool_block *block, char *payload)
{
    (void)payload;
    block->first = 0;
}

Test(spool_file, inconsistent_blocks_are_lost)
{
    static void (*const changes[])(struct wr_spool_block *, char *) = {
        refer_to_nothing, claim_notes, claim_labels, claim_another_kind, leave_the_last_event_open};
    write_everything();
    for (size_t i = 0; i < WR_COUNT_OF(changes); i++) {
        struct wr_buffer copy = {0};
        wr_buffer_put(&copy, file.data, file.length);
        forge(blocks[1], changes[i]);
        read_data(file.data, file.length);
        cr_assert_eq(got.lost, samples_of(1), "change %zu", i);
        cr_assert_eq(got.good_count, segment->count - samples_of(1), "change %zu", i);
        cr_assert(got.damaged);
        memcpy(file.data, copy.data, copy.length);
        wr_buffer_fini(&copy);
    }
}

Test(spool_file, impossible_counts_are_handled)
{
    static void (*const changes[])(struct wr_spool_block *, char *) = {claim_too_many, claim_a_far_end,
                                                                       begin_again};
    write_everything();
    for (size_t i = 0; i < WR_COUNT_OF(changes); i++) {
        struct wr_buffer copy = {0};
        wr_buffer_put(&copy, file.data, file.length);
        forge(blocks[3], changes[i]);
        read_data(file.data, file.length);
        cr_assert(got.damaged, "change %zu", i);
        cr_assert_eq(got.good_count, segment->count - samples_of(3), "change %zu", i);
        memcpy(file.data, copy.data, copy.length);
        wr_buffer_fini(&copy);
    }
}

static void define_too_many(struct wr_spool_block *block, char *payload)
{
    (void)payload;
    block->count = 0x0fffffff;
}

static void define_far_away(struct wr_spool_block *block, char *payload)
{
    (void)payload;
    block->first = UINT32_MAX - 1;
}

static void define_nonsense(struct wr_spool_block *block, char *payload)
{
    memset(payload, 0xff, block->length);
}

Test(spool_file, impossible_definitions_lose_the_blocks_that_depend_on_them)
{
    static void (*const changes[])(struct wr_spool_block *, char *) = {define_too_many, define_far_away,
                                                                       define_nonsense};
    write_everything();
    for (size_t i = 0; i < WR_COUNT_OF(changes); i++) {
        struct wr_spool_block block;
        struct wr_buffer copy = {0};
        wr_buffer_put(&copy, file.data, file.length);
        forge(wr_spool_block_find(file.data, file.length, 0, &block), changes[i]);
        read_data(file.data, file.length);
        cr_assert_eq(got.lost, samples_of(0) + samples_of(1) + samples_of(3), "change %zu", i);
        cr_assert_eq(got.good_count, samples_of(2));
        memcpy(file.data, copy.data, copy.length);
        wr_buffer_fini(&copy);
    }
}

Test(spool_file, a_block_may_have_any_length)
{
    static const char zeros[1024 * 1024];
    struct wr_spool_block block = {.kind = WR_SPOOL_BLOCK_SAMPLES}, found;
    size_t start = wr_spool_block_begin(&file);
    for (int i = 0; i < 65; i++)
        wr_buffer_put(&file, zeros, sizeof zeros);
    wr_spool_block_end(&file, start, &block);
    cr_assert_not(file.failed);
    cr_assert_eq(wr_spool_block_find(file.data, file.length, start, &found), start);
    cr_assert(wr_spool_block_is_whole(file.data, file.length, start, &found));
}

Test(spool_file, names_that_break_the_rules_are_not_interned)
{
    append(series_of(&written, "my_app", "a", NULL, 0, 0), 1, 0, NULL);
    put(NULL);
    struct wr_spool_block block;
    size_t at = wr_spool_block_find(file.data, file.length, 0, &block);
    char *group = file.data + at + sizeof block + sizeof(struct wr_spool_series);
    cr_assert_str_eq(group, "my_app");
    memcpy(group, "my\napp", 6);
    forge(at, begin_again);
    read_data(file.data, file.length);
    cr_assert_eq(got.lost, 1);
}

/* What was added once is neither refused nor taken for damage. */
Test(spool_file, beyond_the_limit_values_go_to_the_overflow_of_their_group)
{
    struct wr_spool_reader reader;
    append(series_of(&written, "my_app", "a", NULL, 0, 0), 1, 0, NULL);
    put(NULL);
    atomic_store(&read_back.max, atomic_load(&read_back.count));
    wr_spool_reader_init(&reader, file.data, file.length, &read_back, &labels_made);
    const struct wr_spool_part *part = wr_spool_reader_look(&reader);
    cr_assert_eq(part->kind, WR_SPOOL_PART_GOOD);
    struct wr_segment *loaded = wr_segment_new(&pool, part->count);
    cr_assert(wr_spool_reader_load(&reader, part, 0, loaded));
    cr_assert_eq(loaded->count, 1);
    cr_assert_eq(loaded->samples[0].value.i64, segment->samples[0].value.i64);
    const weir_series *view = wr_registry_series(&read_back, loaded->samples[0].series)->view;
    cr_assert_str_eq(view->group, "my_app");
    cr_assert_str_eq(view->name, "weir_overflow");
    wr_segment_drop(loaded);
    wr_spool_reader_take(&reader);
    cr_assert_eq(wr_spool_reader_look(&reader)->kind, WR_SPOOL_PART_END);
    cr_assert_not(reader.damaged);
    wr_spool_reader_fini(&reader);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

Test(spool_file, running_out_of_memory_is_not_reported_as_damage)
{
    write_everything();
    unsigned calls = 0;
    for (;; calls++) {
        failing_after(calls);
        read_data(file.data, file.length);
        failing_set(false);
        cr_assert_not(got.damaged);
        cr_assert_eq(got.lost, 0);
        if (!got.no_memory)
            break;
    }
    cr_assert_eq(got.good_count, segment->count);
    cr_assert_gt(calls, 5);
}

Test(spool_file, without_memory_a_write_fails)
{
    append(series_of(&written, "my_app", "a", NULL, 0, 0), 1, 0, NULL);
    struct wr_range range = {.segment = segment, .count = 1, .bytes = sizeof(weir_sample)};
    for (unsigned calls = 0; calls < 2; calls++) {
        struct wr_buffer out = {0};
        wr_spool_writer_begin(&writer);
        failing_after(calls);
        cr_assert_not(wr_spool_writer_put(&writer, &range, NULL, &out));
        failing_set(false);
        wr_buffer_fini(&out);
    }
}
