/* What is sent to a source under test: the command of --write. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "specimen.h"

extern char **environ;

void vet_sender_open(struct vet_sender *sender)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        vet_skip("vet itself: pipe: %s", strerror(errno));
    *sender = (struct vet_sender){.pipe = ends[1], .input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)};
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
}

static void close_pipe(struct vet_sender *sender)
{
    if (sender->pipe >= 0)
        close(sender->pipe);
    sender->pipe = -1;
}

/* posix_spawn, since the source's threads are running. The command has a process group of its own. */
static int spawn(struct vet_sender *sender, const char *text)
{
    const char *arguments[] = {"sh", "-c", text, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, sender->pipe, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int error = posix_spawn(&sender->command, "/bin/sh", &actions, &attributes, (char **)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

void vet_sender_start(struct vet_sender *sender, const struct vet_subject *subject)
{
    int error = subject->write ? spawn(sender, subject->write) : 0;
    if (error)
        vet_skip("vet itself: cannot run the command of --write: %s", strerror(error));
    if (subject->write)
        close_pipe(sender);
}

bool vet_sender_has_ended(struct vet_sender *sender)
{
    int status = 0;
    if (!sender->command)
        return true;
    if (waitpid(sender->command, &status, WNOHANG) != sender->command)
        return false;
    sender->command = 0;
    if (status && vet_page->sender_status == 0)
        vet_page->sender_status = status;
    return true;
}

void vet_sender_close(struct vet_sender *sender)
{
    if (sender->command) {
        kill(-sender->command, SIGKILL);
        waitpid(sender->command, NULL, 0);
        sender->command = 0;
    }
    close_pipe(sender);
    if (sender->input >= 0) {
        dup2(sender->input, STDIN_FILENO);
        close(sender->input);
    }
    sender->input = -1;
}
