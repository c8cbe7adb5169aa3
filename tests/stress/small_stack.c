/* small_stack: threads and coroutines with the smallest stack that weir allows use it. The process's first
 * value is added on one, so the configuration is read there, plugins are loaded and handlers created, whose
 * `create` has 256 KiB of stack nevertheless. Each case has its own process. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"

enum { PROMISED = 256 * 1024, OWN_FRAMES = 16 * 1024, PAGE = 4096, SMALL = 64 * 1024, SMALLEST = 16 * 1024 };

static char folder[] = "/tmp/weir-stack-XXXXXX";
static int created;

/* ---- A handler type that needs stack --------------------------------------------------------- */

static __attribute__((noinline)) int fill_stack(void)
{
    volatile char frame[PROMISED - OWN_FRAMES];
    for (size_t i = sizeof frame; i > 0; i -= i < PAGE ? i : PAGE)
        frame[i - 1] = (char)i;
    return frame[sizeof frame - 1];
}

static void *create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    fill_stack();
    created++;
    return &created;
}

static bool prepare(const weir_host *host)
{
    (void)host;
    fill_stack();
    return true;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    (void)outcome;
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "roomy",
    .summary = "needs stack, for tests",
    .prepare = prepare,
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

/* ---- What the threads do ---------------------------------------------------------------------- */

static void add(void)
{
    PLAIN_CHECK(weir_add_value(weir_get_stream("small"), "value", 1) == 0);
    PLAIN_CHECK(created == 1);
}

static void use_instruments(void)
{
    static const double bounds[] = {1, 2, 3};
    static weir_typed_value many[1000];
    const weir_label labels[] = {{"b", "2"}, {"a", "1"}};
    weir_stream *stream = weir_get_stream("small");
    for (size_t i = 0; i < 1000; i++)
        many[i] = (weir_typed_value){"many", WEIR_INT((int64_t)i)};
    PLAIN_CHECK(weir_start() == 0);
    PLAIN_CHECK(weir_add_value_labeled(stream, "labeled", 1, labels, 2) == 0);
    PLAIN_CHECK(weir_count(stream, "counted", 1) == 0);
    PLAIN_CHECK(weir_metric_add(weir_get_histogram(stream, "measured", bounds, 3), 1) == 0);
    PLAIN_CHECK(weir_metric_change(weir_get_gauge(stream, "level"), -1) == 0);
    PLAIN_CHECK(weir_emit_typed(stream, many, 1000) == 0);
    WEIR_PROF_HERE(prof, stream);
}

static void configure(void)
{
    static const char text[] = "{\"groups\":{\"*\":\"null\"}}";
    PLAIN_CHECK(weir_configure_text(text, sizeof text - 1) == 0);
    PLAIN_CHECK(weir_configure("g", "roomy", NULL) == 0);
    PLAIN_CHECK(weir_reload() == 0);
}

static void be_refused(void)
{
    PLAIN_CHECK(weir_configure("g", "file", "{\"path\":\"/tmp/x\",\"pth\":1}") == WEIR_ERR_CONFIG);
    PLAIN_CHECK(strstr(weir_last_error(), "pth"));
}

static void flush(void)
{
    add();
    PLAIN_CHECK(weir_flush(100) != 0 || created == 1); /* nobody listens where http connects to */
}

static void read_stats(void)
{
    weir_stats process;
    weir_handler_stats handler;
    add();
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(weir_get_handler_stats("push", &handler, sizeof handler) == 0);
}

static void shut_down(void)
{
    add();
    weir_shutdown(100);
}

static void leave(void)
{
    add();
    exit(0);
}

/* The child's first thread is on the small stack. */
static void fork_child(void)
{
    int status;
    add();
    pid_t child = fork();
    if (child == 0) {
        created = 0;
        add();
        exit(0);
    }
    PLAIN_CHECK(waitpid(child, &status, 0) == child && status == 0, "the child failed");
}

/* What signal handlers may call, as on an alternate stack. */
static weir_metric *plain, *counter, *histogram;

static void try_to_add(void)
{
    PLAIN_CHECK(weir_metric_try_add(plain, 1) == 0);
    PLAIN_CHECK(weir_metric_try_add_int(counter, 1) == 0);
    PLAIN_CHECK(weir_metric_try_add(histogram, 1) == 0);
}

/* ---- Stacks ----------------------------------------------------------------------------------- */

static void (*work)(void);

static void *run(void *argument)
{
    work();
    return argument;
}

static void run_on_thread(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN); /* 128 KiB on some processors */
    PLAIN_CHECK(pthread_attr_init(&attributes) == 0);
    PLAIN_CHECK(pthread_attr_setstacksize(&attributes, least > SMALL ? least : SMALL) == 0);
    PLAIN_CHECK(pthread_attr_setguardsize(&attributes, 64 * 1024) == 0);
    PLAIN_CHECK(pthread_create(&thread, &attributes, run, NULL) == 0);
    pthread_join(thread, NULL);
}

