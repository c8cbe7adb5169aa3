#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "text/common.h"
#include "os/log.h"

/* Sinks stay until the process ends, so what knows them does too. */
static struct wr_log said, quiet; /* quiet is never initialised: level 0 */

struct heard {
    int calls, level;
    char text[2048];
};

static void hear(void *ctx, int level, const char *text)
{
    struct heard *heard = ctx;
    heard->calls++;
    heard->level = level;
    strcpy(heard->text, text);
    errno = ENOTTY; /* foreign code may leave anything behind */
}

/* From here on, what is written on stderr goes into memory. */
static void catch_stderr(void)
{
    int fd = memfd_create("stderr", 0);
    cr_assert_neq(fd, -1);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static const char *caught(void)
{
    static char text[8192];
    ssize_t length = pread(STDERR_FILENO, text, sizeof text - 1, 0);
    text[length < 0 ? 0 : length] = '\0';
    return text;
}

static int level_of(const char *text)
{
    struct wr_log log = {0};
    cr_assert(wr_log_init(&log, text));
    return atomic_load(&log.level);
}

Test(log, its_level_is_set_by_name)
{
    cr_assert_eq(level_of("off"), 0);
    cr_assert_eq(level_of("error"), WEIR_LOG_ERROR);
    cr_assert_eq(level_of("warning"), WEIR_LOG_WARNING);
    cr_assert_eq(level_of("info"), WEIR_LOG_INFO);
    cr_assert_eq(level_of("debug"), WEIR_LOG_DEBUG);
    cr_assert_eq(level_of(NULL), WEIR_LOG_WARNING);
}

Test(log, an_unknown_level_is_told_and_counts_as_warning)
{
    static const char *const texts[] = {"", "Error", "warn", "verbose", "4", "debug "};
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++) {
        struct wr_log log = {.level = WEIR_LOG_DEBUG};
        cr_assert(!wr_log_init(&log, texts[i]), "%s", texts[i]);
        cr_assert_eq(atomic_load(&log.level), WEIR_LOG_WARNING);
    }
}

Test(log, messages_go_to_stderr_a_line_each)
{
    catch_stderr();
    wr_log_init(&said, "debug");
    wr_log_write(&said, WEIR_LOG_ERROR, "%s: %d lost", "push", 3);
    wr_log_write(&said, WEIR_LOG_WARNING, "refused; retrying");
    wr_log_write(&said, WEIR_LOG_INFO, "read again");
    wr_log_write(&said, WEIR_LOG_DEBUG, "%s", "");
    cr_assert_str_eq(caught(), "weir: error: push: 3 lost\n"
                               "weir: warning: refused; retrying\n"
                               "weir: info: read again\n"
                               "weir: debug: \n");
}

Test(log, messages_above_the_level_are_not_made)
{
    catch_stderr();
    wr_log_init(&said, NULL);
    wr_log_write(&said, WEIR_LOG_INFO, "not this");
    wr_log_write(&said, WEIR_LOG_WARNING, "this");
    wr_log_init(&said, "off");
    wr_log_write(&said, WEIR_LOG_ERROR, "nor that");
    wr_log_write(&quiet, WEIR_LOG_ERROR, "nor that");
    cr_assert_str_eq(caught(), "weir: warning: this\n");
}

Test(log, a_level_that_does_not_exist_says_nothing)
{
    catch_stderr();
    wr_log_init(&said, "debug");
    wr_log_write(&said, 0, "no");
    wr_log_write(&said, -1, "no");
    wr_log_write(&said, 5, "no");
    cr_assert_str_eq(caught(), "");
}

Test(log, a_program_may_take_the_messages_and_give_them_back)
{
    struct heard heard = {0};
    catch_stderr();
    wr_log_init(&said, NULL);
    cr_assert(wr_log_set_sink(&said, hear, &heard));
    wr_log_write(&said, WEIR_LOG_ERROR, "%s: gone", "disk");
    wr_log_write(&said, WEIR_LOG_INFO, "not made");
    cr_assert_eq(heard.calls, 1);
    cr_assert_eq(heard.level, WEIR_LOG_ERROR);
    cr_assert_str_eq(heard.text, "disk: gone");
    cr_assert_str_eq(caught(), "");
    cr_assert(wr_log_set_sink(&said, NULL, NULL));
    wr_log_write(&said, WEIR_LOG_ERROR, "back");
    cr_assert_eq(heard.calls, 1);
    cr_assert_str_eq(caught(), "weir: error: back\n");
}

