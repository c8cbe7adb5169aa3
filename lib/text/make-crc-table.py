#!/usr/bin/env python3
"""Prints lib/crc_table.h: for the CRC-32C (Castagnoli) with reflected bits, what each value of a byte becomes when 0 to 7 bytes of
zeros follow it, so that eight bytes can be looked up at once."""

POLYNOMIAL = 0x82F63B78


def of_byte(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


table = [[of_byte(byte) for byte in range(256)]]
for _ in range(7):
    table.append([table[0][value & 0xFF] ^ value >> 8 for value in table[-1]])

print("/* Made by make-crc-table.py: change that, not this. */")
print("/* clang-format off */")
print("#include <stdint.h>\n")
print("static const uint32_t crc_table[8][256] = {")
for row in table:
    print("    {")
    for first in range(0, 256, 8):
        print("        " + " ".join(f"0x{value:08x}," for value in row[first:first + 8]))
    print("    },")
print("};")
print("/* clang-format on */")
