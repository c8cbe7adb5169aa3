#include "format/iso_time.h"

#include <string.h>

#include "format/utc_time.h"
#include "text/number.h"

void wr_iso_time_put(char *out, int64_t time_ns)
{
    static const char pattern[] = "0000-00-00T00:00:00.000000";
    const struct wr_utc_time time = wr_utc_time_split(time_ns);
    memcpy(out, pattern, WR_ISO_TIME);
    wr_number_put_padded(out, (uint32_t)time.year, 4);
    wr_number_put_padded(out + 5, (uint32_t)time.month, 2);
    wr_number_put_padded(out + 8, (uint32_t)time.day, 2);
    wr_number_put_padded(out + 11, time.hour, 2);
    wr_number_put_padded(out + 14, time.minute, 2);
    wr_number_put_padded(out + 17, time.second, 2);
    wr_number_put_padded(out + 20, time.microsecond, 6);
}
