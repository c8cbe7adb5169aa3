"""The pages of `weir serve` in a real browser, with values from real programs."""

import gzip
import os
import zipfile

from browser import Browser
from harness import main, wait_for
from served import Served
from sourced import case

HOSTILE = "<img src=x onerror=\"window.harmed=1\"><script>window.harmed=1</script>"
_shared = {}


def browser():
    """One for all cases: its start is what takes long."""
    if not _shared:
        _shared["browser"] = Browser()
    _shared["browser"].size(1280, 900)
    _shared["browser"].prefer(prefers_color_scheme="light", prefers_reduced_motion="no-preference")
    return _shared["browser"]


def assert_clean(page, server, expected=()):
    """No errors in the console, and no request to another host."""
    bad = [line for line in page.console() if not any(word in line for word in expected)]
    assert not bad, bad
    elsewhere = [address for address in page.addresses() if not address.startswith((server.base + "/", "data:", "about:", "chrome:"))]
    assert not elsewhere, elsewhere
    assert not page.script("return window.harmed"), "markup from outside was run"


def add_requests(add, count=20):
    for i in range(count):
        for route in ("/", "/search"):
            add({"route": route}, request__success=1, request__duration__ms=10 + i)
    add({"route": "/"}, request__failure=1)
    add(sessions=42)


@case
def files_are_sent_with_their_type_and_a_policy_and_once(folder):
    server = Served(folder)
    known = {"Authorization": "Bearer " + server.token}
    for path, kind in (("/", "text/html"), ("/pages/app.js", "text/javascript"), ("/pages/style.css", "text/css"), ("/pages/icon.svg", "image/svg+xml"),
                       ("/pages/chart.js", "text/javascript")):
        status, headers, plain = server.ask(path, **known)
        assert status == 200 and headers["Content-Type"].startswith(kind) and not headers["Content-Encoding"], (path, headers)
        assert headers.get_all("Content-Security-Policy") and "unsafe" not in headers["Content-Security-Policy"], headers
        for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert rule in headers["Content-Security-Policy"], headers
        _, more, packed = server.ask(path, Accept_Encoding="gzip", **known)
        assert more["Content-Encoding"] == "gzip" and gzip.decompress(packed) == plain and len(packed) < len(plain) + 100, path
        status, _, body = server.ask(path, If_None_Match=headers["ETag"], **known)
        assert (status, body) == (304, b"") and server.ask(path, If_None_Match='W/"other"', **known)[0] == 200
        assert server.ask(path)[0] == 401, "without a session"
    page = server.ask("/", **known)[2]
    assert b"<script>" not in page and b"style=" not in page and b"://" not in page
    for path in ("/pages/none.js", "/pages/", "/pages/%2e%2e/app.js"):
        assert server.ask(path, **known)[0] == 404, path
    assert server.ask("/", "POST", "", **known)[0] == 405
    server.end()


@case
def without_values_the_command_to_paste_is_shown(folder):
    server, page = Served(folder), browser()
    server.open(page)
    page.await_text(".notice h2", "No values yet")
    page.await_text(".command code", "WEIR_CONFIG='{\"groups\":{\"*\":\"forward\"}}' ./your_program")
    page.click(".command button", "Copy")
    wait_for(lambda: page.texts(".command button") == ["Copied"] or page.script("return getSelection().toString()").startswith("WEIR_CONFIG"),
             "the command to be copied or selected")
    page.click("#bar nav a", "Runs")
    page.await_text(".notice h2", "No runs yet")
    assert_clean(page, server)
    server.end()


@case
def the_overview_says_what_is_delivered_and_live_values_move(folder):
    server, page = Served(folder), browser()
    add = server.sender("shop")
    add_requests(add)
    server.open(page)
    page.await_text(".verdict", "Nothing is lost: ")
    page.await_text(".card h3", "shop")
    page.click(".card h3 a", "shop")
    page.await_address("#/group/shop")
    page.await_text(".timed-title", "request")
    page.await_text(".panel .now", "42")
    titles = page.texts(".panel h3")
    assert titles == ["Rate", "Errors", "Duration", "sessions"], titles
    page.await_text(".panel .now", "of calls")
    value = [40]

    def is_moved():
        value[0] += 1
        add(sessions=value[0] + 1000)
        return any(text.startswith("1.") and text.endswith(" k") for text in page.texts(".panel .now"))
    wait_for(is_moved, "the value that is shown to move")
    wait_for(lambda: page.script("return [...document.querySelectorAll('canvas')].every((one) => one.getAttribute('aria-label').includes('latest'))"),
             "the charts to be described")
    server.settle()
    page.click("#bar nav a", "Overview")
    stats = server.status()["handlers"][0]
    page.await_text(".verdict", f"{stats['offered'] + stats['recovered']:,} added = {stats['delivered']:,} delivered")
    page.click(".details summary", "Senders")
    page.await_text(".details table", "forward")
    assert_clean(page, server)
    server.end()


