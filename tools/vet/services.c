#include "services.h"

#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct vet_probe *probe_of(const weir_host *host)
{
    return (struct vet_probe *)vet_tested_of(host); /* its first member */
}

static void service_count(const weir_host *host, const char *name, uint64_t n)
{
    (void)n;
    probe_of(host);
    if (!name || !*name)
        vet_fail("host->count was called without a name");
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static bool is_stop_requested(void)
{
    return atomic_load(&vet_page->stop);
}

static void service_wake_in(const weir_host *host, int64_t delay_ms)
{
    if (!probe_of(host)->type->wake && delay_ms >= 0)
        vet_fail("host->wake_in was called, but the type has no wake");
}

static bool service_wait(const weir_host *host, int64_t ms)
{
    const struct vet_probe *probe = probe_of(host);
    int64_t end_ms = vet_now_ms() + (ms < 0 ? 0 : ms), left_ms;
    atomic_fetch_add(&vet_page->waits, 1);
    if (!probe->self)
        vet_fail("host->wait was called in create, which may not wait");
    while (!is_stop_requested() && (left_ms = end_ms - vet_now_ms()) > 0) {
        struct timespec left = {left_ms / 1000, left_ms % 1000 * 1000000};
        syscall(SYS_futex, &vet_page->stop, FUTEX_WAIT, 0, &left, NULL, 0);
    }
    return !is_stop_requested();
}

static bool service_stopping(const weir_host *host)
{
    probe_of(host);
    atomic_fetch_add(&vet_page->waits, 1);
    return is_stop_requested();
}

static void service_begin_blocking(const weir_host *host)
{
    struct vet_probe *probe = probe_of(host);
    if (probe->tested.waiting)
        vet_fail("blocking_call/1: begin was called twice without end");
    probe->tested.waiting = true;
}

static void service_end_blocking(const weir_host *host)
{
    struct vet_probe *probe = probe_of(host);
    if (!probe->tested.waiting)
        vet_fail("blocking_call/1: end was called without a begin");
    probe->tested.waiting = false;
}

static int64_t service_remaining_ms(const weir_host *host)
{
    probe_of(host);
    int64_t left_ms = (vet_page->stop_deadline_ms - vet_now_ms()) / 2;
    return !is_stop_requested() ? -1 : left_ms < 0 ? 0 : left_ms;
}

static unsigned service_wait_for(const weir_host *host, struct pollfd *fds, size_t count, int64_t timeout_ms)
{
    enum { SLICE_MS = 20 };
    const struct vet_probe *probe = probe_of(host);
    int64_t end_ms = timeout_ms < 0 ? INT64_MAX : vet_now_ms() + timeout_ms;
    atomic_fetch_add(&vet_page->waits, 1);
    if (count && !fds)
        vet_fail("waiting/1: wait was called with NULL for %zu descriptors", count);
    if (probe->tested.waiting)
        vet_fail("waiting/1: wait was called between begin and end of blocking_call/1");
    for (;;) {
        int64_t left_ms = probe->self ? service_remaining_ms(host) : 0, until_ms = end_ms - vet_now_ms();
        int64_t slice_ms = left_ms >= 0 && left_ms < SLICE_MS ? left_ms : SLICE_MS;
        slice_ms = until_ms < slice_ms ? until_ms : slice_ms;
        int ready = poll(fds, count, slice_ms < 0 ? 0 : (int)slice_ms);
        unsigned stops = left_ms == 0 ? WEIR_WAIT_STOP : 0u;
        for (size_t i = 0; i < count && ready > 0; i++)
            if (fds[i].revents & POLLNVAL)
                vet_fail("waiting/1: wait was called with descriptor %d, which is not open", fds[i].fd);
        if (ready > 0)
            return WEIR_WAIT_READY | stops;
        if (stops || until_ms <= 0)
            return stops;
    }
}

static int64_t service_now_ms(const weir_host *host)
{
    probe_of(host);
    return vet_now_ms();
}

static int service_connect(const weir_host *host, const weir_connect *what, char *reason, size_t room)
{
    struct vet_probe *probe = probe_of(host);
    if (!what || !what->to || !reason || !room)
        vet_fail("connecting/1: connect was called without a destination, or without room for a reason");
    if (!probe->self)
        vet_fail("connecting/1: connect was called in create, which may not wait");
    return wr_connecting_connect(&probe->instance->host.connecting, host, service_wait_for, what, reason, room);
}

static const weir_connecting connecting = {sizeof connecting, wr_connecting_check, service_connect};

static const weir_waiting waiting_for = {sizeof waiting_for, service_wait_for, service_now_ms};

static const weir_blocking_call waiting = {sizeof waiting, service_begin_blocking, service_end_blocking,
                                           service_remaining_ms};

static const void *service_find(const weir_host *host, const char *id)
{
    const struct vet_probe *probe = probe_of(host);
    if (!id)
        vet_fail("host->service was called without a name");
    if (strcmp(id, WEIR_SERVICE_BLOCKING_CALL) == 0)
        return &waiting;
    if (strcmp(id, WEIR_SERVICE_WAITING) == 0)
        return &waiting_for;
    const void *service = probe->tested.core.service(host, id);
    return service && strcmp(id, WEIR_SERVICE_CONNECTING) == 0 ? &connecting : service;
}

/* ---- Attaching ------------------------------------------------------------------------------- */

void vet_services_attach(struct vet_probe *probe)
{
    weir_host *table = &probe->instance->host.host_table;
    vet_tested_attach(&probe->tested, table);
    table->count = service_count;
    table->wake_in = service_wake_in;
    table->wait = service_wait;
    table->stopping = service_stopping;
    table->service = service_find;
}
