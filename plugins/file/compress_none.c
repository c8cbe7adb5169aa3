/* compress, where there is no zlib: no option leads to it. */
#include "compress.h"

bool wr_compress_is_built(void)
{
    return false;
}

void wr_compress_init(struct compress *compress, const weir_host *host)
{
    *compress = (struct compress){.host = host, .in = -1, .out = -1};
}

enum compress_state wr_compress_begin(struct compress *compress, const struct archive_file *file)
{
    (void)compress;
    (void)file;
    return COMPRESS_DONE;
}

enum compress_state wr_compress_go_on(struct compress *compress)
{
    (void)compress;
    return COMPRESS_DONE;
}

void wr_compress_stop(struct compress *compress)
{
    (void)compress;
}

void wr_compress_abandon(const struct compress *compress)
{
    (void)compress;
}
