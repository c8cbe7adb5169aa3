/* zip: an archive in memory. APPNOTE.TXT of PKWARE, without its 64-bit forms: less than 4 GiB, 65,535 files. */
#ifndef WEIR_PLUGINS_COLLECTOR_ZIP_H
#define WEIR_PLUGINS_COLLECTOR_ZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "text/buffer.h"

/* All zeros: empty. */
struct zip {
    struct wr_buffer data, directory;
    unsigned count;
    bool has_failed;
};

/* Adds a file, deflated, with mode 0600. */
void zip_add(struct zip *zip, const char *name, const void *bytes, size_t length);

/* Ends the archive, which is then in zip->data. Returns false if out of memory or too large. */
bool zip_finish(struct zip *zip);
void zip_fini(struct zip *zip);

#endif
