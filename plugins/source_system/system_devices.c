/* system_devices: disks, file systems and network interfaces. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "system_source.h"

static const struct sampling_figure disk_io = {"disk.io", "By", "Bytes read and written"};
static const struct sampling_figure disk_operations = {"disk.operations", "1",
                                                       "Reads and writes that have ended"};
static const struct sampling_figure disk_time = {"disk.operation_time", "s",
                                                 "Time that they have taken, added up"};
static const struct sampling_figure disk_busy = {"disk.io_time", "s", "Time in which the disk was busy"};
static const struct sampling_figure network_io = {"network.io", "By", "Bytes received and transmitted"};
static const struct sampling_figure network_packets = {"network.packets", "1",
                                                       "Packets received and transmitted"};
static const struct sampling_figure network_errors = {"network.errors", "1", "Packets with errors"};
static const struct sampling_figure network_dropped = {"network.dropped", "1", "Packets dropped"};
static const struct sampling_figure disk_since_boot = {
    "disk.io.since_boot", "By", "Bytes read and written since boot, of all block devices but partitions"};
static const struct sampling_figure network_since_boot = {
    "network.io.since_boot", "By", "Bytes received and transmitted since boot, of all interfaces"};
static const struct sampling_figure space = {"filesystem.usage", "By", "Space of a file system"};
static const struct sampling_figure space_share = {"filesystem.utilization", "1",
                                                   "Share that is used of what users may use"};

enum { SECTOR = 512 }; /* in /proc/diskstats, whatever the device's own size */

static void add(struct system_source *source, const struct sampling_figure *figure, double total, double unit,
                const char *device, const char *direction)
{
    const weir_label labels[] = {{"device", device}, {"direction", direction}};
    sampling_total(&source->sampling, figure, total, unit, labels, direction ? 2 : 1);
}

/* ---- Disks ----------------------------------------------------------------------------------- */

/* Loop devices and RAM disks: files and memory, which are counted elsewhere. */
static bool is_made_of_others(const char *name)
{
    return strncmp(name, "loop", 4) == 0 || strncmp(name, "ram", 3) == 0;
}

/* Whole devices, no partitions. */
static bool is_block_device(const struct system_source *source, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/block/%s", source->options->sys, name);
    for (char *slash = path + strlen(path) - strlen(name); (slash = strchr(slash, '/'));)
        *slash = '!'; /* as sysfs writes "cciss/c0d0" */
    return access(path, F_OK) == 0;
}

/* What the machine has moved since it was started, in two directions. */
struct since_boot {
    bool is_known;
    double in, out; /* bytes */
};

static void add_since_boot(struct system_source *source, const struct sampling_figure *figure,
                           const struct since_boot *total, const char *in, const char *out, const char *scope)
{
    const weir_label first[] = {{"direction", in}, {"scope", scope}};
    const weir_label second[] = {{"direction", out}, {"scope", scope}};
    sampling_level(&source->sampling, figure, total->in, first, scope ? 2 : 1);
    sampling_level(&source->sampling, figure, total->out, second, scope ? 2 : 1);
}

/* https://docs.kernel.org/admin-guide/iostats.html */
static void sample_disks(struct system_source *source)
{
    enum {
        READS,
        READS_MERGED,
        READ_SECTORS,
        READ_MS,
        WRITES,
        WRITES_MERGED,
        WRITTEN_SECTORS,
        WRITE_MS,
        IN_FLIGHT,
        BUSY_MS,
        FIELDS
    };
    if (!system_read(source, "diskstats", "disk"))
        return;
    struct since_boot all = {0};
    char *rest = source->file.text, *line;
    while ((line = proc_file_line(&rest))) {
        double fields[FIELDS];
        const char *name = proc_file_word(&line) && proc_file_word(&line) ? proc_file_word(&line) : NULL;
        if (!name || proc_file_numbers(line, fields, FIELDS) != FIELDS)
            continue;
        bool is_unused = fields[READ_SECTORS] == 0 && fields[WRITTEN_SECTORS] == 0;
        if ((is_made_of_others(name) && is_unused) || !is_block_device(source, name))
            continue;
        all.is_known = true;
        all.in += fields[READ_SECTORS] * SECTOR;
        all.out += fields[WRITTEN_SECTORS] * SECTOR;
        if (is_made_of_others(name))
            continue;
        add(source, &disk_io, fields[READ_SECTORS] * SECTOR, 1, name, "read");
        add(source, &disk_io, fields[WRITTEN_SECTORS] * SECTOR, 1, name, "write");
        add(source, &disk_operations, fields[READS], 1, name, "read");
        add(source, &disk_operations, fields[WRITES], 1, name, "write");
        add(source, &disk_time, fields[READ_MS], 1e3, name, "read");
        add(source, &disk_time, fields[WRITE_MS], 1e3, name, "write");
        add(source, &disk_busy, fields[BUSY_MS], 1e3, name, NULL);
    }
    if (all.is_known)
        add_since_boot(source, &disk_since_boot, &all, "read", "write", NULL);
    else
        sampling_miss(&source->sampling, "disk.io.since_boot", 0);
}

