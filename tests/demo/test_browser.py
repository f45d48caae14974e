"""Every panel in a real Chromium: what it shows, and that nothing else is asked for."""

import contextlib
import functools

import pytest

from browser import Visit, chromium, find_chromium

pytest.importorskip("playwright", reason="playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_chromium() is None, reason="no chromium: `apt-get install chromium` as .ci/run does"
    ),
]


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def visited(browser, served):
    """A function from a view to a page that was just opened.

    Each view is one visitor who comes again: what the browser has kept is not compiled anew, which
    is three quarters of opening the page.
    """
    with contextlib.ExitStack() as stack:

        @functools.cache
        def first(view):
            visit = stack.enter_context(Visit(browser, served[0], view))
            visit.page.on("dialog", lambda dialog: visit.problems.append("a script ran"))
            return visit

        def again(view="light", query=""):
            visit = first(view)
            visit.page.goto("about:blank")
            visit.problems.clear()  # what the last test left behind has ended
            visit.page.goto(served[0] + query)
            visit.page.wait_for_selector("#halo-answer .halo-verdict")
            return visit

        yield again


@pytest.fixture
def visit(visited):
    visit = visited("light")
    yield visit
    _check_page(visit)


def _check_page(visit):
    assert visit.problems == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert visit.page.evaluate(wide) <= 0, "the page scrolls sideways"
    silent = "[...document.images].filter(i => !i.hidden && !i.hasAttribute('alt')).length"
    assert visit.page.evaluate(silent) == 0, "an image without an alternative text"


def test_every_panel_fits_a_phone(visited):
    visit = visited("phone")
    _check_page(visit)
    visit.search_words("a small red bird with a black crown")
    _check_page(visit)
    visit.open_tab("Picture → words")
    visit.search_image(1)
    _check_page(visit)
    visit.open_map()
    _check_page(visit)


def test_it_opens_on_an_answer_beside_none(visit):
    page = visit.page
    sure, declined = page.locator("#halo-answer article").all()[:2]
    assert "such first photos fit" in sure.locator(".halo-sentence").inner_text()
    assert sure.locator(".halo-fits").count() == 4
    assert declined.locator(".halo-fits").count() == 0
    assert sure.locator(".halo-right").count() >= 1
    assert "NOT UNDERSTOOD" in declined.inner_text().upper()
    assert declined.locator(".halo-refused .halo-results li").count() == 4
    assert page.locator("#halo-answer img").first.bounding_box()["y"] < 700
    visit.press('[data-key="e0"]')
    assert page.locator("#halo-answer img").first.bounding_box()["y"] < 700
    assert page.title().startswith("Halo Zoo")


def test_words(visit, served):
    page, service = visit.page, served[1]
    text = "a small red bird with a black crown"
    visit.search_words(text)
    found = service.find_images(text)
    reason = found["answer"]["reason"].replace(" %", "\xa0%")
    assert page.locator(".halo-sentence").inner_text() == reason
    shown = page.locator("#halo-answer figcaption p").all_inner_texts()
    assert shown == [result["name"] for result in found["answer"]["results"]]
    first = page.locator("#halo-answer .halo-results img").first
    assert first.get_attribute("alt").startswith("Result 1: ")
    assert first.evaluate("i => i.complete && i.naturalWidth === 256")
    # A word is left out and put back by pressing it, and the address says what was asked.
    page.locator('[data-word="2"]').click()
    page.wait_for_url("**/?q=a%20small%20bird%20with%20a%20black%20crown")
    assert page.locator('[data-word="2"]').get_attribute("aria-pressed") == "false"
    focused = page.evaluate("document.activeElement.dataset.word")
    assert focused == "2", "the focus is lost when a word is pressed"
    page.locator('[data-word="2"]').click()
    page.wait_for_url("**/?q=a%20small%20red%20bird%20with%20a%20black%20crown")
    assert page.locator(".halo-sentence").inner_text() == reason
    page.locator(".halo-why summary").click()
    assert "tr Σ = " in page.locator(".halo-why").inner_text()