HOLD_RATE = """const fetch = window.fetch, held = new Promise((resolve) => { window.release = resolve; });
window.fetch = async (url, options) => {
    if (String(url).includes("/range?") && document.querySelector(".panel")?.panel?.ids().join(",") === new URL(url, location).searchParams.get("series"))
        await held;
    return fetch(url, options);
};"""
PANEL = "const panel = [...document.querySelectorAll('.panel')].find((one) => one.querySelector('h3').innerText === arguments[0]).panel; return "


@case
def the_share_of_errors_is_shown_when_the_successes_are_known(folder):
    server, page = Served(folder), browser()
    add = server.sender("shop")
    add_requests(add)
    server.settle()
    server.open(page)
    page.await_text(".card h3", "shop")
    page.script(HOLD_RATE)
    page.click(".card h3 a", "shop")
    page.await_text(".timed-title", "request")
    wait_for(lambda: page.script(PANEL + "panel.shown !== null", "Errors"), "the errors to be loaded")
    assert page.script(PANEL + "panel.shown === null && panel.loading !== null", "Rate"), "the rate is loaded"
    assert not any("of calls" in text for text in page.texts(".panel .now")), page.texts(".panel .now")
    page.script("window.release()")
    page.await_text(".panel .now", "2.44 % of calls")  # 1 of 41
    assert_clean(page, server)
    server.end()


@case
def a_search_finds_series_and_dragging_zooms_to_the_values(folder):
    server, page = Served(folder), browser()
    add = server.sender("shop")
    add_requests(add)
    add({"route": "/pay"}, "{\"commit\": \"3f2a91c\"}", latency=12.5)
    server.open(page, "#/series")
    page.await_text("table.series", "request.success")
    page.keys("/", "shop lat")
    page.await_address("q=shop+lat")
    wait_for(lambda: [text for text in page.texts("table.series tbody th")] == ["latency"], "the search to find one series")
    page.click("table.series a", "latency")
    page.await_address("#/metric/shop/latency")
    page.await_text(".events tbody", "12.5")
    page.await_text(".events tbody", "3f2a91c")
    page.await_text(".filters select", "/pay") if page.texts(".filters select") else page.click(".filters a", "All 1 series")
    page.await_text(".top tbody", "/pay")
    wait_for(lambda: page.script("const panel = document.querySelector('.panel').panel; return panel && panel.chart.chart !== null"), "the chart to be drawn")
    page.drag(".panel .plot", 0.4, 0.999)  # to the present, where the value is
    page.await_address("from=")
    assert "to=" in page.driver.current_url
    page.await_text(".live", "Paused")
    page.await_text(".events tbody", "12.5")
    page.keys("l")
    page.await_text(".live", "Live")
    assert_clean(page, server)
    server.end()


@case
def two_runs_are_compared_and_one_is_downloaded(folder):
    server, page = Served(folder), browser()
    for number, name in enumerate(("first", "second"), 1):
        assert server.add_run(name, loss=[2.0 * number - i * 0.25 for i in range(4)]) == number
    server.finish_run(1, stdout=["epoch 1", HOSTILE])
    server.open(page, "#/runs")
    page.await_text("table.runs", "second")
    for number in (1, 2):
        page.click(f"input[aria-label='Choose run {number} to compare']")
    page.click(".button.primary", "Compare 1 and 2")
    page.await_address("#/compare/1/2")
    page.await_text("table.compare", "loss")
    page.await_text("table.compare", "1.63")
    page.await_text("table.compare", "+123 %")
    page.click(".versus a", "first")
    page.await_address("#/run/1")
    page.await_text(".output", HOSTILE)
    page.await_text(".state", "finished")
    page.click("a.button", "Download")
    path = os.path.join(page.folder, "downloads", "metrics_first.zip")
    wait_for(lambda: os.path.exists(path), "the archive")
    with zipfile.ZipFile(path) as archive:
        assert "result_loss.json" in archive.namelist(), archive.namelist()
    assert_clean(page, server)
    server.end()