Test(log, a_sink_that_comes_back_takes_no_new_memory)
{
    struct heard one = {0}, two = {0};
    wr_log_init(&said, NULL);
    for (int i = 0; i < 10; i++) {
        wr_log_set_sink(&said, hear, &one);
        wr_log_write(&said, WEIR_LOG_ERROR, "one");
        wr_log_set_sink(&said, hear, &two);
        wr_log_write(&said, WEIR_LOG_ERROR, "two");
    }
    cr_assert_eq(one.calls, 10);
    cr_assert_eq(two.calls, 10);
    int sinks = 0;
    for (struct wr_log_sink *sink = atomic_load(&said.sinks); sink; sink = sink->next)
        sinks++;
    cr_assert_eq(sinks, 2);
}

Test(log, errno_is_left_alone)
{
    struct heard heard = {0};
    wr_log_init(&said, NULL);
    wr_log_set_sink(&said, hear, &heard);
    errno = EAGAIN;
    wr_log_write(&said, WEIR_LOG_ERROR, "x");
    cr_assert_eq(errno, EAGAIN);
    cr_assert_eq(heard.calls, 1);
    wr_log_set_sink(&said, NULL, NULL);
    close(STDERR_FILENO);
    wr_log_write(&said, WEIR_LOG_ERROR, "nobody hears this");
    cr_assert_eq(errno, EAGAIN);
}

/* A standard error that nobody reads any more, and SIGPIPE as every program finds it. */
static void break_stderr(void)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    signal(SIGPIPE, SIG_DFL);
}

static bool is_pipe_signal_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

Test(log, a_stderr_that_nobody_reads_raises_no_signal)
{
    struct wr_log log = {0};
    wr_log_init(&log, NULL);
    break_stderr();
    wr_log_write(&log, WEIR_LOG_ERROR, "x");
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    cr_assert(!sigismember(&mask, SIGPIPE) && !is_pipe_signal_pending());
}

Test(log, a_signal_that_waits_for_the_program_goes_on_waiting)
{
    struct wr_log log = {0};
    sigset_t mask;
    wr_log_init(&log, NULL);
    break_stderr();
    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    raise(SIGPIPE);
    wr_log_write(&log, WEIR_LOG_ERROR, "x");
    cr_assert(is_pipe_signal_pending());
}

Test(log, a_very_long_message_is_cut_and_still_a_line)
{
    char longer[5000] = "";
    catch_stderr();
    wr_log_init(&said, NULL);
    memset(longer, 'x', sizeof longer - 1);
    wr_log_write(&said, WEIR_LOG_ERROR, "%s", longer);
    wr_log_write(&said, WEIR_LOG_ERROR, "next");
    const char *text = caught(), *end = strchr(text, '\n');
    cr_assert_gt(end - text, 1000);
    cr_assert_eq(strncmp(text, "weir: error: xxx", 16), 0);
    cr_assert_str_eq(end, "\nweir: error: next\n");
}

Test(log, a_message_stays_one_line_whatever_is_in_it)
{
    struct heard heard = {0};
    catch_stderr();
    wr_log_init(&said, NULL);
    wr_log_write(&said, WEIR_LOG_ERROR, "push: answered \"%s\"",
                 "no\r\nweir: error: forged \x1b[2J\xe2\x80\xae \xff\xc3\xa9");
    cr_assert_str_eq(
        caught(),
        "weir: error: push: answered \"no\\r\\nweir: error: forged \\x1b[2J\\u202e \\xff\xc3\xa9\"\n");
    wr_log_set_sink(&said, hear, &heard);
    wr_log_write(&said, WEIR_LOG_ERROR, "a\nb \\n");
    cr_assert_str_eq(heard.text, "a\\nb \\n", "backslashes stay: the text may have been escaped before");
}
