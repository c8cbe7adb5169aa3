#include "child.h"

#include <unistd.h>

#include "../support/plain.h"
#include "checker.h"

enum { OPERATIONS = 120, HANG_S = 100, LONG_MS = 80000 };

/* Whatever the parent's threads were doing, this process starts with empty rings and its own ledger. */
static _Noreturn void run_child(uint32_t process, const struct actor *parent)
{
    struct actor actor = {
        .id = ACTOR_OF_CHILDREN + process, .operations = OPERATIONS, .state = parent->state + process};
    plain_hang_no_longer_than(HANG_S);
    world_self = process;
    for (int i = 0; i < WEIR_REFUSED_MAX; i++)
        atomic_store(&actor_refused[i], 0);
    actor_run(&actor);
    actor_add_some(&actor);
    checker_check_now();
    checker_check_process(checker_shut_down(LONG_MS));
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
        run_child(process, actor);
    if (pid < 0)
        world_fail("fork failed");
    return 0;
}
