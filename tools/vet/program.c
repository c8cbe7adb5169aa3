#include "program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "text/buffer.h"
#include "subject.h"
#include "watch.h"

void vet_program_clear_environment(void)
{
    unsetenv("WEIR_CONFIG"); /* it takes precedence over this configuration */
    unsetenv("BENCHMARK_AI");
}

void vet_program_configure(const struct vet_subject *subject, const char *linger, int64_t timeout_ms)
{
    struct wr_buffer text = {0};
    char *handler = vet_subject_object(subject, "");
    if (!handler)
        vet_skip("vet itself: out of memory");
    wr_buffer_put_format(
        &text,
        "{\"settings\":{\"shutdown_timeout\":\"%" PRId64
        "ms\"},\"handlers\":{\"*\":{\"linger\":\"%s\"},\"vet\":%s},\n\"groups\":{\"*\":\"vet\"}}",
        timeout_ms, linger, handler);
    free(handler);
    vet_enter(VET_CREATE, "configuring a program with it");
    if (weir_configure_text(text.data, text.length))
        vet_fail("%s", weir_last_error());
    vet_leave();
    wr_buffer_fini(&text);
}

static struct vet_ledger *shared;

/* Registered before weir's exit handler, so that it runs after it. */
static void read_ledger(void)
{
    weir_handler_stats stats = {.size = sizeof stats};
    if (weir_get_handler_stats("vet", &stats, sizeof stats))
        return;
    shared->offered = stats.offered;
    shared->delivered = stats.delivered;
    shared->rejected = stats.dropped[WEIR_DROPPED_REJECTED];
    shared->known = true;
}

static _Noreturn void run_program(const struct vet_subject *subject,
                                  void (*script)(void *ctx, struct vet_ledger *ledger), void *ctx)
{
    vet_program_clear_environment();
    atexit(read_ledger);
    vet_program_configure(subject, "0s", subject->deadline_ms / 2);
    script(ctx, shared);
    exit(0);
}

struct vet_ledger vet_program_run(const struct vet_subject *subject,
                                  void (*script)(void *ctx, struct vet_ledger *ledger), void *ctx)
{
    if (!shared)
        shared = vet_watch_share(sizeof *shared);
    *shared = (struct vet_ledger){.known = false};
    pid_t child = fork();
    if (child == 0)
        run_program(subject, script, ctx);
    if (child < 0 || waitpid(child, &shared->status, 0) != child)
        vet_skip("vet itself: cannot start a process");
    vet_watch_exit_if_decided();
    return *shared;
}

void vet_program_fork(void (*run_child)(void))
{
    int status = 0;
    vet_enter(VET_ABANDON, "a forked child of a program with it");
    pid_t child = fork();
    if (child == 0) {
        if (run_child)
            run_child();
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        vet_skip("vet itself: cannot start a process");
    if (WIFSIGNALED(status))
        vet_fail("a forked child is killed by %s", strsignal(WTERMSIG(status)));
    vet_leave();
}