/* ---- Networks -------------------------------------------------------------------------------- */

static void add_direction(struct system_source *source, const char *device, const char *direction,
                          const double *fields)
{
    enum { BYTES, PACKETS, ERRORS, DROPPED };
    add(source, &network_io, fields[BYTES], 1, device, direction);
    add(source, &network_packets, fields[PACKETS], 1, device, direction);
    add(source, &network_errors, fields[ERRORS], 1, device, direction);
    add(source, &network_dropped, fields[DROPPED], 1, device, direction);
}

static bool is_loopback(const char *name)
{
    return strcasecmp(name, "lo") == 0 || strcasestr(name, "loopback");
}

/* Lines such as "  eth0: 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8", first what was received: proc_pid_net(5). Of the
 * namespace in which the source's program runs. */
static void sample_networks(struct system_source *source)
{
    enum { RECEIVED = 0, FIELDS = 16, TRANSMITTED = FIELDS / 2 };
    struct since_boot loopback = {0}, external = {0};
    if (!system_read(source, "net/dev", "network"))
        return;
    char *rest = source->file.text, *line;
    while ((line = proc_file_line(&rest))) {
        double fields[FIELDS];
        char *colon = strrchr(line, ':');
        if (!colon)
            continue;
        *colon = '\0';
        const char *name = line + strspn(line, " ");
        if (proc_file_numbers(colon + 1, fields, FIELDS) != FIELDS)
            continue;
        add_direction(source, name, "receive", fields);
        add_direction(source, name, "transmit", fields + TRANSMITTED);
        struct since_boot *total = is_loopback(name) ? &loopback : &external;
        total->in += fields[RECEIVED];
        total->out += fields[TRANSMITTED];
    }
    add_since_boot(source, &network_since_boot, &loopback, "receive", "transmit", "loopback");
    add_since_boot(source, &network_since_boot, &external, "receive", "transmit", "external");
}

/* ---- File systems ---------------------------------------------------------------------------- */

static void sample_filesystem(struct system_source *source, const char *mountpoint)
{
    struct sampling *sampling = &source->sampling;
    struct statvfs status;
    if (statvfs(mountpoint, &status) != 0) {
        sampling_miss(sampling, mountpoint, errno);
        return;
    }
    double unit = (double)status.f_frsize;
    double used = (double)(status.f_blocks - status.f_bfree) * unit, unused = (double)status.f_bavail * unit;
    double reserved = (double)(status.f_bfree - status.f_bavail) * unit;
    const struct {
        const char *state;
        double bytes;
    } parts[] = {{"used", used}, {"free", unused}, {"reserved", reserved}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const weir_label labels[] = {{"mountpoint", mountpoint}, {"state", parts[i].state}};
        sampling_level(sampling, &space, parts[i].bytes, labels, 2);
    }
    if (used + unused > 0)
        sampling_level(sampling, &space_share, used / (used + unused), &(weir_label){"mountpoint", mountpoint},
                       1);
}

void system_devices_sample(struct system_source *source)
{
    const weir_list *filesystems = &source->options->filesystems;
    sample_disks(source);
    sample_networks(source);
    for (size_t i = 0; i < filesystems->count; i++)
        sample_filesystem(source, filesystems->items[i]);
    if (!filesystems->count)
        sample_filesystem(source, "/");
}
