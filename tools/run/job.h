/* job: the command that weir run runs: a child process in the same process group, on the same terminal.
 *
 * It is started in two steps, so that it can be measured from its beginning, and nothing of it runs if weir
 * cannot be set up. No other thread may run before the first step.
 *
 * This process does not adopt what the command leaves behind (PR_SET_CHILD_SUBREAPER): a daemon would see
 * another parent than without weir, and nobody would wait for it here. It is measured all the same while the
 * command runs: see plugins/source_process. */
#ifndef WEIR_TOOLS_JOB_H
#define WEIR_TOOLS_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct job {
    pid_t pid;
    int signal_fd; /* for poll: signals, and the job's end */
    int go_fd, failure_fd;
    int status; /* as of waitpid, after job_reap */
    struct rusage usage;
    bool is_reaped;
    bool is_cut; /* this process ends without its exit handlers, which would wait for destinations again */
};

/* Forks. The child waits for job_go; then it gets the environment as it is now with `tee` as WEIR_TEE (NULL:
 * unchanged), and runs arguments[0]. Blocks the signals that are passed on. Returns false after printing why.
 */
bool job_fork(struct job *job, char **arguments, const char *tee);

/* Lets the command run. Returns 0 once it does, or an errno: it cannot be executed. */
int job_go(struct job *job);

/* Ends a child that was not let go. */
void job_cancel(struct job *job);

/* After signal_fd became readable: passes signals on. Returns true once the command has ended; it is not reaped
 * yet, so that it can be measured for the last time. */
bool job_take_signals(const struct job *job);

/* After the command has ended, before job_reap: its exit status, and *signal is 0, or the number of the signal
 * that has killed it. */
int job_end(const struct job *job, int *signal);

/* After the command has ended: takes signals that would be passed on. Returns whether one of them asks weir run
 * to end. */
bool job_take_end(const struct job *job);

/* Waits for the end, and sets status and usage. */
void job_reap(struct job *job);

/* Ends this process as the command has ended: with its exit status, or by the same signal. */
_Noreturn void job_end_alike(const struct job *job);

#endif
