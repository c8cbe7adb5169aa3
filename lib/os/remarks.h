/* remarks: what is to be said once a lock is left, since the log may be the program's own function. */
#ifndef WR_REMARKS_H
#define WR_REMARKS_H

#include <stdarg.h>

#include "os/log.h"

struct wr_words;

enum { WR_REMARKS_MOST = 2 };

/* All zeros: nothing. */
struct wr_remarks {
    unsigned count;
    struct wr_remark {
        int level;
        char text[512];
    } items[WR_REMARKS_MOST];
};

/* Adds one; when there are too many it takes the place of the last one, since the latest counts most. */
void wr_remarks_add(struct wr_remarks *remarks, int level, const char *format, va_list arguments);

/* Says all, each behind the name of what it is about. */
void wr_remarks_say(const struct wr_remarks *remarks, struct wr_log *log, const char *name);

/* Hands them on, to be said when an outer lock is left. Without memory for that the rest stays here. */
void wr_remarks_pass_on(struct wr_remarks *remarks, struct wr_words *words, const char *name);

#endif
