#!/usr/bin/env python3
"""Prints lib/pow10_table.h: for k = -292 ... 324 the 128-bit number g with 2^127 <= g < 2^128 and g = ceil(10^k / 2^e) for the
e that makes it so. Those are the powers of ten that shortest formatting of doubles needs (Raffaello Giulietti, "The Schubfach way
to render doubles")."""

FIRST, LAST = -292, 324


def g(k):
    """10^k scaled to exactly 128 bits, rounded up."""
    numerator, denominator = (10**k, 1) if k >= 0 else (1, 10**-k)
    e = numerator.bit_length() - denominator.bit_length() - 128
    while True:
        scaled_n, scaled_d = (numerator, denominator << e) if e >= 0 else (numerator << -e, denominator)
        value = -(-scaled_n // scaled_d)
        if value >> 128:
            e += 1
        elif value < 1 << 127:
            e -= 1
        else:
            return value


print("/* Made by make-pow10-table.py: change that, not this. */")
print("/* clang-format off */")
print(f"enum {{ POW10_FIRST = {FIRST}, POW10_LAST = {LAST} }};")
print()
print("static const struct pow10 {")
print("    uint64_t high, low;")
print("} pow10_table[POW10_LAST - POW10_FIRST + 1] = {")
for k in range(FIRST, LAST + 1):
    value = g(k)
    print(f"    {{0x{value >> 64:016x}, 0x{value & (2**64 - 1):016x}}}, /* {k} */")
print("};")
print("/* clang-format on */")
