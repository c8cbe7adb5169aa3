#include "os/remarks.h"

#include <stdio.h>

#include "os/log.h"
#include "os/words.h"

void wr_remarks_add(struct wr_remarks *remarks, int level, const char *format, va_list arguments)
{
    if (remarks->count == WR_REMARKS_MOST)
        remarks->count--;
    struct wr_remark *remark = &remarks->items[remarks->count++];
    remark->level = level;
    vsnprintf(remark->text, sizeof remark->text, format, arguments);
}

void wr_remarks_say(const struct wr_remarks *remarks, struct wr_log *log, const char *name)
{
    for (unsigned i = 0; i < remarks->count; i++)
        wr_log_say(log, remarks->items[i].level, "%s: %s", name, remarks->items[i].text);
}

void wr_remarks_pass_on(struct wr_remarks *remarks, struct wr_words *words, const char *name)
{
    for (unsigned i = 0; i < remarks->count; i++)
        if (!wr_words_add(words, name, remarks->items[i].level, "%s", remarks->items[i].text))
            return;
    remarks->count = 0;
}
