"""Copies the public headers with their comments converted to Doxygen's syntax: python3 headers.py OUTPUT HEADER...

The headers themselves contain no markup. The position of a comment determines what it documents: the declaration that follows it
directly, or the one before it on its line; the first comment documents the file. Comments that stand alone between declarations are not
converted.
"""

import os
import re
import sys

COMMENT = re.compile(r"/\*(?!\*)(.*?)\*/", re.S)
DECLARATION = re.compile(r"WEIR_API [^;(]*?\b(weir_\w+)\(|#define (WEIR_\w+) [\w\"]")


NAMES = (r"\b(weir_\w+)\((?!\*)", r"^    (WEIR_\w+)(?: =.*?)?,", r"^#define (WEIR_\w+)[ (](?!__attribute__)")

names = set()  # valid targets of references


def is_heading(text):
    return text.strip("\n").lstrip(" ").startswith("----")


def escape(text):
    """Escapes characters that Doxygen would interpret as commands; names become references."""
    text = re.sub(r"([@\\<>#%])", r"\\\1", text)
    return re.sub(r"\b(?:weir|WEIR)_\w+\b(?!\*)", lambda found: ("#" if found.group() in names else "") + found.group(), text)


def indent_code(text):
    """Lines indented by four blanks or more are code or diagrams."""
    lines, inside = [], False
    for line in text.split("\n"):
        code = bool(re.match(r" \* {5,}\S", line))
        if code and not inside:
            lines.append(" * @verbatim")
        if inside and not code and line.strip(" *"):
            lines.append(" * @endverbatim")
        inside = code or (inside and not line.strip(" *"))
        lines.append(line if inside else escape(line))
    return "\n".join(lines)


def convert(text, name):
    """Converts each comment of a header according to its position."""
    first = True

    def replace(found):
        nonlocal first
        body, before, after = found.group(1), text[:found.start()], text[found.end():]
        if first:
            first = False
            return f"/** @file {name}\n *\n *{indent_code(body)}*/"
        if is_heading(body):
            return ""
        code = before.rpartition("\n")[2].strip()
        if re.fullmatch(r"struct \w+;", code):
            return found.group()
        if code:
            return "/**<" + escape(body) + "*/"
        if re.match(r"\n[ \t]*\S", after):
            return "/**" + indent_code(body) + "*/"
        return found.group()

    return COMMENT.sub(replace, text)


def share(text):
    """Adjacent functions and macros share the comment of the first one."""
    lines, first = [], None
    for line in text.split("\n"):
        found = DECLARATION.match(line)
        if found and first and lines[-1]:
            lines.append(f"/** @copydoc {first} */")
        elif found:
            first = found.group(1) or found.group(2)
        elif not line.startswith(" "):
            first = None
        lines.append(line)
    return "\n".join(lines)


def main():
    output, *paths = sys.argv[1:]
    os.makedirs(output, exist_ok=True)
    for path in paths:
        with open(path, encoding="utf-8") as file:
            code = COMMENT.sub("", file.read())
        names.update(name for pattern in NAMES for name in re.findall(pattern, code, re.M))
    for path in paths:
        name = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            text = convert(share(file.read()), name)
        with open(os.path.join(output, name), "w", encoding="utf-8") as file:
            file.write(text)


main()
