#!/usr/bin/env python3
"""Checks lib/ against the table under "## Folders" in doc/architecture.md: which folder may include which.

A row of the table is `| folder | may include | what it does |`; the second cell holds names of folders, separated by spaces, or nothing.
A folder may include only folders of rows above its own, so there are no cycles. A header named *_internal.h is private to its folder.
"""

import glob
import os
import re
import sys
import tempfile

DOCUMENT = "doc/architecture.md"
HEADER = ["folder", "may include", "what it does"]

# Files in lib/ itself; all others are in folders.
IN_LIB = {"lib.am"}

# Sources that implement public headers, or that only the linker refers to.
WITHOUT_HEADER = {"builtin", "prof", "testing", "weir"}

# Folders outside the table. They must not include private headers; tests may.
OUTSIDE = ("bench", "examples", "plugins", "tools")


class TableError(Exception):
    """The table cannot be read; the text names the line."""


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def find_table(root):
    """Returns the lines of the table as (number, cells)."""
    lines = list(enumerate(read_lines(os.path.join(root, DOCUMENT)), 1))
    start = next((i for i, (_, line) in enumerate(lines) if line.strip() == "## Folders"), None)
    if start is None:
        raise TableError(f'{DOCUMENT}: no heading "## Folders"')
    rows = []
    for number, line in lines[start + 1:]:
        if line.startswith("|"):
            if not line.rstrip().endswith("|"):
                raise TableError(f"{DOCUMENT}:{number}: the row does not end in |")
            rows.append((number, [cell.strip() for cell in line.strip().strip("|").split("|")]))
        elif rows or line.startswith("#"):
            break
    if len(rows) < 3:
        raise TableError(f'{DOCUMENT}:{lines[start][0]}: no table under "## Folders"')
    return rows


def read_table(root):
    """Returns {folder: folders that it may include}."""
    (header_line, header), (ruler_line, ruler), *rows = find_table(root)
    if header != HEADER:
        raise TableError(f"{DOCUMENT}:{header_line}: the header must be | {' | '.join(HEADER)} |")
    if len(ruler) != len(HEADER) or not all(re.fullmatch(r":?-+:?", cell) for cell in ruler):
        raise TableError(f"{DOCUMENT}:{ruler_line}: must be | --- | --- | --- |")
    table = {}
    for number, cells in rows:
        where = f"{DOCUMENT}:{number}"
        if len(cells) != len(HEADER):
            raise TableError(f"{where}: {len(cells)} cells instead of {len(HEADER)}")
        folder, allowed, purpose = cells[0].strip("`"), {name.strip("`") for name in cells[1].split()}, cells[2]
        if not re.fullmatch(r"[a-z_]+", folder):
            raise TableError(f'{where}: "{folder}" is not the name of a folder')
        if folder in table:
            raise TableError(f"{where}: {folder} is listed twice")
        if not purpose:
            raise TableError(f"{where}: the last cell is empty")
        for name in sorted(allowed - set(table)):
            raise TableError(f"{where}: {folder} may not include {name}: no such row above")
        table[folder] = allowed
    return table


def list_files(root, pattern):
    return sorted(os.path.relpath(path, root) for path in glob.glob(os.path.join(root, pattern), recursive=True))


def read_includes(root, path):
    """Yields the number of each line that includes a header by a name in quotes, and that name."""
    for number, line in enumerate(read_lines(os.path.join(root, path)), 1):
        found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if found:
            yield number, found.group(1)


def check_folders(root, table):
    for name in sorted(os.listdir(os.path.join(root, "lib"))):
        if name.startswith(".") or name in IN_LIB:
            continue
        if not os.path.isdir(os.path.join(root, "lib", name)):
            yield f"lib/{name}: must be in a folder"
        elif name not in table:
            yield f"lib/{name}: not in the table in {DOCUMENT}"
    for folder in table:
        if not os.path.isdir(os.path.join(root, "lib", folder)):
            yield f"{DOCUMENT}: there is no folder lib/{folder}"


def has_header(folder, stem):
    """A source has a header of its name; NAME_PART.c may share NAME.h with others."""
    words = stem.split("_")
    return any(os.path.exists(os.path.join(folder, "_".join(words[:i]) + ".h")) for i in range(1, len(words) + 1))


def check_names(root):
    folders = {}
    for path in list_files(root, "lib/*/**/*.[ch]"):
        folder, name = os.path.split(path)
        if name in folders:
            yield f"{path}: {folders[name]} has a file of this name too"
        folders[name] = folder
        stem, extension = os.path.splitext(name)
        if path.count("/") != 2:
            yield f"{path}: must be lib/FOLDER/FILE"
        if extension == ".c" and stem not in WITHOUT_HEADER and not has_header(os.path.join(root, folder), stem):
            yield f"{path}: {folder}/{stem}.h is missing"


