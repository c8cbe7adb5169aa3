#include "handler/numbers.h"

#include "text/number.h"

_Static_assert((int)WEIR_NUMBER_ROOM >= (int)WR_NUMBER_ROOM, "a number of a plugin has less room");

static size_t put(const weir_host *host, char *out, double value)
{
    (void)host;
    size_t length = wr_number_put_double(out, value);
    out[length] = '\0';
    return length;
}

static bool read(const weir_host *host, const char *text, double *value)
{
    (void)host;
    return wr_number_read_double(text, value);
}

const weir_numbers *wr_numbers_service(void)
{
    static const weir_numbers service = {sizeof service, put, read};
    return &service;
}
