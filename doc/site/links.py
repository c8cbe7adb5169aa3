"""Checks all links within a folder of pages: python3 links.py FOLDER. Reports broken links, resources loaded from other sites, and pages
that no other page links to."""

import os
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

# loaded to display the page; all other references are links, which may be external
RESOURCES = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.resources = set(), [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            elif (tag, name) in RESOURCES:
                self.resources.append(value)
            elif name == "href":
                self.links.append(value)


def is_external(link):
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc)


def resolve(path, link):
    """(the target file of a link on a page, the anchor in it)"""
    parts = urlsplit(link)
    target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
    return target, unquote(parts.fragment)


def check(folder):
    pages = {}
    for place, _, names in os.walk(folder):
        pages.update({path: Page(path) for path in (os.path.join(place, name) for name in names) if path.endswith(".html")})
    problems, reached = [], {os.path.join(folder, "index.html")}
    for path, page in pages.items():
        problems += [f"{path}: {link} is loaded from another site" for link in page.resources if is_external(link)]
        for link in (link for link in page.links + page.resources if not is_external(link)):
            target, anchor = resolve(path, link)
            reached.add(target)
            if not os.path.isfile(target):
                problems.append(f"{path}: {link} does not exist")
            elif anchor and anchor not in pages[target].anchors:
                problems.append(f"{path}: {link}: no such anchor")
    problems += [f"{path}: not linked from any page" for path in sorted(set(pages) - reached)]
    return len(pages), sum(len(page.links) for page in pages.values()), problems


def main():
    pages, links, problems = check(os.path.normpath(sys.argv[1]))
    print(f"{pages} pages, {links} links")
    sys.exit("\n".join(problems) if problems else 0)


main()
