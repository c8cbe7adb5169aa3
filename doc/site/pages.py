"""Generates HTML pages from the guides (Markdown), the manual pages (mdoc) and the files that they link to:
python3 pages.py ROOT OUTPUT STAGE.

New guides, manual pages and handlers are found and added to the navigation automatically. Doxygen generates the reference later; its
header and footer, with the same navigation, are written to STAGE."""

import glob
import html
import os
import re
import subprocess
import sys

ROOT, OUTPUT, STAGE = sys.argv[1:]

FIRST = ["README.md", "doc/first-steps.md", "doc/config.md"]  # the others follow, sorted by name
INTERNALS = {"doc/architecture.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md"}
HEADERS = ["weir.h", "handler.h", "source.h", "host.h", "options.h", "types.h", "version.h"]

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{up}style.css">
</head>
<body>
{navigation}
<main>
"""
END = "</main>\n</body>\n</html>\n"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def find(*patterns):
    return sorted(os.path.relpath(path, ROOT) for pattern in patterns for path in glob.glob(os.path.join(ROOT, pattern)))


def convert(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        sys.exit(f"{' '.join(command)}: {done.stderr or done.returncode}")
    return done.stdout


# ---- Sources and navigation -----------------------------------------------------------------------------


def name_of(path):
    """The name of the page for a file of the tree."""
    if path == "README.md":
        return "index.html"
    folder, name = os.path.split(path)
    if folder == "include/weir":
        return "api/" + re.sub(r"\.h(\.in)?$", "_8h.html", name)
    if folder == "doc" and re.search(r"\.[1-9]$", name):
        return name + ".html"
    if name == "README.md":
        return folder.replace("/", "-") + ".html"
    if name.endswith(".md"):
        return name[:-3].lower() + ".html"
    return "file-" + path.replace("/", "-") + ".html"


def title_of(path):
    """The heading in the first line."""
    return read(path).split("\n", 1)[0].lstrip("# ")


def manual_title(path):
    return re.sub(r"(.*/)?(.*)\.(\d)$", r"\2(\3)", path)


TEXTS = find("*.md", "doc/*.md", "*/README.md", "plugins/*/README.md")
MANUALS = find("doc/weir*.[1-9]")
MANUALS = [path for path in MANUALS if not read(path).startswith(".so ")]


def sections():
    """The navigation: a list of (heading, [(title, page), ...])."""
    handlers = [path for path in TEXTS if path.startswith("plugins/")]
    guides = FIRST + [path for path in TEXTS if path not in FIRST and path not in INTERNALS and path not in handlers]
    internals = [path for path in TEXTS if path in INTERNALS]
    titled = lambda paths: [("Overview" if path == "README.md" else title_of(path), name_of(path)) for path in paths]
    return [("Guides", titled(guides)),
            ("Manual", [(manual_title(path), name_of(path)) for path in sorted(MANUALS, key=lambda p: (p[-1], p))]),
            ("Reference", [(f"<weir/{name}>", name_of("include/weir/" + name)) for name in HEADERS]),
            ("Handlers", titled(handlers)),
            ("Internals", titled(internals))]


def navigation(current="", up=""):
    lines = ["<nav>", f'<a class="name" href="{up}index.html">weir</a>']
    for heading, entries in sections():
        lines.append(f"<h2>{heading}</h2>\n<ul>")
        for title, page in entries:
            here = ' aria-current="page"' if page == current else ""
            lines.append(f'<li><a href="{up}{page}"{here}>{html.escape(title)}</a></li>')
        lines.append("</ul>")
    return "\n".join(lines + ["</nav>"])


def write_page(name, title, body):
    write(OUTPUT, name, PAGE.format(title=html.escape(title), up="", navigation=navigation(name)) + body + END)


# ---- Markdown -------------------------------------------------------------------------------------------

linked = []  # linked files and folders that are neither guides nor manual pages


def page_of(path):
    """The page for a path of the tree. Other files and folders get a page because they are linked."""
    page = name_of(path)
    if path not in TEXTS and path not in MANUALS and not page.startswith("api/") and path not in linked:
        if not os.path.exists(os.path.join(ROOT, path)):
            sys.exit(f"{path}: linked, but does not exist")
        linked.append(path)
    return page


def slug(heading):
    """The anchor of a heading."""
    text = html.unescape(re.sub(r"<[^>]*>", "", heading))
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def convert_links(text, path):
    def replace(found):
        link = html.unescape(found.group(1))
        if re.match(r"[a-z]+:|#", link):
            return found.group()
        target, _, anchor = link.partition("#")
        page = page_of(os.path.normpath(os.path.join(os.path.dirname(path), target)))
        return f'href="{page}{"#" + anchor if anchor else ""}"'
    return re.sub(r'href="([^"]*)"', replace, text)


def write_guide(path):
    body = convert("cmark-gfm", "--extension", "table", os.path.join(ROOT, path))
    body = re.sub(r"<h([1-6])>(.*?)</h\1>", lambda h: f'<h{h[1]} id="{slug(h[2])}">{h[2]}</h{h[1]}>', body)
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    write_page(name_of(path), "weir: " + title_of(path), convert_links(body, path))


# ---- Manual pages ---------------------------------------------------------------------------------------


def write_manual(path):
    """References to weir's own manual pages become links; functions link to weir(3)."""
    body = convert("mandoc", "-T", "html", "-I", "os=weir", "-O", "fragment,man=%N.%S", os.path.join(ROOT, path))
    pages = {os.path.basename(manual): name_of(manual) for manual in MANUALS}

    def replace(found):
        name = found.group(1)
        page = pages.get(name) or (pages["weir.3"] if re.match(r"(weir|WEIR)_\w+\.3$", name) else None)
        return f'<a class="Xr" href="{page}">{found.group(2)}</a>' if page else found.group(2)
    body = re.sub(r'<a class="Xr" href="([^"]*)">(.*?)</a>', replace, body, flags=re.S)
    write_page(name_of(path), manual_title(path), body)


# ---- Files ----------------------------------------------------------------------------------------------


def write_file(path):
    write_page(name_of(path), path, f"<h1>{html.escape(path)}</h1>\n<pre><code>{html.escape(read(path))}</code></pre>\n")


def is_text(name):
    """Excludes build results: they have no dot in the name, or one of these suffixes."""
    return name == "Makefile" or ("." in name.lstrip(".") and not name.endswith((".o", ".lo", ".la", ".am")))


def write_folder(path):
    """Lists the files in the folder and its subfolders."""
    found = []
    for place, folders, names in os.walk(os.path.join(ROOT, path)):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "build")))
        found += [os.path.relpath(os.path.join(place, name), ROOT) for name in sorted(names) if is_text(name)]
    items = "".join(f'<li><a href="{page_of(name)}">{html.escape(os.path.relpath(name, path))}</a></li>\n' for name in found)
    write_page(name_of(path), path, f"<h1>{html.escape(path)}</h1>\n<ul>\n{items}</ul>\n")


def main():
    for path in TEXTS:
        write_guide(path)
    for path in MANUALS:
        write_manual(path)
    for path in linked:  # write_folder appends to it
        (write_folder if os.path.isdir(os.path.join(ROOT, path)) else write_file)(path)
    # Doxygen closes the <div> itself
    header = PAGE.format(title="weir: $title", up="../", navigation=navigation(up="../")) + '<div id="top">\n'
    write(STAGE, "header.html", header)
    write(STAGE, "footer.html", END)


main()
