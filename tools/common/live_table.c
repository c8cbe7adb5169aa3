#include "live_table.h"

#include <time.h>

#include "command.h"
#include "figures.h"
#include "text/buffer.h"
#include "text/common.h"

/* ---- When ------------------------------------------------------------------------------------ */

void live_table_pause(int64_t every_ns)
{
    const struct timespec pause = {(time_t)(every_ns / WR_NS_PER_S), (long)(every_ns % WR_NS_PER_S)};
    nanosleep(&pause, NULL);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* Overwritten in place: it does not flicker. */
void live_table_start(struct wr_buffer *out, const struct figures_screen *screen, bool again)
{
    static const char clear_screen[] = "\033[H\033[J", go_home[] = "\033[H";
    if (screen->is_terminal)
        wr_buffer_put_text(out, again ? go_home : clear_screen);
    else if (again)
        wr_buffer_put_char(out, '\n');
}

int live_table_finish(struct wr_buffer *out, const struct figures_screen *screen)
{
    static const char clear_below[] = "\033[J";
    wr_buffer_put_text(out, screen->is_terminal ? clear_below : "");
    return command_finish(out, EXIT_SUCCESS);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

void live_table_put_clock(struct wr_buffer *out)
{
    struct tm local;
    time_t now = time(NULL);
    if (localtime_r(&now, &local))
        wr_buffer_put_format(out, "%02d:%02d:%02d", local.tm_hour, local.tm_min, local.tm_sec);
}

void live_table_put_cut(struct wr_buffer *out, const char *text, size_t columns)
{
    figures_put_escaped(out, text, columns);
}

void live_table_put_right(struct wr_buffer *out, struct wr_buffer *cell, int columns)
{
    figures_put_right(out, cell, columns);
}

void live_table_end_line(struct wr_buffer *out, const struct figures_screen *screen)
{
    figures_trim(out);
    wr_buffer_put_text(out, screen->is_terminal ? "\033[K\n" : "\n");
}
