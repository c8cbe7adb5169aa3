/* child: a forked child that adds its own values and ends. */
#ifndef MODEL_CHILD_H
#define MODEL_CHILD_H

#include "actor.h"

/* Forks, if another child is allowed. The child is waited for by the subreaper. Returns 0. */
int child_fork(struct actor *actor);

#endif