@case
def names_from_outside_are_text(folder):
    server, page = Served(folder), browser()
    add = server.sender(HOSTILE.replace(".", ""))
    add({HOSTILE: HOSTILE}, HOSTILE, **{HOSTILE: 1})
    server.finish_run(server.add_run("run", **{HOSTILE: [1, 2]}), stderr=[HOSTILE])
    server.open(page)
    page.await_text(".card h3", HOSTILE)
    page.click(".card > header a")
    page.await_text(".panel h3", HOSTILE)
    page.click(".panel h3 a")
    page.await_text(".events tbody", HOSTILE)
    page.click("#bar nav a", "Series")
    page.await_text("table.series", HOSTILE)
    page.click("#bar nav a", "Runs")
    page.click("table.runs a", "run")
    page.await_text(".panel h3", HOSTILE)
    page.await_text(".output", HOSTILE)
    assert page.script("return document.querySelectorAll('#view img, #view script').length") == 0
    assert_clean(page, server)
    server.end()


@case
def nothing_is_wider_than_a_phone_in_light_and_dark(folder):
    server, page = Served(folder), browser()
    add = server.sender("shop")
    add_requests(add, 3)
    add(**{"a_name_" + "x" * 200: 1})
    server.add_run("n" * 100, **{"m" * 200: [1]})
    page.size(360, 740)
    shades = {}
    for scheme in ("light", "dark"):
        page.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
        for path, selector in (("", ".card .now"), ("series", "table.series"), ("group/shop", ".panel .now"), ("metric/shop/request.duration.ms", ".events tbody td"),
                               ("runs", "table.runs"), ("run/1", "h1")):
            server.open(page, f"#/{path}")
            page.await_text(selector, "")
            page.assert_no_overflow()
        shades[scheme] = page.script("return getComputedStyle(document.body).backgroundColor")
        assert page.script("return getComputedStyle(document.querySelector('.live .dot')).animationName") == "none"
    assert shades["light"] != shades["dark"], shades
    page.click("button[aria-label='Light theme']")
    wait_for(lambda: page.script("return getComputedStyle(document.body).backgroundColor") == shades["light"], "the other theme")
    page.script("localStorage.clear()")
    assert_clean(page, server)
    server.end()


@case
def the_keyboard_leads_everywhere(folder):
    server, page = Served(folder), browser()
    add_requests(server.sender("shop"), 3)
    server.open(page)
    page.await_text(".card h3", "shop")
    page.keys("?")
    page.await_text("dialog.help", "Keyboard")
    page.keys("\ue00c")  # Esc
    wait_for(lambda: not page.texts("dialog.help"), "the help to close")
    page.keys("\ue015", "\ue007")  # down, Enter
    page.await_address("#/group/shop")
    page.await_text(".timed-title", "request")
    page.keys("gr")
    page.await_address("#/runs")
    page.keys("go")
    page.await_text(".card h3", "shop")
    page.keys("/")
    page.await_address("#/series")
    wait_for(lambda: page.all("#view input[type=search]"), "the search")
    page.keys("/")
    wait_for(lambda: page.script("return document.activeElement.type") == "search", "the search to have the focus")
    page.keys("\ue00c")
    wait_for(lambda: page.script("return document.activeElement === document.body"), "the search to lose the focus")
    page.keys("u")
    page.await_text("#bar .tools", "UTC")
    page.keys("u")
    page.keys("\ue012")  # left: earlier
    page.await_address("from=")
    assert_clean(page, server)
    server.end()


@case
def a_server_that_has_gone_is_named_until_it_is_back(folder):
    server, page = Served(folder), browser()
    add_requests(server.sender("shop"), 3)
    server.open(page)
    page.await_text(".card h3", "shop")
    server.end()
    page.await_text(".banner", "The server does not respond")
    page.await_text(".live", "Offline")
    server.begin()
    page.click(".banner button", "Try now")
    wait_for(lambda: not page.texts(".banner"), "the strip to go")
    page.await_text(".card h3", "shop")
    assert_clean(page, server, ["ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY"])
    server.end()


if __name__ == "__main__":
    main()
