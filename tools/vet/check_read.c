/* The check of --read: what emit has settled arrives, once. The command prints a line for each value that the
 * destination has received. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "text/array.h"
#include "text/buffer.h"
#include "probe.h"
#include "program.h"
#include "text/numeral.h"
#include "thread.h"
#include "watch.h"

/* Marks of a handler alone, of two at the same time, and of a program. */
enum { FIRST_OF_PAIR = 3000, PAIR_SIZE = 150, FIRST_OF_PROGRAM = 4000, PROGRAM_SIZE = 500, MOST_MARKS = 5000 };

/* ---- The command ----------------------------------------------------------------------------- */

static void read_all(int fd, struct wr_buffer *out)
{
    char bytes[16384];
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR))
        if (got > 0)
            wr_buffer_put(out, bytes, (size_t)got);
}

/* Returns the command's exit status; -1: it could not be run. */
static int run_command(const char *command, struct wr_buffer *out)
{
    int ends[2], status = -1;
    wr_buffer_clear(out);
    vet_enter(VET_NOTHING, "the command of --read");
    if (pipe2(ends, O_CLOEXEC) != 0)
        vet_skip("vet itself: cannot create a pipe: %s", strerror(errno));
    pid_t pid = -1;
    int error = vet_thread_spawn(&pid, command, ends[1], false);
    close(ends[1]);
    read_all(ends[0], out);
    close(ends[0]);
    if (error || waitpid(pid, &status, 0) != pid)
        vet_skip("vet itself: cannot run the command of --read");
    vet_leave();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- The numbers of a line ------------------------------------------------------------------- */

static const char digits[] = "0123456789";

static struct {
    double *values;
    uint32_t count, room;
} numbers;

/* Returns the length of the number, without a sign, that begins there; 0: none does. */
static size_t number_length(const char *at)
{
    size_t length = strspn(at, digits);
    size_t decimals = at[length] == '.' ? strspn(at + length + 1, digits) : 0;
    if (!length && !decimals)
        return 0;
    length += at[length] == '.' ? 1 + decimals : 0;
    if (at[length] != 'e' && at[length] != 'E')
        return length;
    size_t sign = at[length + 1] == '-' || at[length + 1] == '+';
    size_t exponent = strspn(at + length + 1 + sign, digits);
    return length + (exponent ? 1 + sign + exponent : 0);
}

static void add_number(const char *at, size_t length, bool is_negative)
{
    weir_number number;
    if (!wr_numeral_read(at, at + length, 0, &number))
        return; /* out of range */
    if (!WR_ARRAY_HAS_ROOM(&numbers.values, &numbers.room, numbers.count + 1))
        vet_skip("vet itself: out of memory");
    double value = number.kind == WEIR_KIND_INT ? (double)number.is.i64 : number.is.f64;
    numbers.values[numbers.count++] = is_negative ? -value : value;
}

/* The digits of marks are not numbers. */
static void read_numbers(const char *line, const char *prefix)
{
    size_t prefix_length = strlen(prefix);
    numbers.count = 0;
    for (const char *at = line; *at;) {
        size_t length = number_length(at);
        if (length)
            add_number(at, length, at > line && at[-1] == '-');
        else if (strncmp(at, prefix, prefix_length) == 0)
            length = prefix_length + strspn(at + prefix_length, digits);
        at += length ? length : 1;
    }
}

/* Returns where the value is, from a place on; numbers.count: it is not there. */
static uint32_t find_number(double value, uint32_t from)
{
    while (from < numbers.count && numbers.values[from] != value)
        from++;
    return from;
}

/* ---- What has arrived ------------------------------------------------------------------------ */

static struct {
    uint32_t lines[MOST_MARKS]; /* how many lines hold the mark and its value */
    bool bare[MOST_MARKS];      /* a line holds the mark, but not the value */
    bool swapped[MOST_MARKS];   /* a line holds both, but its values are in another order than its marks */
    int status;                 /* of the command */
} arrived;

/* A line may hold the mark more than once, and other marks too: an event is one line in some formats, and the
 * result of a query in others, with all names before all values. So the value may be anywhere in the line, but
 * behind that of the mark before it. */
static void count_in_line(const char *line, const char *prefix)
{
    const char *at = strstr(line, prefix);
    uint64_t last = UINT64_MAX;
    uint32_t place = 0;
    bool seen[MOST_MARKS] = {false};
    if (at)
        read_numbers(line, prefix);
    for (; at; at = strstr(at, prefix)) {
        char name[VET_MARK_SIZE];
        int value;
        at += strlen(prefix);
        uint64_t number = strtoull(at, NULL, 10);
        if (number >= MOST_MARKS || number == last)
            continue;
        last = number;
        vet_batches_mark(number, name, &value);
        uint32_t found = find_number(value, seen[number] ? 0 : place);
        if (!seen[number] && found < numbers.count)
            place = found + 1;
        seen[number] = true;
        if (found < numbers.count)
            arrived.lines[number]++;
        else if (find_number(value, 0) < numbers.count)
            arrived.swapped[number] = true;
        else
            arrived.bare[number] = true;
    }
}

static void read_back(const struct vet_subject *subject)
{
    struct wr_buffer out = {0};
    char prefix[VET_MARK_SIZE], *line, *rest;
    int value;
    memset(&arrived, 0, sizeof arrived);
    vet_batches_mark(0, prefix, &value);
    prefix[strlen(prefix) - 6] = '\0';
    arrived.status = run_command(subject->read, &out);
    wr_buffer_put_char(&out, '\0');
    for (line = out.failed ? NULL : strtok_r(out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        count_in_line(line, prefix);
    wr_buffer_fini(&out);
}

static uint64_t count_missing(uint64_t first, uint64_t end)
{
    uint64_t missing = 0;
    for (uint64_t i = first; i < end; i++)
        missing += !arrived.lines[i];
    return missing;
}

/* A destination may need time until a value can be read. Returns how many values are missing. */
static uint64_t wait_for(const struct vet_subject *subject, uint64_t first, uint64_t end, uint64_t allowed)
{
    int64_t end_ms = vet_now_ms() + subject->deadline_ms / 2;
    for (;;) {
        read_back(subject);
        uint64_t missing = count_missing(first, end);
        if (missing <= allowed || vet_now_ms() >= end_ms)
            return missing;
        vet_thread_sleep_ms(100);
    }
}

static _Noreturn void fail_missing(uint64_t first, uint64_t end, uint64_t missing, const char *when)
{
    char name[VET_MARK_SIZE];
    int value;
    uint64_t i = first;
    while (i + 1 < end && arrived.lines[i])
        i++;
    vet_batches_mark(i, name, &value);
    vet_fail("%" PRIu64 " of %" PRIu64
             " values that were settled %s do not arrive: the command of --read (status %d) "
             "prints %s %s=%d",
             missing, end - first, when, arrived.status,
             arrived.bare[i]      ? "another value than"
             : arrived.swapped[i] ? "values in another order than their names, in the line with"
                                  : "no line with",
             name, value);
}

static void check_repeats(uint64_t first, uint64_t end)
{
    char name[VET_MARK_SIZE];
    int value;
    uint64_t repeated = 0, example = 0;
    for (uint64_t i = first; i < end; i++)
        if (arrived.lines[i] > 1) {
            repeated++;
            example = i;
        }
    vet_batches_mark(example, name, &value);
    if (repeated)
        vet_fail("%" PRIu64 " of %" PRIu64
                 " values arrive more than once, although none was offered twice: %s=%d "
                 "arrives %u times; done counts what was sent",
                 repeated, end - first, name, value, arrived.lines[example]);
}

/* Returns how many arrive. */
static uint64_t check_range(const struct vet_subject *subject, uint64_t first, uint64_t end, uint64_t allowed,
                            bool may_repeat, const char *when)
{
    uint64_t missing = wait_for(subject, first, end, allowed);
    if (missing > allowed)
        fail_missing(first, end, missing, when);
    if (!may_repeat)
        check_repeats(first, end);
    return end - first - missing;
}

/* No destination has a cause to refuse marks: otherwise a handler that refuses all would pass. */
static void check_rejected(uint64_t rejected, uint64_t count, const char *when, const char *reason)
{
    if (rejected)
        vet_fail("%" PRIu64 " of %" PRIu64
                 " values are rejected %s, although their names and numbers are ordinary: %s",
                 rejected, count, when, *reason ? reason : "outcome->reason is empty");
}

/* ---- A handler alone ------------------------------------------------------------------------- */

static struct vet_recipe marked(uint32_t count)
{
    return (struct vet_recipe){.count = count, .flavour = VET_MARKED, .seed = count};
}

static void deliver(struct vet_probe *probe, uint32_t count)
{
    vet_probe_must_deliver(probe, marked(count));
    check_rejected(probe->rejected, probe->delivered + probe->rejected, "by emit", probe->reason);
}

static void flush(struct vet_probe *probe)
{
    int64_t end_ms = vet_now_ms() + probe->subject->deadline_ms / 2;
    while (vet_probe_flush(probe, 1000) == WEIR_OUTCOME_RETRY && vet_now_ms() < end_ms)
        ;
}

/* What is not there after a flush must not be settled, since the core keeps no copy. */
static void read_after_flush(struct vet_probe *probe)
{
    uint64_t end = probe->sequence;
    if (wait_for(probe->subject, 0, end, 0) == 0)
        return;
    vet_probe_close(probe);
    uint64_t missing = wait_for(probe->subject, 0, end, 0);
    if (missing)
        fail_missing(0, end, missing, "by emit");
    vet_see("flush");
    vet_fail("values that were settled by emit arrive only after close: %s",
             probe->type->flush ? "flush has returned, but has not sent what was buffered"
                                : "emit buffers them, but the type has no flush");
}

static void deliver_marked(struct vet_probe *probe)
{
    static const uint32_t counts[] = {1, 2, 7, 40, 200, 1000};
    vet_probe_must_open(probe);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && (i < 3 || vet_has_time()); i++)
        deliver(probe, counts[i]);
    flush(probe);
    read_after_flush(probe);
    vet_probe_close(probe);
    deliver(probe, 40);
    flush(probe);
    vet_probe_close(probe);
}

/* This and the next two return how many values arrive. */
static uint64_t check_alone(const struct vet_subject *subject)
{
    struct vet_probe probe;
    vet_probe_create(&probe, subject, NULL);
    vet_probe_on_worker(deliver_marked, &probe);
    uint64_t count =
        check_range(subject, 0, probe.sequence, 0, probe.repeated, "before and after a close and an open");
    vet_probe_destroy(&probe);
    return count;
}

/* ---- Two handlers ---------------------------------------------------------------------------- */

static void deliver_beside(struct vet_probe *probe)
{
    uint64_t end = probe->sequence + PAIR_SIZE;
    vet_probe_must_open(probe);
    while (probe->sequence + 3 <= end && vet_has_time())
        deliver(probe, 3);
    flush(probe);
    vet_probe_close(probe);
}

static uint64_t check_pair(const struct vet_subject *subject)
{
    enum { PAIR = 2 };
    uint64_t count = 0;
    struct vet_probe probes[PAIR];
    for (int i = 0; i < PAIR; i++) {
        vet_probe_create(&probes[i], subject, NULL);
        probes[i].sequence = FIRST_OF_PAIR + (uint64_t)i * PAIR_SIZE;
    }
    vet_probe_on_workers(deliver_beside, probes, PAIR);
    for (uint64_t i = 0; i < PAIR; i++) {
        vet_see("responsibilities-and-threads");
        count += check_range(subject, FIRST_OF_PAIR + i * PAIR_SIZE, probes[i].sequence, 0, probes[i].repeated,
                             "by one of two handlers at the same time");
        vet_probe_destroy(&probes[i]);
    }
    vet_see("");
    return count;
}

/* ---- A program ------------------------------------------------------------------------------- */

static void add_marked(void *ctx, struct vet_ledger *ledger)
{
    char name[VET_MARK_SIZE];
    int value;
    (void)ctx;
    (void)ledger;
    weir_stream *stream = weir_get_stream("vet.read");
    for (uint64_t i = 0; i < PROGRAM_SIZE; i++) {
        vet_batches_mark(FIRST_OF_PROGRAM + i, name, &value);
        if (i % 2) /* a type may take only one kind */
            weir_add_int(stream, name, value);
        else
            weir_add_value(stream, name, value);
    }
}

/* A slow handler may deliver only some of the values before the program ends. */
static uint64_t check_program(const struct vet_subject *subject)
{
    vet_enter(VET_NOTHING, "a program with it");
    struct vet_ledger ledger = vet_program_run(subject, add_marked, NULL);
    vet_leave();
    if (ledger.status || !ledger.known)
        vet_fail("a program that adds %d values and exits ends with wait status %d", PROGRAM_SIZE,
                 ledger.status);
    check_rejected(ledger.rejected, PROGRAM_SIZE, "in a program", "see the log of the handler");
    if (!ledger.delivered)
        vet_skip("a program delivers none of %d values within %lld ms, so whether they arrive was not checked",
                 PROGRAM_SIZE, (long long)subject->deadline_ms / 2);
    uint64_t undelivered = PROGRAM_SIZE - (ledger.delivered < PROGRAM_SIZE ? ledger.delivered : PROGRAM_SIZE);
    return check_range(subject, FIRST_OF_PROGRAM, FIRST_OF_PROGRAM + PROGRAM_SIZE, undelivered, false,
                       "in a program that has ended");
}

static void check_read(const struct vet_subject *subject)
{
    uint64_t alone = check_alone(subject), pair = check_pair(subject), program = check_program(subject);
    vet_pass("%" PRIu64 " values of a handler, %" PRIu64 " of two at the same time and %" PRIu64
             " of a program arrive, once each",
             alone, pair, program);
}

const struct vet_check vet_check_read = {"read", check_read, "batches-and-done",
                                         VET_LOAD | VET_LIFE | VET_FLUSH, false};
