#!/usr/bin/env python3
"""Compares the floors of lib/ with the list in doc/architecture.md: arrows point down only, and every X.c has its X.h.

--record writes the list anew.
"""

import glob
import os
import re
import sys

WITHOUT_HEADER = {"weir", "prof", "testing", "builtin", "builtin_null", "builtin_console", "builtin_file", "builtin_fifo"}


def read_dependencies():
    dependencies = {}
    for path in glob.glob("lib/*.[ch]"):
        module = os.path.basename(path).rsplit(".", 1)[0]
        if module.startswith("builtin_") or module.endswith("_table"):
            continue
        with open(path, encoding="utf-8") as file:
            included = set(re.findall(r'#include "([a-z0-9_]+)\.h"', file.read()))
        dependencies.setdefault(module, set()).update(name for name in included - {module} if not name.endswith("_table"))
    return dependencies


def read_documented():
    floors = {}
    with open("doc/architecture.md", encoding="utf-8") as file:
        text = file.read().split("## Floors", 1)[1]
    for floor, modules in re.findall(r"^ {4} ?(\d+) ([a-z0-9_ ]+)$", text, re.M):
        for module in modules.split():
            floors[module] = int(floor)
    return floors


def find_floor(module, dependencies, floors, path=()):
    if module in path:
        sys.exit("floors: a circle: " + " -> ".join(path[path.index(module):] + (module,)))
    if module not in floors:
        below = [find_floor(d, dependencies, floors, path + (module,)) for d in dependencies[module]]
        floors[module] = 1 + max(below, default=-1)
    return floors[module]


def record(floors):
    names = {}
    for module, floor in floors.items():
        names.setdefault(floor, []).append(module)
    with open("doc/architecture.md", encoding="utf-8") as file:
        head, tail = file.read().split("## Floors", 1)
    introduction = tail.split("\n    ", 1)[0]
    lines = [f"    {floor:2} {' '.join(sorted(names[floor]))}" for floor in sorted(names, reverse=True)]
    with open("doc/architecture.md", "w", encoding="utf-8") as file:
        file.write(head + "## Floors" + introduction + "\n" + "\n".join(lines) + "\n")


def main():
    dependencies, real, problems = read_dependencies(), {}, []
    for module in dependencies:
        find_floor(module, dependencies, real)
    if "--record" in sys.argv:
        record(real)
    documented = read_documented()
    for module in sorted(set(real) | set(documented)):
        if real.get(module) != documented.get(module):
            problems.append(f"floors: {module} is on floor {real.get(module)}, doc/architecture.md says {documented.get(module)}")
    for path in glob.glob("lib/*.c"):
        module = os.path.basename(path)[:-2]
        if module not in WITHOUT_HEADER and not os.path.exists(f"lib/{module}.h"):
            problems.append(f"floors: {path} has no header")
    print(f"floors: {len(real)} modules on {max(real.values()) + 1} floors")
    sys.exit("\n".join(problems) if problems else 0)


main()
