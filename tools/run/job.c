#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/command.h"
#include "os/fd.h"
#include "text/common.h"

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};

/* What the command inherits. */
static sigset_t mask_before;
static struct sigaction child_before, pipe_before;

/* ---- Starting -------------------------------------------------------------------------------- */

/* Signals that are ignored stay so here, and in the command. SIGCHLD must not be: the kernel would reap. */
static bool take_over_signals(struct job *job)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    for (size_t i = 0; i < WR_COUNT_OF(passed_on); i++)
        sigaddset(&taken, passed_on[i]);
    const struct sigaction by_default = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGCHLD, &by_default, &child_before);
    sigaction(SIGPIPE, &ignore, &pipe_before);
    sigprocmask(SIG_BLOCK, &taken, &mask_before);
    job->signal_fd = wr_fd_above_stdio(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    return job->signal_fd >= 0;
}

static bool make_pipe(int *read_fd, int *write_fd)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    *read_fd = wr_fd_above_stdio(fds[0]);
    *write_fd = wr_fd_above_stdio(fds[1]);
    return *read_fd >= 0 && *write_fd >= 0;
}

/* The descriptors made here are closed by exec. */
static _Noreturn void become_command(int go_fd, int failure_fd, char **arguments, const char *tee)
{
    char go;
    ssize_t got;
    while ((got = read(go_fd, &go, 1)) < 0 && errno == EINTR)
        ;
    if (got != 1 || (tee && setenv("WEIR_TEE", tee, 1) != 0))
        _exit(EXIT_FAILURE);
    sigaction(SIGCHLD, &child_before, NULL);
    sigaction(SIGPIPE, &pipe_before, NULL);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
    execvp(arguments[0], arguments);
    int problem = errno;
    (void)!write(failure_fd, &problem, sizeof problem);
    _exit(EXIT_FAILURE);
}

bool job_fork(struct job *job, char **arguments, const char *tee)
{
    int go_read, failure_write;
    *job = (struct job){.pid = -1};
    if (!take_over_signals(job) || !make_pipe(&go_read, &job->go_fd) ||
        !make_pipe(&job->failure_fd, &failure_write)) {
        command_fail("no descriptor: %s", strerror(errno));
        return false;
    }
    job->pid = fork();
    if (job->pid == 0) {
        close(job->go_fd); /* else it would wait for itself */
        become_command(go_read, failure_write, arguments, tee);
    }
    int problem = errno;
    close(go_read);
    close(failure_write);
    if (job->pid < 0)
        command_fail("no process for the command: %s", strerror(problem));
    return job->pid > 0;
}

int job_go(struct job *job)
{
    int problem = 0;
    (void)!write(job->go_fd, "", 1);
    close(job->go_fd);
    while (read(job->failure_fd, &problem, sizeof problem) < 0 && errno == EINTR)
        ;
    close(job->failure_fd);
    if (problem)
        job_reap(job);
    return problem;
}

void job_cancel(struct job *job)
{
    close(job->go_fd);
    job_reap(job);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* The terminal sends its signals to the whole process group, so the command has got them. */
static bool is_for_us(const struct signalfd_siginfo *info)
{
    return info->ssi_code != SI_KERNEL;
}

bool job_take_signals(const struct job *job)
{
    struct signalfd_siginfo info;
    while (read(job->signal_fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD && is_for_us(&info))
            kill(job->pid, (int)info.ssi_signo);
    siginfo_t state = {0};
    return waitid(P_PID, (id_t)job->pid, &state, WEXITED | WNOHANG | WNOWAIT) == 0 && state.si_pid == job->pid;
}

int job_end(const struct job *job, int *signal)
{
    siginfo_t state = {0};
    waitid(P_PID, (id_t)job->pid, &state, WEXITED | WNOHANG | WNOWAIT);
    bool has_exited = state.si_code == CLD_EXITED;
    *signal = has_exited ? 0 : state.si_status;
    return has_exited ? state.si_status : 0;
}

bool job_take_end(const struct job *job)
{
    struct signalfd_siginfo info;
    bool must_end = false;
    while (read(job->signal_fd, &info, sizeof info) == sizeof info)
        must_end |= info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM || info.ssi_signo == SIGQUIT;
    return must_end;
}

/* ---- Ending ---------------------------------------------------------------------------------- */

void job_reap(struct job *job)
{
    pid_t pid;
    while ((pid = wait4(job->pid, &job->status, 0, &job->usage)) < 0 && errno == EINTR)
        ;
    job->is_reaped = pid == job->pid;
}

static _Noreturn void end(const struct job *job, int status)
{
    if (!job->is_cut)
        exit(status);
    fflush(NULL);
    _exit(status);
}

void job_end_alike(const struct job *job)
{
    if (WIFEXITED(job->status))
        end(job, WEXITSTATUS(job->status));
    int number = WTERMSIG(job->status);
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t one;
    fflush(NULL);
    prctl(PR_SET_DUMPABLE, 0); /* a core file would be that of weir */
    sigemptyset(&one);
    sigaddset(&one, number);
    sigaction(number, &by_default, NULL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    end(job, 128 + number);
}
