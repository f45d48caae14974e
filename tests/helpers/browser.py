"""Drives the demo's page in a real Chromium."""

import contextlib
import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VIEWS = {
    "light": {"viewport": {"width": 1200, "height": 860}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1200, "height": 860}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "light",
        "is_mobile": True,
        "has_touch": True,
    },
}
_CONTENT = "selector => document.querySelector(selector + ' [aria-live]')?.innerHTML ?? null"
_WAIT = 30_000  # ms, for a machine that does other things too


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
    """

    def __init__(self, browser, address, view="light"):
        self.problems, self.address = [], address
        self.context = browser.new_context(**VIEWS[view])
        self.page = self.context.new_page()
        self.page.set_default_timeout(_WAIT)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def open_tab(self, name):
        """Opens a tab, through the menu of those that have no room."""
        tab = self.page.get_by_role("tab", name=name, exact=True).first
        if not tab.is_visible():
            self.page.locator(".overflow-menu > button").click()
            tab = self.page.locator(".overflow-dropdown button", has_text=name)
        tab.click()

    def search_words(self, text):
        """Asks for a caption by the keyboard and waits for what comes."""
        box = self.page.locator("#halo-caption textarea, #halo-caption input").first
        before = self.content("#halo-answer")
        box.fill(text)
        box.press("Enter")
        self.changed("#halo-answer", before)

    def press(self, selector, within="#halo-answer"):
        """Presses a button of an answer and waits for the next one."""
        before = self.content(within)
        self.page.locator(selector).first.click()
        self.changed(within, before)

    def choose(self, selector, place):
        """Chooses an option of a dropdown by its place."""
        self.page.locator(f"{selector} input").click()
        self.page.get_by_role("option").nth(place).click()

    def search_image(self, place=0):
        """Takes an image of the gallery, which finds its captions."""
        self.page.locator("#halo-sample button").nth(place).click()
        self.page.wait_for_selector("#halo-captions .halo-verdict")

    def open_map(self):
        """Opens the map and waits until it is drawn."""
        self.open_tab("Map")
        self.page.wait_for_selector("#halo-map .js-plotly-plot .point")

    def content(self, selector):
        """What an answer says, without the veil that Gradio draws over it while it waits."""
        return self.page.evaluate(_CONTENT, selector)

    def changed(self, selector, before):
        """Waits until an answer says something else than before."""
        self.page.wait_for_function(
            f"([selector, before]) => ({_CONTENT})(selector) !== before", arg=[selector, before]
        )

    def _console(self, message):
        if message.type == "error":
            self.problems.append(f"console: {message.text}")

    def _request(self, request):
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.problems.append(f"asked for {request.url}")

    def _response(self, response):
        if response.status >= 400:
            self.problems.append(f"{response.status} for {response.url}")