def test_a_link_reproduces_the_question(visited, served):
    visit = visited(query="/?q=a+small+bird+with+a+black+crown")
    visit.page.wait_for_selector("#halo-answer .halo-answer")
    box = visit.page.locator("#halo-caption textarea, #halo-caption input").first
    assert box.input_value() == "a small bird with a black crown"
    expected = served[1].find_images("a small bird with a black crown")["answer"]["reason"]
    assert visit.page.locator(".halo-sentence").inner_text() == expected
    assert visit.problems == []


def test_an_image(visit, served):
    page = visit.page
    visit.open_tab("Picture → words")
    visit.search_image(1)
    assert page.locator("#halo-captions .halo-sentence").inner_text().endswith(".")
    assert 1 <= page.locator("#halo-captions .halo-results li").count() <= 8
    # A copy: the gallery's own folder is not served.
    assert served[2] in page.locator("#halo-image img").get_attribute("src")


def test_the_map(visit):
    page = visit.page
    visit.open_map()
    assert page.locator("#halo-map .scatterlayer .trace").count() > 3
    page.locator("#halo-map .point").first.hover(force=True)
    page.wait_for_selector("#halo-card img:not([hidden])")
    pointed = page.locator("#halo-card p").inner_text()
    assert "less certain than" in pointed or "more certain" in pointed
    visit.choose("#halo-items", 3)
    page.wait_for_function(
        "t => document.querySelector('#halo-card p').innerText !== t", arg=pointed
    )
    assert page.locator("#halo-card img").get_attribute("alt")
    page.get_by_label("Place a text of your own").fill("a blue bird")
    page.get_by_label("Place a text of your own").press("Enter")
    page.wait_for_selector("#halo-map .legendtext:has-text('your text')")
    page.get_by_label("Captions too").check()
    page.get_by_role("button", name="Show others").click()
    page.wait_for_timeout(500)


@pytest.mark.parametrize("view", ["light", "dark"])
def test_axe_finds_nothing_serious(visited, view):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    visit = visited(view)
    found = {}

    def look(place):
        for one in axe.run(visit.page).response["violations"]:
            if one["impact"] in ("serious", "critical"):
                found[place, one["id"]] = [node["html"][:200] for node in one["nodes"]]

    look("opening")
    visit.search_words("a small red bird with a black crown")
    visit.page.locator(".halo-why summary").click()
    visit.page.get_by_role("button", name="Settings").click()
    look("answer")
    visit.open_tab("Picture → words")
    visit.search_image(1)
    look("image")
    visit.open_map()
    look("map")
    assert found == {}


def press_to(page, key, focused):
    """Presses a key until something is true of the element that has the focus."""
    for _ in range(12):
        page.keyboard.press(key)
        if page.evaluate(f"document.activeElement.{focused}"):
            return
    pytest.fail(f"{key} reaches nothing of which {focused}")


def test_by_the_keyboard_alone(visited):
    visit = visited()
    page, keys = visit.page, visit.page.keyboard
    press_to(page, "Tab", "closest('#halo-caption') !== null")
    before = visit.content("#halo-answer")
    keys.press("Control+A")
    keys.type("a yellow bird with black wings")
    keys.press("Enter")
    visit.changed("#halo-answer", before)
    press_to(page, "Shift+Tab", "getAttribute('role') === 'tab'")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "nothing shows where the focus is"


def test_errors_are_sentences_and_text_is_text(visited, tmp_path):
    visit = visited()
    page = visit.page
    visit.search_words("a <img src=x onerror=alert(1)> bird")
    assert "onerror" in page.locator("#halo-answer .halo-chips").inner_text()
    assert page.locator("img[src=x]").count() == 0
    box = page.locator("#halo-caption textarea, #halo-caption input").first
    box.fill("   ")
    box.press("Enter")
    page.wait_for_selector("text=Type a caption first")
    wrong = tmp_path / "notes.png"
    wrong.write_text("no image")
    visit.open_tab("Picture → words")
    page.locator("#halo-image input[type=file]").set_input_files(wrong)
    page.wait_for_selector("text=That image cannot be used: not an image")
    assert visit.problems == []
