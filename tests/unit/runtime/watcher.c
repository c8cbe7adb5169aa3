/* watcher: changes of the configuration's files. */
#include <criterion/criterion.h>
#include <semaphore.h>

#include "../../support/temp_folder.h"
#include "config/config.h"
#include "config/config_read.h"
#include "os/clock.h"
#include "runtime/watcher.h"
#include "text/error.h"

TestSuite(watcher, .fini = remove_folder);

static sem_t reloads;

static void reload(void *ctx)
{
    (void)ctx;
    sem_post(&reloads);
}

static void expect_reload(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;
    cr_assert_eq(sem_timedwait(&reloads, &until), 0);
}

/* The thread of a watcher may live until the process ends, so it must not be a variable of a function. */
static struct wr_watcher watcher = {.reload = reload};

/* Replaces a file between reading it and watching it. */
static void change_after_reading(const char *changed, const char *text)
{
    struct wr_error error = {0};
    cr_assert_eq(sem_init(&reloads, 0, 0), 0);
    make_file("more.json", "{\"groups\": {\"a\": \"null\"}}", 0644);
    struct wr_config *config =
        wr_config_read_file(make_file("main.json", "{\"include\": [\"more.json\"]}", 0644), NULL, &error);
    cr_assert_not_null(config, "%s", error.text);
    make_file(changed, text, 0644);
    wr_watcher_set(&watcher, config->watched, config->watched_count, 1000000);
    wr_config_drop(config);
    wr_watcher_start(&watcher);
    expect_reload();
    wr_watcher_stop(&watcher, WR_NEVER);
}

Test(watcher, a_file_that_changes_before_it_is_watched_is_reloaded)
{
    change_after_reading("main.json", "{}");
}

Test(watcher, an_included_file_that_changes_before_it_is_watched_is_reloaded)
{
    change_after_reading("more.json", "{}");
}
