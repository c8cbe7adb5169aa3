/* What is sent to a source under test: the command of --write. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "specimen.h"
#include "thread.h"

void vet_sender_open(struct vet_sender *sender)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        vet_skip("vet itself: pipe: %s", strerror(errno));
    *sender =
        (struct vet_sender){.is_open = true, .pipe = ends[1], .input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)};
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
}

static void close_pipe(struct vet_sender *sender)
{
    if (sender->pipe >= 0)
        close(sender->pipe);
    sender->pipe = -1;
}

void vet_sender_start(struct vet_sender *sender, const struct vet_subject *subject)
{
    int error = subject->write ? vet_thread_spawn(&sender->command, subject->write, sender->pipe, true) : 0;
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
    *sender = (struct vet_sender){.is_open = false};
}
