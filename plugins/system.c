#include "system.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

const char *wr_system_strerror(int error)
{
#ifdef HAVE_STRERRORDESC_NP
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown error";
#else
    return strerror(error);
#endif
}

int64_t wr_system_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void *wr_system_allocate(const weir_host *host, size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        host->refuse(host, "", "out of memory");
    return memory;
}

bool wr_system_fail(weir_outcome *outcome, int code, const char *format, ...)
{
    va_list arguments;
    outcome->code = code;
    va_start(arguments, format);
    vsnprintf(outcome->reason, sizeof outcome->reason, format, arguments);
    va_end(arguments);
    return false;
}

bool wr_system_fail_by(weir_outcome *outcome, const char *what, int error)
{
    return wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s: %s", what, wr_system_strerror(error));
}

bool wr_system_leads_to_file(const char *path, dev_t device, ino_t inode)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

bool wr_system_is_local(int fd)
{
    /* the numbers of statfs(2) */
    static const unsigned remote[] = {
        0x6969 /* NFS */,      0x517b /* SMB */,        0xff534d42 /* CIFS */,   0xfe534d42 /* SMB 2 */,
        0x65735546 /* FUSE */, 0x01021997 /* 9p */,     0x00c36400 /* Ceph */,   0x5346414f /* AFS */,
        0x6b414653 /* kAFS */, 0x73757245 /* Coda */,   0x564c /* NCP */,        0x7461636f /* OCFS2 */,
        0x01161970 /* GFS2 */, 0x0bd00bd0 /* Lustre */, 0x19830326 /* BeeGFS */,
    };
    struct statfs status;
    if (fstatfs(fd, &status) != 0)
        return false;
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        if ((unsigned)status.f_type == remote[i])
            return false;
    return true;
}
