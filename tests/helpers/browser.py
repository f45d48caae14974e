"""Drives the demo's page in a real Chromium."""

import contextlib
import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VIEWS = {
    "desktop": {"viewport": {"width": 1400, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
_WAIT = 60_000  # ms, for a machine that does other things too
_SHOW = """link => {
  history.pushState(null, "", link);
  dispatchEvent(new PopStateEvent("popstate"));
}"""
_STILL = """
() => document.getAnimations().filter((one) => one.playState === "running").length === 0
  && [...document.images].every((one) => one.complete || one.loading === "lazy")
"""


def find_chromium():
    """The path of an installed Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextlib.contextmanager
def chromium():
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    # A sandbox in a container that runs as root is refused by Chromium itself.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        yield browser
        browser.close()


class Visit:
    """One visitor: a page, and everything that it complained about or asked others for.

    Args:
        browser: of `chromium`.
        address: of the demo.
        view: a name of `VIEWS`.
        **options: of the browser's context.
    """

    def __init__(self, browser, address, view="desktop", **options):
        self.problems, self.requests, self.address = [], [], address
        # The page's policy forbids scripts that are strings, as those of a driver are.
        options = {"color_scheme": "light", "bypass_csp": True} | VIEWS[view] | options
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(_WAIT)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.problems.append("a script ran"))
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def load(self, query=""):
        """Loads the page by the link to a view, as a new visitor does."""
        self.page.goto("about:blank")
        self.problems.clear()  # what the last test left behind has ended
        self.page.goto(f"{self.address}/{query}")
        self.drawn()
        return self.page

    def open(self, query=""):
        """Shows a view by its link in the loaded page, as the browser's history does."""
        if not self.page.url.startswith(self.address):
            return self.load(query)
        self.problems.clear()
        self.page.evaluate(_SHOW, f"./{query}")
        self.drawn()
        return self.page

    def drawn(self):
        """Waits until the page has drawn what its address says."""
        self.page.wait_for_selector("#main:not([aria-busy]) > *", state="attached")

    def still(self):
        """Waits until nothing moves, fades or loads any more."""
        self.page.wait_for_function(_STILL)

    def search(self, text):
        """Asks by the keyboard and waits for the answer."""
        self.page.locator("#question").fill(text)
        self.page.locator("#question").press("Enter")
        self.page.wait_for_selector("#main[aria-busy]", state="detached")
        self.page.wait_for_selector(".verdict h1, .error")

    def _console(self, message):
        if message.type == "error":
            self.problems.append(f"console: {message.text}")

    def _request(self, request):
        self.requests.append(request.url)
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.problems.append(f"asked for {request.url}")

    def _response(self, response):
        if response.status >= 400:
            self.problems.append(f"{response.status} for {response.url}")
