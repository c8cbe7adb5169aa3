#!/usr/bin/env python3
"""Compares debian/ with the tree: the version, the list of symbols, the name of the library's package."""

import re
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def compare(path, listed, exported):
    return [f"{path}: {name} is missing" for name in sorted(exported - listed)] + \
        [f"{path}: {name} is listed but not exported" for name in sorted(listed - exported)]


def check_version():
    released = re.search(r"^AC_INIT\(\[weir\], \[(.*?)\]\)", read("configure.ac"), re.M).group(1)
    packaged = re.match(r"weir \((.*)-[^-]*\) ", read("debian/changelog")).group(1)
    return [] if packaged == released else [f"debian/changelog: the version is {packaged}, in configure.ac {released}"]


def check_symbols():
    script = read("lib/api/libweir.map")
    exported = set(re.findall(r"^\s+(weir_\w+);", script, re.M)) | set(re.findall(r"^(WEIR_\w+) \{", script, re.M))
    listed = set(re.findall(r"^ (\w+)@WEIR_\w+ \d", read("debian/libweir0.symbols"), re.M))
    return compare("debian/libweir0.symbols", listed, exported)


def check_soname():
    current, _, age = map(int, re.search(r"WEIR_LIBTOOL_VERSION\], \[(\d+):(\d+):(\d+)\]", read("configure.ac")).groups())
    name = f"libweir{current - age}"
    return [] if f"\nPackage: {name}\n" in read("debian/control") else [f"debian/control: the library's package must be named {name}"]


def main():
    problems = check_version() + check_symbols() + check_soname()
    print(f"packages: {len(problems)} problems")
    sys.exit("\n".join(problems) if problems else 0)


main()
