"""A real browser for the tests of pages: Chromium without a window, driven by selenium, in a profile of its own."""

import atexit
import json
import os
import shutil
import sys
import tempfile

from harness import Skip, wait_for

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--force-color-profile=srgb"]


class Browser:
    """open(): an address; the other functions wait for what they are asked for."""

    def __init__(self, width=1280, height=900):
        for path in (CHROMIUM, DRIVER):
            if not os.path.exists(path):
                raise Skip(f"{path} is missing (Debian: chromium chromium-driver)")
        sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's package is, whatever Python runs this
        try:
            from selenium import webdriver
            from selenium.webdriver.chrome.service import Service
        except ImportError as error:
            raise Skip(f"selenium cannot be used: {error} (Debian: python3-selenium)") from None
        self.folder = tempfile.mkdtemp(prefix="weir-browser-")
        self.driver = None
        atexit.register(self.end)
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for option in [*OPTIONS, "--user-data-dir=" + self.folder, f"--window-size={width},{height}"]:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": os.path.join(self.folder, "downloads")})
        options.page_load_strategy = "none"  # pages with live values are never complete
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.driver.set_script_timeout(240)
        self.size(width, height)

    def end(self):
        if self.driver:
            self.driver.quit()
        self.driver = None
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- What it looks like

    def size(self, width, height):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, **features):
        """prefers_color_scheme="dark" """
        self.command("Emulation.setEmulatedMedia", features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def picture(self):
        return self.driver.get_screenshot_as_png()

    # ---- Pages

    def open(self, address):
        self.driver.get("about:blank")
        self.driver.get(address)

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def texts(self, selector):
        """Of the elements that are shown; the page may replace them meanwhile."""
        return self.script("return [...document.querySelectorAll(arguments[0])].filter((one) => one.getClientRects().length)"
                           ".map((one) => one.innerText)", selector)

    def await_text(self, selector, text):
        wait_for(lambda: any(text in found for found in self.texts(selector)), f"\"{text}\" in {selector}; there is: "
                 f"{self.texts(selector)} {self.console()}")

    def await_address(self, part):
        wait_for(lambda: part in self.driver.current_url, f"an address with {part}")

    def click(self, selector, text=""):
        wait_for(lambda: self.script(
            "const found = [...document.querySelectorAll(arguments[0])].find((one) => one.getClientRects().length && one.innerText.includes(arguments[1]));"
            "if (!found) return false; found.scrollIntoView({block: 'center'}); found.click(); return true", selector, text),
                 f"{selector} with \"{text}\"")

    def keys(self, *keys):
        """To what has the focus, as a keyboard does: an element that is asked for first may be gone when they come."""
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    def drag(self, selector, first, last):
        """With the mouse, from one part of the element's width to another."""
        left, top, width, height = self.script("const box = document.querySelector(arguments[0]); box.scrollIntoView({block: 'center'});"
                                               "const at = box.getBoundingClientRect(); return [at.left, at.top, at.width, at.height]", selector)
        y = top + height / 2
        for kind, part in (("mouseMoved", first), ("mousePressed", first), ("mouseMoved", (first + last) / 2), ("mouseMoved", last), ("mouseReleased", last)):
            pressed = {} if kind == "mouseMoved" and part == first else {"button": "left", "buttons": 1, "clickCount": 1}
            self.command("Input.dispatchMouseEvent", type=kind, x=left + width * part, y=y, **pressed)

    # ---- What must not be

    def console(self):
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]

    def addresses(self):
        """Of all requests since the last call."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                found.append(message["params"].get("request", message["params"])["url"])
        return found

    def assert_no_overflow(self):
        found = self.script("const wide = document.documentElement.clientWidth; return document.documentElement.scrollWidth <= wide ? [] :"
                            "[...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > wide + 1 && !one.parentElement.closest('.scroll'))"
                            ".map((one) => one.outerHTML.slice(0, 120)).slice(0, 5)")
        assert not found, found
