/* guest: checks what weir does to the program it is linked into. */

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/weir.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static _Thread_local long allocations;

#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
__attribute__((visibility("default"))) void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}
#endif
#endif

static void add_all_ways(weir_stream *stream, weir_metric *metric)
{
    weir_value event[] = {{"b", 1}, {"c", 2}, {"d", 3}};
    weir_sample_spec spec = {
        .size = sizeof spec, .name = "e", .value = 4, .cumulative = true, .metadata = "text"};
    weir_metric_add(metric, 1);
    weir_metric_add_int(metric, 1);
    weir_add_value(stream, "f", 1);
    weir_add_int(stream, "g", 1);
    weir_emit(stream, event, 3);
    weir_add(stream, &spec);
    WEIR_PROF(prof, stream, "h");
}

/* A hundred rounds of eleven values: less than half a ring, so only the first value wakes the dispatcher. */
static void add_rounds(weir_stream *stream, weir_metric *metric)
{
    for (int i = 0; i < 100; i++)
        add_all_ways(stream, metric);
}

static int count_allocations(void)
{
    weir_stream *stream = weir_get_stream("my_app");
    weir_metric *metric = weir_get_metric(stream, "a");
    add_all_ways(stream, metric);
    weir_flush(-1);
    long before = allocations;
    for (int i = 0; i < 100; i++)
        add_rounds(stream, metric);
    long after = allocations;
    printf("%ld allocations\n", after - before);
    return 0;
}

static int show_system_calls(void)
{
    weir_stream *stream = weir_get_stream("my_app");
    weir_metric *metric = weir_get_metric(stream, "a");
    add_all_ways(stream, metric);
    weir_flush(-1);
    getsid(0); /* a mark in the trace */
    add_rounds(stream, metric);
    getsid(0);
    return 0;
}

/* ---- Process state --------------------------------------------------------------------------- */

struct state {
    struct sigaction actions[32];
    sigset_t mask;
    char locale[100], folder[4096];
    mode_t umask;
    int rounding;
    long random;
    struct stat streams[3];
};

static void save_state(struct state *state)
{
    memset(state, 0, sizeof *state);
    for (int i = 1; i < 32; i++)
        sigaction(i, NULL, &state->actions[i]);
    sigprocmask(SIG_SETMASK, NULL, &state->mask);
    snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(state->folder, sizeof state->folder))
        abort();
    state->umask = umask(0);
    umask(state->umask);
    state->rounding = fegetround();
    srandom(1);
    for (int i = 0; i < 3; i++)
        fstat(i, &state->streams[i]);
}

static int report_change(const char *what)
{
    fprintf(stderr, "guest: weir has changed %s\n", what);
    return 1;
}

static int compare(const struct state *a, const struct state *b)
{
    for (int i = 1; i < 32; i++)
        if (a->actions[i].sa_handler != b->actions[i].sa_handler)
            return report_change("a signal's disposition");
    for (int i = 1; i < 65; i++)
        if (sigismember(&a->mask, i) != sigismember(&b->mask, i))
            return report_change("the signal mask");
    if (strcmp(a->locale, b->locale) != 0)
        return report_change("the locale");
    if (strcmp(a->folder, b->folder) != 0)
        return report_change("the working folder");
    if (a->umask != b->umask)
        return report_change("the umask");
    if (a->rounding != b->rounding)
        return report_change("the rounding mode");
    for (int i = 0; i < 3; i++)
        if (a->streams[i].st_ino != b->streams[i].st_ino)
            return report_change("a standard stream");
    return 0;
}

static int check_state(void)
{
    struct state before, after;
    umask(027);
    setlocale(LC_ALL, "C.UTF-8");
    char **environment = environ;
    save_state(&before);
    long expected = random();
    srandom(1);
    weir_stream *stream = weir_get_stream("my_app");
    add_rounds(stream, weir_get_metric(stream, "a"));
    weir_configure("other", "console", NULL);
    weir_flush(-1);
    weir_reload();
    weir_shutdown(-1);
    long drawn = random();
    save_state(&after);
    if (drawn != expected)
        return report_change("the random numbers");
    if (environ != environment)
        return report_change("the environment");
    return compare(&before, &after);
}

/* ---- Threads and descriptors ----------------------------------------------------------------- */

static int check_thread(const char *id)
{
    char path[300], line[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", id);
    FILE *status = fopen(path, "r");
    int fault = 0;
    while (status && fgets(line, sizeof line, status)) {
        unsigned long long blocked;
        /* all but SIGKILL and SIGSTOP, which cannot be blocked, and the two that the C library reserves */
        if (sscanf(line, "SigBlk: %llx", &blocked) == 1 && (blocked | 0x40100ULL | 0x180000000ULL) != ~0ULL) {
            fprintf(stderr, "guest: thread %s does not block all signals: %s", id, line);
            fault = 1;
        }
    }
    if (status)
        fclose(status);
    return fault;
}

static int check_threads(void)
{
    int faults = 0, threads = 0;
    char own[20];
    weir_add_value(weir_get_stream("my_app"), "a", 1);
    weir_flush(-1);
    snprintf(own, sizeof own, "%d", (int)getpid());
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, own) == 0)
            continue;
        threads++;
        faults += check_thread(entry->d_name);
    }
    for (int fd = 3; fd < 100; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && fd != dirfd(tasks) && !(flags & FD_CLOEXEC)) {
            fprintf(stderr, "guest: descriptor %d stays open on exec\n", fd);
            faults++;
        }
    }
    closedir(tasks);
#ifdef __SANITIZE_THREAD__
    threads--; /* the sanitizer's own */
#endif
    if (threads != 2)
        fprintf(stderr, "guest: weir runs %d threads, not 2\n", threads);
    return faults || threads != 2;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "allocations") == 0)
        return count_allocations();
    if (strcmp(what, "syscalls") == 0)
        return show_system_calls();
    if (strcmp(what, "state") == 0)
        return check_state();
    if (strcmp(what, "threads") == 0)
        return check_threads();
    return 2;
}
