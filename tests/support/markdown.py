"""Parses the Markdown that the tests need: tables, fenced snippets, links."""

import os
import re


class Text:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.text = file.read()

    def snippets(self, *languages):
        """Fenced blocks in one of these languages."""
        return [body for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", self.text, re.M | re.S) if language in languages]

    def tables(self, first):
        """The tables whose first column has this heading; each is a list of dictionaries."""
        for block in re.findall(r"(?:^\|.*\n)+", self.text, re.M):
            head, _, *lines = [cells_of(line) for line in block.splitlines()]
            if head[0] == first:
                assert all(len(cells) == len(head) for cells in lines), f"{self.path}: a row of another length: {lines}"
                yield [dict(zip(head, cells)) for cells in lines]

    def rows(self, first):
        """Options as tables describe them: (name, type, default, allowed)."""
        for table in self.tables(first):
            for row in table:
                yield spans(row[first])[0], row["type"], default_of(row["default"]), "|".join(spans(row["allowed"]))

    def prose(self):
        """Everything but fenced blocks."""
        return re.sub(r"^```.*?^```$", "", self.text, flags=re.M | re.S)

    def links(self):
        """The targets of links within the tree."""
        targets = re.findall(r"\]\(([^)\s]+)\)", self.prose())
        return [target for target in targets if not re.match(r"[a-z]+:", target)]

    def anchors(self):
        """The headings, as anchors."""
        heads = re.findall(r"^#+ (.*)$", self.prose(), re.M)
        return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def cells_of(line):
    r"""The cells of a table row. A bar in a cell is written \|."""
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def spans(cell):
    """The texts in backquotes."""
    return re.findall(r"`([^`]*)`", cell)


def default_of(cell):
    """`VALUE`, required, or none."""
    return spans(cell)[0] if spans(cell) else {"required": "required", "none": None}[cell]


def find_all(source):
    """All Markdown files of a source tree, without build folders."""
    for root, folders, names in os.walk(source):
        folders[:] = [name for name in folders if not name.startswith((".", "build", "weir-"))]
        for name in sorted(names):
            if name.endswith(".md"):
                yield Text(os.path.join(root, name))
