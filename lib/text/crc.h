/* crc: a checksum that notices torn and damaged bytes: CRC-32C (Castagnoli), as in iSCSI and ext4. */
#ifndef WR_CRC_H
#define WR_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of bytes that follow others; `before`: the checksum of those, 0 where there are none. */
uint32_t wr_crc_add(uint32_t before, const void *bytes, size_t length);

#endif
