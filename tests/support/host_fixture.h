/* host_fixture: the host of a handler on a lane, without a plugin behind it. */
#ifndef WEIR_TESTS_HOST_FIXTURE_H
#define WEIR_TESTS_HOST_FIXTURE_H

#include <criterion/criterion.h>

#include "handler/host_api.h"
#include "handler/plugin.h"
#include "lane/lane_internal.h"
#include "logbook.h"

static struct logbook book;
static struct wr_log log_of_test;
static struct wr_lane *lane;
static struct wr_host_api core;
static const weir_host *host;

static const weir_handler_type given = {.size = sizeof given};
static const struct wr_type type = {.kind = &wr_plugins_handlers, .given = &given, .context = &book};

static void setup(void)
{
    const struct wr_lane_settings settings = {.queue_bytes = 1 << 20, .batch = 5000, .batch_bytes = 1 << 20};
    wr_log_init(&log_of_test, "info");
    wr_log_set_sink(&log_of_test, logbook_write, &book);
    lane = wr_lane_new("push", &log_of_test, NULL, NULL);
    cr_assert(lane);
    wr_lane_set(lane, &settings, 0);
    lane->worker.state = WR_THREAD_AWAKE;
    core = (struct wr_host_api){.lane = lane, .log = &log_of_test};
    wr_host_api_init(&core, "push", &type);
    host = &core.host_table;
}

#endif
