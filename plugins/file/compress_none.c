/* compress, without zlib: settings.c refuses the option. */
#include "compress.h"

bool wr_compress_is_available(void)
{
    return false;
}

void wr_compress_init(struct compression *compression, const weir_host *host)
{
    *compression = (struct compression){.host = host, .in.fd = -1, .out.fd = -1};
}

enum compress_state wr_compress_begin(struct compression *compression, const struct archive_file *file)
{
    (void)compression;
    (void)file;
    return COMPRESS_DONE;
}

enum compress_state wr_compress_step(struct compression *compression)
{
    (void)compression;
    return COMPRESS_DONE;
}

void wr_compress_stop(struct compression *compression)
{
    (void)compression;
}

void wr_compress_abandon(const struct compression *compression)
{
    (void)compression;
}
