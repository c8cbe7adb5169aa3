"""Parses the mdoc(7) that the tests need: names, prototypes, list items, literal blocks."""

import re
import shlex

ESCAPES = {r"\e": "\\", r"\(dq": '"', r"\&": ""}


def unescape(text):
    return re.sub(r"\\(?:e|\(dq|&)", lambda found: ESCAPES[found.group()], text)


class Page:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self._lines = file.read().splitlines()

    def _walk(self):
        """Each line with its section and subsection."""
        section = subsection = ""
        for line in self._lines:
            if line.startswith(".Sh "):
                section, subsection = line[4:], ""
            elif line.startswith(".Ss "):
                subsection = line[4:]
            else:
                yield section, subsection, line

    def sections(self):
        return {section for section, _, _ in self._walk()}

    def subsections(self, section):
        return list(dict.fromkeys(below for at, below, _ in self._walk() if at == section and below))

    def macros(self, name, section=None, subsection=None):
        """The arguments of each call of this macro."""
        for at, below, line in self._walk():
            if (section in (None, at)) and (subsection in (None, below)) and re.match(rf"\.{name}( |$)", line):
                yield shlex.split(unescape(line[len(name) + 1:]))

    def names(self):
        return [arguments[0] for arguments in self.macros("Nm", "NAME")]

    def items(self, kind, section=None, subsection=None):
        """The arguments after `.It KIND`, for each such item."""
        return [arguments[1:] for arguments in self.macros("It", section, subsection) if arguments[:1] == [kind]]

    def prototypes(self):
        """C declarations, by name."""
        found, result, opened = {}, "", None
        for section, _, line in self._walk():
            if section != "SYNOPSIS" or not line.startswith("."):
                continue
            macro, *arguments = shlex.split(unescape(line[1:]))
            if macro == "Ft":
                result = " ".join(arguments)
            elif macro == "Fn":
                found[arguments[0]] = f"{result} {arguments[0]}({', '.join(arguments[1:])})"
            elif macro == "Fo":
                opened = (arguments[0], [])
            elif macro == "Fa":
                opened[1].append(" ".join(arguments))
            elif macro == "Fc":
                found[opened[0]] = f"{result} {opened[0]}({', '.join(opened[1])})"
        return found

    def literals(self, section=None):
        """The text of each literal block of a section."""
        block = None
        for at, _, line in self._walk():
            if line.startswith(".Bd -literal") and section in (None, at):
                block = []
            elif line == ".Ed" and block is not None:
                yield unescape("\n".join(block)) + "\n"
                block = None
            elif block is not None:
                block.append(line)

    def rows(self, section):
        """Options as `.It Cm NAME Pq "TYPE; default X; allowed Y"` describes them: (name, type, default, allowed)."""
        for name, *rest in self.items("Cm", section):
            kind, *facts = rest[1].split("; ")
            default, allowed = None, ""
            for fact in facts:
                if fact == "required":
                    default = "required"
                elif fact.startswith("default "):
                    default = fact[8:]
                elif fact.startswith("allowed "):
                    allowed = fact[8:].replace(", ", "|")
                else:
                    assert fact == "no default", f"{self.path}: {name}: {fact}"
            yield name, kind, default, allowed
