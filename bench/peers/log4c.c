/* log4c: a category, a layout that produces the common line, and an appender to a buffered file. log4c's own
 * appenders are not used because they put their name in front of each line. */

#include <stdio.h>

#include <log4c.h>

#include "../support/measure.h"

static log4c_category_t *category;
static FILE *file;

static const char *format_line(const log4c_layout_t *layout, const log4c_logging_event_t *event)
{
    static _Thread_local char line[256];
    (void)layout;
    snprintf(line, sizeof line, "[%ld.%06ld][%s]: %s\n", (long)event->evt_timestamp.tv_sec,
             (long)event->evt_timestamp.tv_usec, event->evt_category, event->evt_msg);
    return line;
}

static int append_line(log4c_appender_t *appender, const log4c_logging_event_t *event)
{
    (void)appender;
    return fputs(event->evt_rendered_msg, file) < 0 ? -1 : 0;
}

static void open_category(const struct task *task)
{
    static const log4c_layout_type_t layout_type = {.name = "line", .format = format_line};
    static const log4c_appender_type_t appender_type = {.name = "file", .append = append_line};
    file = fopen(task->file, "w");
    if (!file || log4c_init() != 0)
        measure_fail("log4c: setup failed");
    log4c_layout_t *layout = log4c_layout_get("line");
    log4c_layout_set_type(layout, &layout_type);
    log4c_appender_t *appender = log4c_appender_get("file");
    log4c_appender_set_type(appender, &appender_type);
    log4c_appender_set_layout(appender, layout);
    category = log4c_category_get("my_app");
    log4c_category_set_appender(category, appender);
    log4c_category_set_additivity(category, 0);
    log4c_category_set_priority(category, LOG4C_PRIORITY_INFO);
}

static void *begin(const struct task *task)
{
    (void)task;
    return category;
}

static void add(void *state, const double *values, size_t count)
{
    const log4c_category_t *to = state;
    for (size_t i = 0; i < count; i++)
        log4c_category_log(to, LOG4C_PRIORITY_INFO, "latency=%.3f", values[i]);
}

static void close_category(const struct task *task)
{
    if (fclose(file) != 0)
        measure_fail("%s: write failed", task->file);
}

int main(int argc, char **argv)
{
    static const struct subject subject = {
        .open = open_category, .begin = begin, .add = add, .close = close_category};
    return measure(argc, argv, &subject);
}
