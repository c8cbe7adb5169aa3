"""Cleans up Doxygen's output: python3 reference.py FOLDER. Keeps only the pages of headers and structures, and deletes scripts and
images. Removes the duplicate row that Doxygen generates for a structure and its typedef. Headers are named as in #include."""

import fnmatch
import os
import re
import sys

KEPT = ("*_8h.html", "struct*.html")


def main():
    folder = sys.argv[1]
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if not any(fnmatch.fnmatch(name, pattern) for pattern in KEPT):
            os.remove(path)
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text = re.sub(r'(<tr class="memitem:">.*?</tr>\n)\1', r"\1", text)
        text = re.sub(r"(?<=<p><code>#include &lt;)(\w+\.h)(?=&gt;</code></p>)", r"weir/\1", text)
        text = re.sub(r'(?<=class="title">)(\w+\.h) File Reference', r"&lt;weir/\1&gt;", text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


main()
