/* resender: a source that sends the samples of three senders, all of them from the beginning in each run, as a
 * sender does whose receiver was killed: those that were taken before have to be recognised.
 *
 *     resender CONFIG COUNT
 *
 * Writes a dot for each block that is added, then "all STORED" (whether numbers survive), and after the sources
 * have stopped the ledgers as a line of JSON. Sample n of each sender has the value n. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/source.h>
#include <weir/weir.h>

#include "../support/ledger_json.h"
#include "../support/plugins/scripted_source.h"

enum { SENDERS = 3, LARGEST = 150 };

static const char *const origins[SENDERS] = {
    "00000000000000000000000000000001", "0123456789abcdef0123456789abcdef", "ffffffffffffffffffffffffffffffff"};
static uint64_t count;
static unsigned seed;

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, weir_last_error());
    _exit(1);
}

static const weir_source_series *make_series(const weir_host *host, int sender)
{
    const weir_blocks *blocks = host->service(host, WEIR_SERVICE_BLOCKS);
    const char name[2] = {(char)('a' + sender)};
    const weir_typed_value value = {name, WEIR_INT(0)};
    const weir_record record = {.size = sizeof record, .group = "sent", .values = &value, .count = 1};
    return blocks->resolve(host, &record);
}

static void add(const weir_host *host, int sender, const weir_source_series *series, uint64_t from, uint64_t to)
{
    const weir_blocks *blocks = host->service(host, WEIR_SERVICE_BLOCKS);
    const weir_intake *intake = host->service(host, WEIR_SERVICE_INTAKE);
    weir_block_sample samples[LARGEST];
    for (uint64_t n = from; n < to; n++)
        samples[n - from] = (weir_block_sample){
            .series = series,
            .time_ns = (int64_t)n + 1,
            .kind = WEIR_KIND_INT,
            .flags = n % 3 && n + 1 < to ? WEIR_SAMPLE_MORE : 0,
            .value.i64 = (int64_t)n,
            .text = "four",
            .text_length = n % 5 ? 0 : 4,
        };
    const weir_block block = {sizeof block, origins[sender], from, samples, to - from};
    int result;
    while ((result = blocks->add(host, &block, NULL)) == WEIR_ADD_FULL)
        if (intake->wait(host, NULL, 0, -1) & WEIR_WAIT_STOP)
            return;
    if (result != WEIR_ADD_TAKEN || write(1, ".", 1) != 1)
        fail("add");
}

/* Sends the numbers from *next on, as many as there are in a block. */
static void send_block(const weir_host *host, int sender, const weir_source_series *series, uint64_t *next)
{
    const weir_blocks *blocks = host->service(host, WEIR_SERVICE_BLOCKS);
    uint64_t end = *next + 1 + (uint64_t)rand_r(&seed) % LARGEST, from, to;
    if (end > count)
        end = count;
    while (blocks->missing(host, origins[sender], *next, end, &from, &to)) {
        add(host, sender, series, from, to);
        *next = to;
    }
    *next = end;
}

static void send_all(const weir_host *host, const char *tag, weir_outcome *outcome)
{
    (void)tag, (void)outcome;
    const weir_blocks *blocks = host->service(host, WEIR_SERVICE_BLOCKS);
    const weir_source_series *series[SENDERS];
    uint64_t next[SENDERS] = {0};
    for (int i = 0; i < SENDERS; i++)
        series[i] = make_series(host, i);
    for (int busy = 1; busy;) {
        busy = 0;
        for (int i = 0; i < SENDERS; i++)
            if (next[i] < count) {
                send_block(host, i, series[i], &next[i]);
                busy = 1;
            }
    }
    printf("all %d\n", blocks->is_stored(host));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char path[4096], line[16];
    if (argc != 3)
        return 2;
    count = strtoull(argv[2], NULL, 10);
    seed = (unsigned)getpid();
    struct source_script *script = load_source_script(path, sizeof path);
    if (!script)
        return 3;
    script->run = send_all;
    if (weir_configure_file(argv[1]) || weir_start_sources())
        fail("start");
    if (!fgets(line, sizeof line, stdin)) /* the end of the input: deliver, and end */
        line[0] = 0;
    if (weir_stop_sources(600000))
        fail("stop");
    weir_flush(600000);
    printf("{");
    ledger_json_members();
    printf("}\n");
    return 0;
}
