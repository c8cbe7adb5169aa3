#include "pump.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

bool wr_pump_init(struct pump *pump, const weir_host *host, const char *where)
{
    *pump = (struct pump){
        .host = host,
        .intake = host->service(host, WEIR_SERVICE_INTAKE),
        .parser = host->service(host, WEIR_SERVICE_PARSER),
    };
    pump->text = pump->parser->begin(host, where, NULL);
    return pump->text;
}

void wr_pump_fini(struct pump *pump)
{
    if (pump->text)
        pump->parser->end(pump->text);
    pump->text = NULL;
}

bool wr_pump_resume(struct pump *pump)
{
    if (pump->is_full)
        pump->is_full = !pump->parser->resume(pump->text);
    if (!pump->is_full && pump->is_ending)
        pump->is_ending = !pump->parser->finish(pump->text, pump->is_whole);
    return !pump->is_full && !pump->is_ending;
}

void wr_pump_finish(struct pump *pump, bool is_whole)
{
    pump->is_ending = true;
    pump->is_whole = is_whole;
    wr_pump_resume(pump);
}

uint64_t wr_pump_pending(const struct pump *pump)
{
    weir_text_totals totals = {.size = sizeof totals};
    pump->parser->read_totals(pump->text, &totals);
    return totals.pending;
}

enum pump_result wr_pump_read(struct pump *pump, int fd)
{
    size_t room;
    pump->last_length = 0;
    char *to = wr_pump_resume(pump) ? pump->parser->room(pump->text, &room) : NULL;
    if (pump->is_full || pump->is_ending)
        return PUMP_FULL;
    if (!to) {
        errno = ENOMEM;
        return PUMP_FAILED;
    }
    ssize_t length = read(fd, to, pump->most && pump->most < room ? pump->most : room);
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? PUMP_EMPTY : PUMP_FAILED;
    if (length == 0)
        return PUMP_END;
    pump->last_length = (size_t)length;
    pump->is_full = !pump->parser->parse(pump->text, (size_t)length);
    return pump->is_full ? PUMP_FULL : PUMP_READ;
}

bool wr_pump_drain(struct pump *pump)
{
    enum { STEP_MS = 10, STEPS = 200 };
    for (int i = 0; !wr_pump_resume(pump) && i < STEPS; i++)
        poll(NULL, 0, STEP_MS);
    return !pump->is_full && !pump->is_ending;
}

void wr_pump_read_record_end(struct pump *pump, int fd)
{
    enum { STEP_MS = 10, STEPS = 100 };
    pump->most = 1;
    for (int i = 0; wr_pump_pending(pump) && i < STEPS;) {
        struct pollfd ready = {fd, POLLIN, 0};
        if (poll(&ready, 1, STEP_MS) <= 0) {
            i++;
            continue;
        }
        enum pump_result result = wr_pump_read(pump, fd);
        if (result == PUMP_END)
            wr_pump_finish(pump, true);
        if (result == PUMP_FAILED || !wr_pump_drain(pump))
            break;
    }
    if (!pump->is_ending && wr_pump_pending(pump))
        wr_pump_finish(pump, false);
    wr_pump_drain(pump);
}

void wr_pump_fail(weir_outcome *outcome, int code, const char *what)
{
    wr_system_fail(outcome, code, "%s: %s", what, wr_system_strerror(errno));
}
