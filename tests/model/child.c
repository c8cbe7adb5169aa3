#include "child.h"

#include <unistd.h>

#include "../support/plain.h"
#include "checker.h"
#include "instruments.h"
#include "plan.h"
#include "sums.h"

enum { OPERATIONS = 120, HANG_S = 100, LONG_MS = 80000, SHORT_MS = 100 };

/* A handler that was in use when the process forked is unavailable in the child. With a journal alone, a
 * shutdown waits in vain that it becomes available, and leaves its values there. */
static bool waits_in_vain(void)
{
    uint64_t queued = 0;
    if (!plan_terms.journal || plan_terms.spool)
        return false;
    weir_flush(LONG_MS);
    for (int i = 0; i < WORLD_HANDLERS; i++) {
        weir_handler_stats stats;
        if (weir_get_handler_stats(world_handlers[i], &stats, sizeof stats) == 0)
            queued += stats.queued;
    }
    return queued > 0;
}

/* Whatever the parent's threads were doing, this process starts with empty rings and its own ledger. */
static _Noreturn void run_child(uint32_t process, const struct actor *parent, double level)
{
    struct actor actor = {
        .id = ACTOR_OF_CHILDREN + process, .operations = OPERATIONS, .state = parent->state + process};
    plain_hang_no_longer_than(HANG_S);
    world_self = process;
    for (int i = 0; i < WEIR_REFUSED_MAX; i++)
        atomic_store(&actor_refused[i], 0);
    sums_first_config = actor_applied();
    instruments_move_inherited(&actor, parent->id, level);
    actor_run(&actor);
    actor_add_some(&actor);
    checker_check_now();
    bool in_vain = waits_in_vain();
    atomic_store(&world->ends[process].in_a_hurry, in_vain);
    checker_check_process(checker_shut_down(in_vain ? SHORT_MS : LONG_MS));
    _exit(0);
}

int child_fork(struct actor *actor)
{
    uint32_t process = atomic_fetch_add(&world->processes, 1);
    if (process >= WORLD_LAST) {
        atomic_store(&world->processes, WORLD_LAST);
        return 0;
    }
    double level = world->actors[actor->id].level; /* which the parent goes on changing */
    pid_t pid = fork();
    if (pid == 0)
        run_child(process, actor, level);
    if (pid < 0)
        world_fail("fork failed");
    return 0;
}
