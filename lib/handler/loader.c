#include "handler/loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "text/error.h"
#include "os/fd.h"

static bool read_header(const char *path, ElfW(Ehdr) * header)
{
    int fd = wr_fd_open(path, O_RDONLY | O_NONBLOCK, 0);
    bool whole = fd >= 0 && read(fd, header, sizeof *header) == (ssize_t)sizeof *header;
    if (fd >= 0)
        close(fd);
    return whole;
}

/* The header of the object that contains this function. NULL: not known. */
static const ElfW(Ehdr) * own_header(void)
{
    Dl_info here;
    return dladdr((const void *)(uintptr_t)wr_loader_explain, &here) ? here.dli_fbase : NULL;
}

/* Like ours in magic, word size and byte order, but not in the processor. Other differences are explained by
 * the loader itself. */
static bool is_for_another_machine(const ElfW(Ehdr) * header, const ElfW(Ehdr) * own)
{
    return memcmp(header->e_ident, own->e_ident, EI_VERSION) == 0 && header->e_machine != own->e_machine;
}

/* For an object of another processor, the loader reports that there is no such file. Most of its messages begin
 * with the path already. */
void wr_loader_explain(const char *path, struct wr_error *error)
{
    const char *reason = dlerror();
    const ElfW(Ehdr) *own = own_header();
    ElfW(Ehdr) header;
    if (own && read_header(path, &header) && is_for_another_machine(&header, own)) {
        wr_error_set(error, WEIR_ERR_PLUGIN,
                     "%s: made for another kind of processor (ELF machine %u; this one is %u)", path,
                     header.e_machine, own->e_machine);
        return;
    }
    bool has_path = reason && strncmp(reason, path, strlen(path)) == 0;
    wr_error_set(error, WEIR_ERR_PLUGIN, "%s%s%s", has_path ? "" : path, has_path ? "" : ": ",
                 reason ? reason : "cannot be loaded");
}

/* OpenSSL destroys itself in an exit handler, also what a worker uses that is still inside it when the time to
 * shut down has passed. It registers none if the first to initialise it asks for that (OPENSSL_init_crypto(3));
 * where the program was the first, its handler is now older than weir's. Nothing else is initialised. */
void wr_loader_prepare(void *object)
{
    static const uint64_t no_exit_handler = 0x00080000; /* OPENSSL_INIT_NO_ATEXIT */
    typedef int initialize(uint64_t options, const void *settings);
    initialize *openssl = (initialize *)(uintptr_t)dlsym(object, "OPENSSL_init_crypto");
    if (openssl)
        openssl(no_exit_handler, NULL);
}
