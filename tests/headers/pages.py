"""The HTML pages: they are complete, and broken links are detected."""

import glob
import os
import re
import shutil
import subprocess
import sys

from harness import SOURCE, Skip, case, main

SITE = os.path.join(SOURCE, "doc", "site")


def need_tools():
    for tool in ("doxygen", "cmark-gfm", "mandoc"):
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed")


def make(folder, *arguments):
    """Runs make without the variables of the make that runs the tests."""
    env = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return subprocess.run(["make", "-s", *arguments, "html"], cwd=folder, env=env, capture_output=True, text=True)


def make_pages(folder):
    """Runs `make -C doc html`, with the output outside the source tree."""
    need_tools()
    done = make(folder, "-f", os.path.join(SOURCE, "doc", "Makefile"))
    assert done.returncode == 0 and done.stderr == "", done
    assert re.search(r"^\d+ pages, \d+ links$", done.stdout, re.M), done.stdout
    return os.path.join(folder, "html")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def check_links(folder):
    return subprocess.run([sys.executable, "-B", os.path.join(SITE, "links.py"), folder], capture_output=True, text=True)


@case
def every_guide_manual_page_and_declaration_is_in_the_pages(folder):
    html = make_pages(folder)
    assert set(os.listdir(folder)) == {"html"}, "no other file is left"
    index = read(html, "index.html")
    for source in glob.glob(os.path.join(SOURCE, "doc", "*.md")) + glob.glob(os.path.join(SOURCE, "doc", "weir*.[1-9]")):
        page = re.sub(r"\.md$", "", os.path.basename(source)) + ".html"
        assert os.path.basename(source).startswith("weir_") or f'href="{page}"' in index, page
    for plugin in glob.glob(os.path.join(SOURCE, "plugins", "*", "README.md")):
        assert f'href="plugins-{os.path.basename(os.path.dirname(plugin))}.html"' in index, plugin
    reference = "".join(read(path) for path in glob.glob(os.path.join(html, "api", "*.html")))
    for header, least in (("weir.h", 20), ("handler.h", 20), ("options.h", 10), ("host.h", 2)):
        text = read(SOURCE, "include", "weir", header)
        names = set(re.findall(r"WEIR_API [^;(]*?(weir_\w+)\(|static inline [^;(]*?(weir_\w+)\(|^\} (weir_\w+);|^    (WEIR_\w+)(?: =.*?)?,",
                               text, re.M))
        assert len(names) >= least, (header, names)
        for name in (next(filter(None, found)) for found in names):
            assert re.search(rf"\b{name}\b", reference), f"{header}: {name}"


@case
def an_undocumented_declaration_is_detected(folder):
    need_tools()
    tree = os.path.join(folder, "tree")
    ignore = shutil.ignore_patterns("html*", "build*", ".git", "*.o", "lib", "tests", "autom4te.cache")
    shutil.copytree(SOURCE, tree, ignore=ignore, symlinks=True)
    header = os.path.join(tree, "include", "weir", "weir.h")
    with open(header, "w", encoding="utf-8") as file:
        file.write(read(SOURCE, "include", "weir", "weir.h").replace("WEIR_API int weir_reload(void);", "\nWEIR_API int weir_reload(void);"))
    done = make(os.path.join(tree, "doc"))
    assert done.returncode != 0 and "weir_reload" in done.stderr, done
    assert not os.path.exists(os.path.join(tree, "doc", "html")), "incomplete pages must not be left"


@case
def broken_links_are_detected(folder):
    pages = {"index.html": '<p id="top"><a href="other.html#here">x</a> <a href="https://example.org/">outside</a></p>',
             "other.html": '<p id="here"><a href="index.html#top">x</a></p>'}

    def check(**changed):
        for name, text in {**pages, **{name.replace("_", "."): text for name, text in changed.items()}}.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        return check_links(folder)
    good = check()
    assert good.returncode == 0 and good.stdout == "2 pages, 3 links\n", good
    for text, problem in (('<p id="here"><a href="missing.html">x</a></p>', "missing.html does not exist"),
                          ('<p id="here"><a href="index.html#missing">x</a></p>', "index.html#missing: no such anchor"),
                          ("<p>nothing</p>", "other.html#here: no such anchor"),
                          ('<p id="here"><img src="https://example.org/x.png"></p>', "is loaded from another site")):
        bad = check(other_html=text)
        assert bad.returncode != 0 and problem in bad.stderr, (problem, bad)
    bad = check(index_html='<p id="top">alone</p>')
    assert bad.returncode != 0 and "other.html: not linked from any page" in bad.stderr, bad


main()
