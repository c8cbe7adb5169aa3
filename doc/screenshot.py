"""Makes doc/collector.png, the picture of the collector's pages: `weir serve`, a program that sends values, a browser.

Run it at the top of the repository after `./dev build`: python3 doc/screenshot.py [FILE]"""

import math
import os
import random
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.getcwd(), "tests", "support"))

from browser import Browser  # noqa: E402 the path is set above
from harness import wait_for  # noqa: E402
from served import Served  # noqa: E402

ROUTES = {"/": 14, "/search": 7, "/checkout": 3, "/login": 1.6}
SECONDS = 300
WIDTH, HEIGHT = 1240, 640


def add_second(add, chance, at, age):
    """What a shop's server adds in a second: a wave of load, and for half a minute a slow database."""
    load, is_slow = 1 + 0.35 * math.sin(age / 45), 130 < age % 240 < 165
    for route, often in ROUTES.items():
        count = max(0, round(chance.gauss(often * load, math.sqrt(often) * 0.5)))
        failed = sum(chance.random() < (0.16 if is_slow and route == "/checkout" else 0.006) for _ in range(count))
        labels = {"route": route}
        for i in range(count):
            add(labels, time=at + i / max(count, 1), request__duration__ms=chance.lognormvariate(2.5 + 0.02 * often + (0.9 if is_slow else 0), 0.4))
        add(labels, time=at, request__success=count - failed)
        add(labels, time=at, request__failure=failed)
    add(time=at, sessions=round(160 + 60 * math.sin(age / 90) + chance.gauss(0, 2)))
    add(time=at, queue__bytes=max(0, chance.gauss(3e5 + (4e6 if is_slow else 0), 1e5)))
    for pool in range(2):
        add({"pool": f"p{pool}"}, time=at, pool__wait=max(0, chance.gauss(4 + (30 if is_slow else 0), 2)))


def feed(server, stop):
    """Adds the values of the time before, and goes on until it is stopped."""
    add, chance, start, age = server.sender("shop.web"), random.Random(4), time.time() - SECONDS - 20, 0
    while not stop.wait(0.2):
        while start + age < time.time() - 1:
            add_second(add, chance, start + age, age)
            age += 1


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join("doc", "collector.png")
    with tempfile.TemporaryDirectory(prefix="weir-picture-") as folder:
        server, stop = Served(folder), threading.Event()
        feeding = threading.Thread(target=feed, args=(server, stop))
        feeding.start()
        wait_for(lambda: server.delivered() > SECONDS * 10, "the values of the time before")
        page = Browser(WIDTH, HEIGHT)
        page.prefer(prefers_color_scheme="light")
        server.open(page, "#/group/shop.web")
        page.await_text(".timed-title", "request")
        wait_for(lambda: page.script("return [...document.querySelectorAll('.panel .now')].filter((one) => one.textContent).length >= 4"), "the charts")
        page.script("document.activeElement.blur()")
        picture = page.picture()
        page.end()
        stop.set()
        feeding.join()
        server.end()
    with open(path, "wb") as file:
        file.write(picture)
    print(f"{path}: {os.path.getsize(path)} bytes")


main()
