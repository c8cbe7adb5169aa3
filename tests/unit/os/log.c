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

/* Sinks are never freed, so the logs that refer to them are static. */
static struct wr_log test_log, uninitialized; /* the second one has level 0 */

struct received {
    int calls, level;
    char text[2048];
};

static void receive(void *ctx, int level, const char *text)
{
    struct received *received = ctx;
    received->calls++;
    received->level = level;
    strcpy(received->text, text);
    errno = ENOTTY; /* a sink may change errno */
}

/* Redirects stderr into memory for the rest of the test. */
static void capture_stderr(void)
{
    int fd = memfd_create("stderr", 0);
    cr_assert_neq(fd, -1);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static const char *captured(void)
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

Test(log, an_unknown_level_is_reported_and_means_warning)
{
    static const char *const texts[] = {"", "Error", "warn", "verbose", "4", "debug "};
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++) {
        struct wr_log log = {.level = WEIR_LOG_DEBUG};
        cr_assert(!wr_log_init(&log, texts[i]), "%s", texts[i]);
        cr_assert_eq(atomic_load(&log.level), WEIR_LOG_WARNING);
    }
}

Test(log, each_message_is_a_line_on_stderr)
{
    capture_stderr();
    wr_log_init(&test_log, "debug");
    wr_log_write(&test_log, WEIR_LOG_ERROR, "%s: %d lost", "push", 3);
    wr_log_write(&test_log, WEIR_LOG_WARNING, "refused; retrying");
    wr_log_write(&test_log, WEIR_LOG_INFO, "read again");
    wr_log_write(&test_log, WEIR_LOG_DEBUG, "%s", "");
    cr_assert_str_eq(captured(), "weir: error: push: 3 lost\n"
                                 "weir: warning: refused; retrying\n"
                                 "weir: info: read again\n"
                                 "weir: debug: \n");
}

Test(log, messages_above_the_level_are_not_formatted)
{
    capture_stderr();
    wr_log_init(&test_log, NULL);
    wr_log_write(&test_log, WEIR_LOG_INFO, "not this");
    wr_log_write(&test_log, WEIR_LOG_WARNING, "this");
    wr_log_init(&test_log, "off");
    wr_log_write(&test_log, WEIR_LOG_ERROR, "nor that");
    wr_log_write(&uninitialized, WEIR_LOG_ERROR, "nor that");
    cr_assert_str_eq(captured(), "weir: warning: this\n");
}

Test(log, a_message_of_an_invalid_level_is_not_logged)
{
    capture_stderr();
    wr_log_init(&test_log, "debug");
    wr_log_write(&test_log, 0, "no");
    wr_log_write(&test_log, -1, "no");
    wr_log_write(&test_log, 5, "no");
    cr_assert_str_eq(captured(), "");
}

Test(log, a_program_may_set_a_sink_and_remove_it_again)
{
    struct received received = {0};
    capture_stderr();
    wr_log_init(&test_log, NULL);
    cr_assert(wr_log_set_sink(&test_log, receive, &received));
    wr_log_write(&test_log, WEIR_LOG_ERROR, "%s: gone", "disk");
    wr_log_write(&test_log, WEIR_LOG_INFO, "not made");
    cr_assert_eq(received.calls, 1);
    cr_assert_eq(received.level, WEIR_LOG_ERROR);
    cr_assert_str_eq(received.text, "disk: gone");
    cr_assert_str_eq(captured(), "");
    cr_assert(wr_log_set_sink(&test_log, NULL, NULL));
    wr_log_write(&test_log, WEIR_LOG_ERROR, "back");
    cr_assert_eq(received.calls, 1);
    cr_assert_str_eq(captured(), "weir: error: back\n");
}

Test(log, setting_the_same_sink_again_allocates_nothing)
{
    struct received one = {0}, two = {0};
    wr_log_init(&test_log, NULL);
    for (int i = 0; i < 10; i++) {
        wr_log_set_sink(&test_log, receive, &one);
        wr_log_write(&test_log, WEIR_LOG_ERROR, "one");
        wr_log_set_sink(&test_log, receive, &two);
        wr_log_write(&test_log, WEIR_LOG_ERROR, "two");
    }
    cr_assert_eq(one.calls, 10);
    cr_assert_eq(two.calls, 10);
    int sinks = 0;
    for (struct wr_log_sink *sink = atomic_load(&test_log.sinks); sink; sink = sink->next)
        sinks++;
    cr_assert_eq(sinks, 2);
}

Test(log, errno_is_preserved)
{
    struct received received = {0};
    wr_log_init(&test_log, NULL);
    wr_log_set_sink(&test_log, receive, &received);
    errno = EAGAIN;
    wr_log_write(&test_log, WEIR_LOG_ERROR, "x");
    cr_assert_eq(errno, EAGAIN);
    cr_assert_eq(received.calls, 1);
    wr_log_set_sink(&test_log, NULL, NULL);
    close(STDERR_FILENO);
    wr_log_write(&test_log, WEIR_LOG_ERROR, "not received");
    cr_assert_eq(errno, EAGAIN);
}

/* Makes stderr a pipe without a reader, with the default action for SIGPIPE. */
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

Test(log, writing_to_a_broken_stderr_raises_no_signal)
{
    struct wr_log log = {0};
    wr_log_init(&log, NULL);
    break_stderr();
    wr_log_write(&log, WEIR_LOG_ERROR, "x");
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    cr_assert(!sigismember(&mask, SIGPIPE) && !is_pipe_signal_pending());
}

Test(log, a_pending_sigpipe_of_the_program_stays_pending)
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

Test(log, a_very_long_message_is_truncated_and_still_a_line)
{
    char longer[5000] = "";
    capture_stderr();
    wr_log_init(&test_log, NULL);
    memset(longer, 'x', sizeof longer - 1);
    wr_log_write(&test_log, WEIR_LOG_ERROR, "%s", longer);
    wr_log_write(&test_log, WEIR_LOG_ERROR, "next");
    const char *text = captured(), *end = strchr(text, '\n');
    cr_assert_gt(end - text, 1000);
    cr_assert_eq(strncmp(text, "weir: error: xxx", 16), 0);
    cr_assert_str_eq(end, "\nweir: error: next\n");
}

Test(log, a_message_with_control_characters_is_one_line)
{
    struct received received = {0};
    capture_stderr();
    wr_log_init(&test_log, NULL);
    wr_log_write(&test_log, WEIR_LOG_ERROR, "push: answered \"%s\"",
                 "no\r\nweir: error: forged \x1b[2J\xe2\x80\xae \xff\xc3\xa9");
    cr_assert_str_eq(
        captured(),
        "weir: error: push: answered \"no\\r\\nweir: error: forged \\x1b[2J\\u202e \\xff\xc3\xa9\"\n");
    wr_log_set_sink(&test_log, receive, &received);
    wr_log_write(&test_log, WEIR_LOG_ERROR, "a\nb \\n");
    cr_assert_str_eq(received.text, "a\\nb \\n", "backslashes stay: the text may have been escaped before");
}