static void run_on_stack(size_t size)
{
    static ucontext_t main_context, context;
    size_t guard = 64 * 1024;
    char *memory = mmap(NULL, guard + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(memory != MAP_FAILED && mprotect(memory, guard, PROT_NONE) == 0);
    PLAIN_CHECK(getcontext(&context) == 0);
    context.uc_stack.ss_sp = memory + guard;
    context.uc_stack.ss_size = size;
    context.uc_link = &main_context;
    makecontext(&context, work, 0);
    PLAIN_CHECK(swapcontext(&main_context, &context) == 0);
}

static void run_on_coroutine(void)
{
    run_on_stack(SMALL);
}

static void run_as_signal_handler(void)
{
    weir_stream *stream = weir_get_stream("small");
    PLAIN_CHECK(weir_start() == 0);
    plain = weir_get_metric(stream, "plain");
    counter = weir_get_counter(stream, "counter");
    histogram = weir_get_histogram(stream, "histogram", NULL, 0);
    PLAIN_CHECK(weir_metric_add(plain, 1) == 0);
    run_on_stack(SMALLEST);
}

static void set_environment(void)
{
    static char text[1000];
    snprintf(text, sizeof text,
             "{\"settings\":{\"journal\":\"%s/journal\",\"shutdown_timeout\":\"50ms\"},\"handlers\":{"
             "\"push\":{\"type\":\"http\",\"url\":\"https://127.0.0.1:1/x\"},"
             "\"file\":{\"type\":\"file\",\"path\":\"%s/out\",\"spool\":\"%s/spool\"},"
             "\"roomy\":{\"type\":\"roomy\"}},\"groups\":{\"*\":[\"push\",\"file\",\"roomy\"]}}",
             folder, folder, folder);
    setenv("WEIR_CONFIG", text, 1);
    setenv("WEIR_LOG", "info", 1);
}

static void ignore_log(void *context, int level, const char *text)
{
    (void)context, (void)level, (void)text;
}

static void run_case(const char *name, void (*call)(void), void (*run_on)(void), bool configured)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(60);
        if (configured)
            set_environment();
        else
            weir_set_log(ignore_log, NULL);
        PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
        work = call;
        run_on();
        PLAIN_CHECK(ledger_all_are_balanced());
        exit(0);
    }
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (status)
        plain_fail(__FILE__, __LINE__, "the process succeeds", name);
    printf("%s\n", name);
}

static void run_cases(void (*run_on)(void))
{
    run_case("add", add, run_on, true);
    run_case("instruments", use_instruments, run_on, true);
    run_case("flush", flush, run_on, true);
    run_case("read statistics", read_stats, run_on, true);
    run_case("shut down", shut_down, run_on, true);
    run_case("exit", leave, run_on, true);
    run_case("fork", fork_child, run_on, true);
    run_case("configure", configure, run_on, false);
    run_case("configure, refused", be_refused, run_on, false);
}

int main(void)
{
    char command[100];
    if (plain_is_sanitized("")) {
        puts("the sanitizers' functions need more stack");
        return 77;
    }
    PLAIN_CHECK(mkdtemp(folder));
    puts("on a thread:");
    run_cases(run_on_thread);
    puts("on a coroutine:");
    run_cases(run_on_coroutine);
    run_case("as in a signal handler", try_to_add, run_as_signal_handler, true);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0;
}
