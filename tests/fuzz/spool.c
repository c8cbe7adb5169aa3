/* Files of a spool: for any contents, reading ends, stays within the file, and yields no more samples than it
 * can hold. The first byte selects the kind of the rest:
 *
 *   0  a file, as it is
 *   1  blocks with hostile contents and valid checksums: 28 bytes of header, then the payload
 *   2  damage to an intact file, as offsets and bytes: reading yields the written samples or none */

#include "text/common.h"
#include "text/error.h"
#include "fuzz.h"
#include "producer/ring.h"
#include "segment/segment.h"
#include "registry/series.h"
#include "spool/spool_block.h"
#include "spool/spool_reader.h"
#include "spool/spool_writer.h"
#include "registry/stream.h"

enum { FEW_SERIES = 2000, WRITTEN = 40, FIRST_POSITION = 1000 };

static struct wr_registry registry;
static struct wr_segment_pool pool;
static uint64_t labels_made;

static void set_up(void)
{
    static bool done;
    if (done)
        return;
    FUZZ_CHECK(wr_registry_init(&registry));
    atomic_store(&registry.max, FEW_SERIES); /* names from the fuzzer are never freed */
    done = true;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Sample number n was written with the value n. */
static void check_values(const struct wr_segment *segment, uint32_t first)
{
    for (uint32_t i = 0; i < segment->count; i++) {
        FUZZ_CHECK(segment->samples[i].kind == WEIR_KIND_INT);
        FUZZ_CHECK(segment->samples[i].value.i64 == (int64_t)first + i);
    }
}

static void load(const struct wr_spool_reader *reader, const struct wr_spool_part *part, bool is_known)
{
    struct wr_segment *segment = wr_segment_new(&pool, part->count);
    FUZZ_CHECK(segment);
    FUZZ_CHECK(wr_spool_reader_load(reader, part, 0, segment) && segment->count <= part->count);
    for (uint32_t i = 0; i < segment->count; i++)
        FUZZ_CHECK(wr_registry_series(&registry, segment->samples[i].series));
    if (is_known) {
        check_values(segment, part->first);
        FUZZ_CHECK(part->id.sequence == part->first);
    }
    wr_segment_drop(segment);
}

static void read_all(const char *data, size_t size, bool is_known)
{
    struct wr_spool_reader reader;
    const struct wr_spool_part *part;
    uint64_t samples = 0;
    wr_spool_reader_init(&reader, data, size, &registry, &labels_made);
    while ((part = wr_spool_reader_look(&reader))->kind != WR_SPOOL_PART_END) {
        FUZZ_CHECK(part->kind != WR_SPOOL_PART_NO_MEMORY);
        if (part->kind == WR_SPOOL_PART_GOOD) {
            FUZZ_CHECK(part->payload >= data && part->payload + part->length <= data + size);
            samples += part->count;
            load(&reader, part, is_known);
        }
        wr_spool_reader_take(&reader);
    }
    FUZZ_CHECK(samples <= size / sizeof(weir_sample));
    bool damaged;
    uint64_t extra;
    FUZZ_CHECK(wr_spool_reader_measure(data, size, 0, &extra, &damaged) >= reader.index || reader.damaged);
    wr_spool_reader_fini(&reader);
}

/* ---- Hostile blocks -------------------------------------------------------------------------- */

static void put_head(struct wr_buffer *file)
{
    const struct wr_spool_writer_info info = {"push", 4711, 17, FIRST_POSITION};
    wr_spool_block_put_head(file, &info);
}

static void read_hostile(const uint8_t *data, size_t size)
{
    struct wr_buffer file = {0};
    uint32_t fields[7]; /* kind, length, first, count, labels, notes, sequence */
    put_head(&file);
    while (size >= sizeof fields) {
        memcpy(fields, data, sizeof fields);
        data += sizeof fields;
        size -= sizeof fields;
        size_t length = fields[1] % 4096 < size ? fields[1] % 4096 : size;
        const struct wr_spool_block block = {.kind = fields[0] % 5,
                                             .first = fields[2],
                                             .count = fields[3],
                                             .labels = fields[4],
                                             .notes = fields[5],
                                             .position = fields[6]};
        size_t start = wr_spool_block_begin(&file);
        wr_buffer_put(&file, data, length);
        wr_spool_block_end(&file, start, &block);
        data += length;
        size -= length;
    }
    char *copy = malloc(file.length);
    FUZZ_CHECK(copy);
    memcpy(copy, file.data, file.length);
    read_all(copy, file.length, false);
    free(copy);
    wr_buffer_fini(&file);
}

/* ---- Damage ---------------------------------------------------------------------------------- */

static void put_samples(struct wr_spool_writer *writer, struct wr_segment *segment, struct wr_buffer *file)
{
    struct wr_error error = {0};
    struct weir_stream *stream = wr_stream_get(&registry, "my_app", NULL, 0, &error);
    const struct weir_metric *metric = wr_series_get(&registry, stream, "latency", 0, &error);
    for (uint32_t i = 0; i < WRITTEN; i++) {
        weir_sample *sample = &segment->samples[segment->count++];
        *sample = (weir_sample){.series = metric->series, .kind = WEIR_KIND_INT, .time_ns = i, .value.i64 = i};
        if (i % 8 != 7)
            continue;
        struct wr_range range = {.segment = segment,
                                 .first = i - 7,
                                 .count = 8,
                                 .bytes = wr_segment_bytes(segment, i - 7, 8),
                                 .position = FIRST_POSITION + i - 7,
                                 .id.sequence = i - 7};
        FUZZ_CHECK(wr_spool_writer_put(writer, &range, NULL, file));
    }
}

static void make_sound_file(struct wr_buffer *file)
{
    struct wr_spool_writer writer = {.registry = &registry};
    struct wr_segment *segment = wr_segment_new(&pool, WRITTEN);
    FUZZ_CHECK(segment);
    wr_spool_writer_begin(&writer);
    put_head(file);
    put_samples(&writer, segment, file);
    wr_spool_writer_fini(&writer);
    wr_segment_drop(segment);
}

static void read_damaged(const uint8_t *data, size_t size)
{
    struct wr_buffer file = {0};
    make_sound_file(&file);
    for (; size >= 3; data += 3, size -= 3)
        file.data[(size_t)(data[0] << 8 | data[1]) % file.length] = (char)data[2];
    read_all(file.data, file.length, true);
    wr_buffer_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    set_up();
    switch (data[0] % 3) {
    case 0: read_all((const char *)data + 1, size - 1, false); break;
    case 1: read_hostile(data + 1, size - 1); break;
    default: read_damaged(data + 1, size - 1);
    }
    return 0;
}
