/* edits: the configuration is edited, replaced and reread all the time while threads add values, with a
 * journal: what an edited configuration keeps is its own. The journal stays where it is, and what calls
 * returned 0 for is in the ledger and delivered. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include <weir/weir.h>

#include "../support/plain.h"

enum { EDITS = 1500, SLOW_EDITS = 300, ADDERS = 3, HANG_S = 200 };

static char folder[] = "/tmp/weir-edits-XXXXXX";
static char config_path[100], config[500];
static _Atomic bool over;
static _Atomic uint64_t added, complaints;

static void *add(void *argument)
{
    weir_stream *streams[] = {weir_get_stream("a"), weir_get_stream("b"), weir_get_stream("c.d")};
    for (unsigned i = 0; !atomic_load(&over); i++) {
        PLAIN_CHECK(weir_add_value(streams[i % 3], "value", i) == 0);
        atomic_fetch_add(&added, 1);
        if (i % 100 == 0)
            usleep(100);
    }
    return argument;
}

/* Each route has one handler at any time; all write to the same kind of place. */
static void edit(int i)
{
    char options[240];
    snprintf(options, sizeof options, "{\"path\":\"%s/out.%d\",\"format\":\"text\",\"block_timeout\":\"1h\"}",
             folder, i / 6 % 2);
    switch (i % 6) {
    case 0: PLAIN_CHECK(weir_configure("a", "file", options) == 0); break;
    case 1: PLAIN_CHECK(weir_configure("c", "null", "{\"block_timeout\":\"1h\"}") == 0); break;
    case 2: PLAIN_CHECK(weir_reload() == 0); break;
    case 3: PLAIN_CHECK(weir_configure("a", "file", options) == 0); break;
    case 4: PLAIN_CHECK(weir_configure("c", NULL, NULL) == 0); break;
    default: PLAIN_CHECK(weir_configure_file(config_path) == 0); break;
    }
    weir_describe(weir_get_stream("a"), "value", i % 2 ? "s" : "ms", "how long"); /* the first one stays */
}

static void count_complaint(void *context, int level, const char *text)
{
    (void)context;
    if (level > WEIR_LOG_WARNING)
        return;
    fprintf(stderr, "%s\n", text);
    atomic_fetch_add(&complaints, 1);
}

static void write_config(void)
{
    snprintf(config_path, sizeof config_path, "%s/weir.json", folder);
    snprintf(config, sizeof config,
             "{\"settings\":{\"journal\":\"%s/journal\"},\"handlers\":{\"all\":{\"type\":\"file\",\"path\":"
             "\"%s/all\",\"block_timeout\":\"1h\"}},\"groups\":{\"*\":\"all\"}}",
             folder, folder);
    FILE *file = fopen(config_path, "w");
    PLAIN_CHECK(file && fputs(config, file) >= 0 && fclose(file) == 0);
}

/* Its configuration is a copy of the edited one. */
static void check_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(HANG_S);
        PLAIN_CHECK(weir_add_value(weir_get_stream("b"), "value", 1) == 0 && weir_flush(-1) == 0);
        exit(0);
    }
    PLAIN_CHECK(waitpid(child, &status, 0) == child && status == 0, "a child failed");
}

/* ThreadSanitizer makes an edit several times as slow. */
static int count_edits(void)
{
    return plain_rounds(plain_is_sanitized("thread") ? SLOW_EDITS : EDITS);
}

static void check_ledger(void)
{
    weir_stats process;
    weir_handler_stats handler;
    uint64_t delivered = 0;
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    const char *name;
    for (size_t i = 0; (name = weir_get_handler_name(i)); i++) {
        PLAIN_CHECK(weir_get_handler_stats(name, &handler, sizeof handler) == 0);
        PLAIN_CHECK(handler.offered == handler.delivered);
        delivered += handler.delivered;
    }
    printf("%d edits, %llu calls returned 0, %llu added, %llu delivered\n", count_edits(),
           (unsigned long long)added, (unsigned long long)process.added, (unsigned long long)delivered);
    PLAIN_CHECK(process.added == added && delivered == added && !atomic_load(&complaints));
}

int main(void)
{
    bool forks = !plain_is_sanitized("");
    char command[100];
    pthread_t threads[ADDERS];
    plain_hang_no_longer_than(plain_limit(HANG_S));
    PLAIN_CHECK(mkdtemp(folder));
    write_config();
    weir_set_log(count_complaint, NULL);
    PLAIN_CHECK(weir_configure_file(config_path) == 0);
    for (int i = 0; i < ADDERS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, add, NULL) == 0);
    for (int i = 0; i < count_edits(); i++) {
        edit(i);
        if (forks && i % 100 == 99)
            check_child();
    }
    atomic_store(&over, true);
    for (int i = 0; i < ADDERS; i++)
        pthread_join(threads[i], NULL);
    check_ledger();
    PLAIN_CHECK(weir_shutdown(-1) == 0);
    snprintf(command, sizeof command, "rmdir %s/journal && rm -r %s", folder, folder);
    return system(command) != 0; /* the journals of children are in no other folder, and are empty */
}