def check_includes(root, table):
    for path in list_files(root, "lib/*/*.[ch]"):
        folder = path.split("/")[1]
        for number, header in read_includes(root, path):
            where = f"{path}:{number}"
            other = os.path.dirname(header)
            if other not in table:
                yield f'{where}: "{header}" must be "FOLDER/FILE.h", with a folder of lib/'
            elif other != folder and header.endswith("_internal.h"):
                yield f"{where}: {header} is private to lib/{other}"
            elif other != folder and other not in table.get(folder, ()):
                yield f"{where}: {folder} may not include {other} ({header})"


def check_outside(root):
    for path in (path for top in OUTSIDE for path in list_files(root, f"{top}/**/*.[ch]")):
        for number, header in read_includes(root, path):
            if header.endswith("_internal.h"):
                yield f"{path}:{number}: {header} is private to its folder in lib/"


def check(root):
    try:
        table = read_table(root)
    except TableError as error:
        return [str(error)]
    return [*check_folders(root, table), *check_names(root), *check_includes(root, table), *check_outside(root)]


VALID_TREE = {
    "doc/architecture.md": "# A\n\n## Folders\n\nText.\n\n| folder | may include | what it does |\n| --- | --- | --- |\n"
                           "| text | | strings |\n| os | text | the system |\n| `lane` | `text` `os` | queues |\n\n| a | b |\n",
    "lib/lib.am": "",
    "lib/text/buffer.c": '#include "text/buffer.h"\n',
    "lib/text/buffer.h": "",
    "lib/os/clock.h": '#include "text/buffer.h"\n',
    "lib/lane/lane.c": '#include "lane/lane.h"\n#include "lane/lane_internal.h"\n',
    "lib/lane/lane.h": '#include "os/clock.h"\n#include "text/buffer.h"\n',
    "lib/lane/lane_internal.h": "",
    "lib/lane/lane_offer.c": "",
    "tests/unit/lane.c": '#include "lane/lane_internal.h"\n',
}

# A change to the valid tree: a file, text to replace (None: the file is new), its replacement; and the expected report.
FAULTS = [
    ("doc/architecture.md", "## Folders", "## Other", 'no heading "## Folders"'),
    ("doc/architecture.md", "may include |", "includes |", "architecture.md:7: the header must be"),
    ("doc/architecture.md", "| --- | --- | --- |", "| --- | --- |", "architecture.md:8: must be"),
    ("doc/architecture.md", "| strings |", "|", "architecture.md:9: 2 cells"),
    ("doc/architecture.md", "| strings |", "| |", "architecture.md:9: the last cell is empty"),
    ("doc/architecture.md", "| | strings", "| os | strings", "architecture.md:9: text may not include os"),
    ("doc/architecture.md", "the system |", "the system", "architecture.md:10: the row does not end"),
    ("doc/architecture.md", "| os |", "| text |", "architecture.md:10: text is listed twice"),
    ("doc/architecture.md", "queues |\n", "queues |\n| spool | os | files |\n", "no folder lib/spool"),
    ("lib/spool/spool.h", None, "", "lib/spool: not in the table"),
    ("lib/bell.h", None, "", "lib/bell.h: must be in a folder"),
    ("lib/os/deep/bell.h", None, "", "lib/os/deep/bell.h: must be lib/FOLDER/FILE"),
    ("lib/os/buffer.h", None, "", "lib/text/buffer.h: lib/os has a file of this name too"),
    ("lib/os/lock.c", None, "", "lib/os/lock.h is missing"),
    ("lib/os/lane_lock.c", None, "", "lib/os/lane_lock.h is missing"),
    ("lib/os/clock.h", "text/buffer", "lane/lane", "lib/os/clock.h:1: os may not include lane"),
    ("lib/os/clock.h", "text/buffer", "buffer", 'lib/os/clock.h:1: "buffer.h" must be'),
    ("lib/lane/lane.h", "os/clock", "os/clock_internal", "lib/lane/lane.h:1: os/clock_internal.h is private"),
    ("tools/status.c", None, '\n#include "lane/lane_internal.h"\n', "tools/status.c:2: lane/lane_internal.h is private"),
]


def write_tree(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)


def check_itself():
    """Checks that each fault is reported, and nothing else."""
    for path, old, new, expected in [("lib/lib.am", None, "", None), *FAULTS]:
        with tempfile.TemporaryDirectory() as root:
            assert old is None or old in VALID_TREE[path], (path, old)
            write_tree(root, {**VALID_TREE, path: new if old is None else VALID_TREE[path].replace(old, new, 1)})
            problems = check(root)
            if not (len(problems) == 1 and expected in problems[0] if expected else not problems):
                yield f'tests/lint/includes.py: {path} with {new!r}: expected "{expected}", reported {problems}'


def main():
    problems = [*check_itself(), *check(".")]
    print(f"includes: {len(problems)} problems")
    sys.exit("\n".join(problems) if problems else 0)


main()
