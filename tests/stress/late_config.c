/* late_config: weir_shutdown while another thread applies one configuration after the other. The shutdown
 * completes, and later configurations are refused. Each shutdown has its own process. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "counting.h"

enum { SHUTDOWNS = 20, VALUES = 50 };

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Configuring and delivering are slow, so that the shutdown begins during both. */
static void *create(const weir_host *host, const void *options)
{
    sleep_ms(3);
    return counting_create(host, options);
}

static void delay_emit(const weir_batch *batch)
{
    (void)batch;
    sleep_ms(6);
}

/* Until weir is shut down. */
static void *configure_often(void *argument)
{
    static const char *const texts[] = {
        "{\"handlers\":{\"leisurely\":{\"type\":\"leisurely\"}},\"groups\":{\"*\":\"leisurely\"}}",
        "{\"handlers\":{\"leisurely\":{\"type\":\"leisurely\",\"batch\":9}},\"groups\":{\"*\":\"leisurely\"}}"};
    int result = 0;
    for (int i = 0; result == 0; i++)
        result = weir_configure_text(texts[i % 2], strlen(texts[i % 2]));
    PLAIN_CHECK(result == WEIR_ERR_CLOSED);
    return argument;
}

static void shut_down(unsigned after_ms)
{
    static weir_handler_type leisurely;
    pthread_t thread;
    weir_handler_stats stats;
    plain_hang_no_longer_than(60);
    counting_before = delay_emit;
    leisurely = counting_type;
    leisurely.name = "leisurely";
    leisurely.create = create;
    PLAIN_CHECK(weir_register_handler_type(&leisurely, NULL) == 0);
    PLAIN_CHECK(weir_configure("*", "leisurely", "{\"batch\":5}") == 0);
    PLAIN_CHECK(pthread_create(&thread, NULL, configure_often, NULL) == 0);
    for (int i = 0; i < VALUES; i++)
        PLAIN_CHECK(weir_add_int(weir_get_stream("late"), "value", i) == 0);
    sleep_ms(after_ms);
    PLAIN_CHECK(weir_shutdown(-1) == 0);
    pthread_join(thread, NULL);
    PLAIN_CHECK(weir_get_handler_stats("leisurely", &stats, sizeof stats) == 0);
    PLAIN_CHECK(stats.delivered == VALUES && counting_count == VALUES);
}

int main(void)
{
    for (unsigned i = 0; i < SHUTDOWNS; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            shut_down(i % 10);
            _exit(0);
        }
        PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child);
        PLAIN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return 0;
}
