#include "unscraped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PLACES = 1000 };

/* A process is entered as long as a thread of it holds the mutex of a place. The mutexes are robust: the kernel
 * notes the end of their holder, also by SIGKILL. Places are used from the first one on, and most never are:
 * pages of the mapping that nobody has touched take no memory. */
enum place_state { PLACE_NEW, PLACE_IN_THE_MAKING, PLACE_READY };

struct place {
    _Atomic int state; /* enum place_state; release: pairs with the acquire of those who use the mutex */
    pthread_mutex_t held;
};

struct unscraped {
    struct unscraped *next;
    unsigned references; /* of this process' handlers, and in a child of those that it inherited */
    _Atomic pid_t listener;
    struct place *places; /* shared by the processes */
    char address[];
};

/* Each process has its own list; a child inherits it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct unscraped *families;

/* ---- Families -------------------------------------------------------------------------------- */

static struct unscraped *make(const char *address)
{
    struct unscraped *family = calloc(1, sizeof *family + strlen(address) + 1);
    if (!family)
        return NULL;
    void *memory =
        mmap(NULL, PLACES * sizeof(struct place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(family);
        return NULL;
    }
    family->places = memory;
    family->listener = getpid();
    strcpy(family->address, address);
    family->next = families;
    families = family;
    return family;
}

struct unscraped *unscraped_get(const char *address)
{
    pthread_mutex_lock(&lock);
    struct unscraped *family = families;
    while (family && strcmp(family->address, address) != 0)
        family = family->next;
    if (!family)
        family = make(address);
    if (family)
        family->references++;
    pthread_mutex_unlock(&lock);
    return family;
}

void unscraped_put(struct unscraped *family)
{
    pthread_mutex_lock(&lock);
    if (--family->references == 0) {
        struct unscraped **at = &families;
        while (*at != family)
            at = &(*at)->next;
        *at = family->next;
        munmap(family->places, PLACES * sizeof(struct place));
        free(family);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- The first process ----------------------------------------------------------------------- */

/* Its parent may not have waited for it yet. */
static bool is_zombie(pid_t process)
{
    char path[32], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const char *end = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL; /* of the program's name */
    fclose(file);
    return end && (strncmp(end, ") Z", 3) == 0 || strncmp(end, ") X", 3) == 0);
}

static bool lives(pid_t process)
{
    return getppid() == process || ((kill(process, 0) == 0 || errno == EPERM) && !is_zombie(process));
}

pid_t unscraped_listener(struct unscraped *family)
{
    pid_t self = getpid(), listener = atomic_load(&family->listener);
    if (listener == self)
        return 0;
    if (lives(listener))
        return listener;
    atomic_store(&family->listener, self);
    return 0;
}

/* ---- Places ---------------------------------------------------------------------------------- */

static bool init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    bool done = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
                pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                pthread_mutex_init(mutex, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return done;
}

/* A process that is killed while it makes a place leaves that one unusable. */
static bool is_ready(struct place *place)
{
    int state = PLACE_NEW;
    if (atomic_compare_exchange_strong(&place->state, &state, PLACE_IN_THE_MAKING)) {
        state = init_mutex(&place->held) ? PLACE_READY : PLACE_IN_THE_MAKING;
        atomic_store_explicit(&place->state, state, memory_order_release);
    }
    return state == PLACE_READY;
}

/* Returns whether the place was free, and is the calling thread's now. */
static bool take(struct place *place)
{
    int error = pthread_mutex_trylock(&place->held);
    if (error == EOWNERDEAD)
        pthread_mutex_consistent(&place->held);
    return error == 0 || error == EOWNERDEAD;
}

int unscraped_enter(struct unscraped *family)
{
    for (int i = 0; i < PLACES; i++)
        if (is_ready(&family->places[i]) && take(&family->places[i]))
            return i;
    return -1;
}

void unscraped_leave(struct unscraped *family, int place)
{
    if (place >= 0)
        pthread_mutex_unlock(&family->places[place].held);
}

/* A place that is counted is taken for a moment: a process that looks for one meanwhile takes another. */
unsigned unscraped_count(struct unscraped *family)
{
    unsigned count = 0;
    for (struct place *place = family->places; place < family->places + PLACES; place++) {
        int state = atomic_load_explicit(&place->state, memory_order_acquire);
        if (state == PLACE_NEW)
            break;
        if (state != PLACE_READY)
            continue;
        if (take(place))
            pthread_mutex_unlock(&place->held);
        else
            count++;
    }
    return count;
}
