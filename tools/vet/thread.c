#include "thread.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "os/thread.h"
#include "vet.h"

pthread_t vet_thread_start(void *(*code)(void *ctx), void *ctx)
{
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0 || !wr_thread_set_stack(&attributes))
        vet_skip("vet itself: cannot start a thread");
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, code, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        vet_skip("vet itself: cannot start a thread: %s", strerror(error));
    return thread;
}

/* posix_spawn, since the plugin's threads are running. */
int vet_thread_spawn(pid_t *pid, const char *command, int output, bool is_apart)
{
    const char *arguments[] = {"sh", "-c", command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (is_apart)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes,
                             (short)(POSIX_SPAWN_SETSIGMASK | (is_apart ? POSIX_SPAWN_SETPGROUP : 0)));
    int error = posix_spawn(pid, "/bin/sh", &actions, &attributes, (char **)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

void vet_thread_sleep_ms(int64_t ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}
