#include "forward_identity.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../system.h"
#include "text/hash.h"

/* Returns the number of bytes; 0: it cannot be read. */
static size_t read_file(const char *path, char *out, size_t room)
{
    out[0] = '\0';
    int fd = wr_fd_open(path, O_RDONLY, 0);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, out, room - 1);
    close(fd);
    out[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

static void read_machine(char machine[WIRE_NAME + 1])
{
    if (gethostname(machine, WIRE_NAME) != 0)
        machine[0] = '\0';
    machine[WIRE_NAME] = '\0';
}

/* In clock ticks since the machine was started: the 22nd field of stat, behind the name, which may hold
 * anything. */
static unsigned long long read_start(void)
{
    char text[1024];
    read_file("/proc/self/stat", text, sizeof text);
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* A process is what has a number in a namespace of processes, since a time after a start of the machine. Where
 * /proc cannot be read, the machine's name is left: returns false. All plugins of the process must find the
 * same. */
static bool find_id(uint64_t halves[2])
{
    char text[512], boot[64], machine[WIRE_NAME + 1] = "";
    struct stat space = {0};
    read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    const unsigned long long start = read_start();
    const bool is_known = *boot && start;
    if (!is_known)
        read_machine(machine);
    if (stat("/proc/self/ns/pid", &space) != 0)
        space.st_ino = 0;
    snprintf(text, sizeof text, "%s %llu %ld %llu%s", boot, (unsigned long long)space.st_ino, (long)getpid(),
             start, machine);
    halves[0] = wr_hash_bytes(1, text, strlen(text));
    halves[1] = wr_hash_bytes(2, text, strlen(text));
    return is_known;
}

/* It stays when the process has no descriptor left to read /proc with. Threads that find it at the same time
 * store the same. */
void wr_forward_id(uint8_t id[WIRE_ID])
{
    static _Atomic uint64_t known[2];
    static _Atomic pid_t known_pid; /* of another process after a fork */
    uint64_t halves[2];
    /* acquire: pairs with the release below, so that both halves are those of the process */
    if (atomic_load_explicit(&known_pid, memory_order_acquire) == getpid()) {
        halves[0] = atomic_load_explicit(&known[0], memory_order_relaxed);
        halves[1] = atomic_load_explicit(&known[1], memory_order_relaxed);
    } else if (find_id(halves)) {
        atomic_store_explicit(&known[0], halves[0], memory_order_relaxed);
        atomic_store_explicit(&known[1], halves[1], memory_order_relaxed);
        atomic_store_explicit(&known_pid, getpid(), memory_order_release);
    }
    memcpy(id, halves, WIRE_ID);
}

void wr_forward_names(char process[WIRE_NAME + 1], char machine[WIRE_NAME + 1])
{
    read_file("/proc/self/comm", process, WIRE_NAME + 1);
    process[strcspn(process, "\n")] = '\0';
    read_machine(machine);
}
