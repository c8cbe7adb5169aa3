#include "spool/spool_block.h"

#include <string.h>

#include "text/crc.h"

enum { MAGIC = 0x6b6c6277, ALIGNMENT = 8, LONGEST_NAME = 256 /* a handler's, with its NUL */ };

struct head {
    char magic[8];
    uint32_t version;
    uint32_t pid;
    int64_t created_ns;
    uint64_t position;
    uint32_t name_bytes; /* of the handler's name behind the head, with its NUL and padding */
    uint32_t check;      /* of all before, and the name */
    struct wr_spool_mark mark;
};

static const char head_magic[8] = "weirspl";

const size_t wr_spool_block_mark_offset = offsetof(struct head, mark);

static size_t round_up(size_t length)
{
    return (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void pad(struct wr_buffer *out)
{
    static const char zeros[ALIGNMENT] = {0};
    wr_buffer_put(out, zeros, round_up(out->length) - out->length);
}

/* ---- The head -------------------------------------------------------------------------------- */

static uint32_t check_head(const struct head *head, const char *name)
{
    return wr_crc_add(wr_crc_add(0, head, offsetof(struct head, check)), name, head->name_bytes);
}

void wr_spool_block_put_head(struct wr_buffer *out, const struct wr_spool_writer_info *info)
{
    struct head head = {
        .version = WR_SPOOL_BLOCK_VERSION,
        .pid = info->pid,
        .created_ns = info->created_ns,
        .position = info->position,
        .mark = wr_spool_block_mark(0),
    };
    memcpy(head.magic, head_magic, sizeof head.magic);
    size_t start = out->length;
    wr_buffer_put(out, &head, sizeof head);
    wr_buffer_put(out, info->handler, strlen(info->handler) + 1);
    pad(out);
    if (out->failed)
        return;
    head.name_bytes = (uint32_t)(out->length - start - sizeof head);
    head.check = check_head(&head, out->data + start + sizeof head);
    memcpy(out->data + start, &head, sizeof head);
}

/* Reads the head of a file of any version. Returns false if it is damaged. */
static bool find_head(const char *data, size_t size, struct head *head)
{
    if (size < sizeof *head)
        return false;
    memcpy(head, data, sizeof *head);
    const char *name = data + sizeof *head;
    return memcmp(head->magic, head_magic, sizeof head->magic) == 0 && head->name_bytes >= 1 &&
           head->name_bytes % ALIGNMENT == 0 && head->name_bytes <= size - sizeof *head &&
           head->check == check_head(head, name) && name[head->name_bytes - 1] == '\0';
}

bool wr_spool_block_read_head(const char *data, size_t size, struct wr_spool_writer_info *info, size_t *length)
{
    struct head head;
    if (!find_head(data, size, &head) || head.version != WR_SPOOL_BLOCK_VERSION)
        return false;
    *info = (struct wr_spool_writer_info){data + sizeof head, head.pid, head.created_ns, head.position};
    *length = sizeof head + head.name_bytes;
    return true;
}

uint32_t wr_spool_block_read_version(const char *data, size_t size)
{
    struct head head;
    return find_head(data, size, &head) ? head.version : 0;
}

struct wr_spool_mark wr_spool_block_mark(uint32_t settled)
{
    return (struct wr_spool_mark){settled, wr_crc_add(0, &settled, sizeof settled)};
}

uint32_t wr_spool_block_read_mark(const char *data, size_t size)
{
    struct wr_spool_mark mark;
    if (size < sizeof(struct head))
        return 0;
    memcpy(&mark, data + wr_spool_block_mark_offset, sizeof mark);
    return mark.check == wr_spool_block_mark(mark.settled).check ? mark.settled : 0;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

size_t wr_spool_block_begin(struct wr_buffer *out)
{
    static const struct wr_spool_block nothing = {0};
    size_t start = out->length;
    wr_buffer_put(out, &nothing, sizeof nothing);
    return start;
}

static uint32_t check_block(const struct wr_spool_block *block)
{
    return wr_crc_add(0, block, offsetof(struct wr_spool_block, check));
}

void wr_spool_block_end(struct wr_buffer *out, size_t start, const struct wr_spool_block *block)
{
    struct wr_spool_block whole = *block;
    pad(out);
    if (out->failed)
        return;
    const char *payload = out->data + start + sizeof whole;
    whole.magic = MAGIC;
    whole.length = (uint32_t)(out->length - start - sizeof whole);
    whole.payload_check = wr_crc_add(0, payload, whole.length);
    whole.check = check_block(&whole);
    memcpy(out->data + start, &whole, sizeof whole);
}

/* Its length may be any: a batch may be of 1 GiB. */
static bool is_header(const struct wr_spool_block *block)
{
    return block->magic == MAGIC && block->length % ALIGNMENT == 0 && block->check == check_block(block);
}

size_t wr_spool_block_find(const char *data, size_t size, size_t at, struct wr_spool_block *block)
{
    for (at = round_up(at); size >= sizeof *block && at <= size - sizeof *block; at += ALIGNMENT) {
        memcpy(block, data + at, sizeof *block);
        if (is_header(block))
            return at;
    }
    return size;
}

bool wr_spool_block_is_whole(const char *data, size_t size, size_t at, const struct wr_spool_block *block)
{
    return block->length <= size - at - sizeof *block &&
           block->payload_check == wr_crc_add(0, data + at + sizeof *block, block->length);
}

/* ---- Ends that are missing ------------------------------------------------------------------- */

static bool is_head_cut_off(const char *data, size_t size)
{
    struct head head;
    if (size < sizeof head)
        return memcmp(data, head_magic, size < sizeof head_magic ? size : sizeof head_magic) == 0;
    memcpy(&head, data, sizeof head);
    return memcmp(head.magic, head_magic, sizeof head.magic) == 0 && head.name_bytes <= LONGEST_NAME &&
           head.name_bytes > size - sizeof head;
}

/* The header has a checksum of its own, so a length beyond the end is what the writer wrote. */
bool wr_spool_block_is_cut_off(const char *data, size_t size, size_t at)
{
    static const uint32_t magic = MAGIC;
    struct wr_spool_block block;
    size_t rest = size - at;
    if (rest == 0 || at == 0)
        return rest == 0 || is_head_cut_off(data, size);
    if (rest < sizeof block)
        return memcmp(data + at, &magic, rest < sizeof magic ? rest : sizeof magic) == 0;
    memcpy(&block, data + at, sizeof block);
    return is_header(&block) && block.length > rest - sizeof block;
}
