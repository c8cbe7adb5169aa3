#include "child.h"

#include <unistd.h>

#include "../support/plain.h"
#include "verdict.h"

enum { OPERATIONS = 120, HANG_S = 100, LONG_MS = 80000 };

/* Whatever the parent's threads were doing, this process begins with empty rings and has accounts of its own.
 */
static _Noreturn void live(uint32_t process, const struct actor *parent)
{
    struct actor actor = {
        .id = ACTOR_OF_CHILDREN + process, .operations = OPERATIONS, .state = parent->state + process};
    plain_hang_no_longer_than(HANG_S);
    world_self = process;
    for (int i = 0; i < WEIR_REFUSED_MAX; i++)
        atomic_store(&actor_refused[i], 0);
    actor_run(&actor);
    actor_add_some(&actor);
    verdict_of_moment();
    verdict_of_process(verdict_shut_down(LONG_MS));
    _exit(0);
}

int child_fork(struct actor *actor)
{
    uint32_t process = atomic_fetch_add(&world->processes, 1);
    if (process >= WORLD_LAST) {
        atomic_store(&world->processes, WORLD_LAST);
        return 0;
    }
    pid_t pid = fork();
    if (pid == 0)
        live(process, actor);
    if (pid < 0)
        world_fail("no child could be forked");
    return 0;
}
