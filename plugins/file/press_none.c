/* press, where there is no zlib: no option leads to it. */
#include "press.h"

bool wr_press_is_built(void)
{
    return false;
}

void wr_press_init(struct press *press, const weir_host *host)
{
    *press = (struct press){.host = host, .in = -1, .out = -1};
}

enum press_state wr_press_begin(struct press *press, const struct attic_file *file)
{
    (void)press;
    (void)file;
    return PRESS_DONE;
}

enum press_state wr_press_go_on(struct press *press)
{
    (void)press;
    return PRESS_DONE;
}

void wr_press_stop(struct press *press)
{
    (void)press;
}

void wr_press_abandon(const struct press *press)
{
    (void)press;
}
