/* crc: the checksum CRC-32C (Castagnoli), as in iSCSI and ext4. */
#ifndef WR_CRC_H
#define WR_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continues a checksum: `before` is the checksum of the preceding bytes, 0 if there are none. */
uint32_t wr_crc_add(uint32_t before, const void *bytes, size_t length);

#endif
