"""Every panel in a real Chromium: what it shows, and that nothing else is asked for."""

import re

import pytest

from browser import Visit, chromium, find_chromium
from demo import answers, page

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


@pytest.fixture(params=["light", "phone"])
def visit(request, browser, served, measured):
    with Visit(browser, served[0], request.param) as visit:
        yield visit
        assert visit.problems == []
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert visit.page.evaluate(wide) <= 0, "the page scrolls sideways"
        silent = "[...document.images].filter(i => !i.hidden && !i.hasAttribute('alt')).length"
        assert visit.page.evaluate(silent) == 0, "an image without an alternative text"


def test_words(visit, served):
    page, service = visit.page, served[1]
    visit.search_words("a small red bird with a black crown")
    expected = service.find_images("a small red bird with a black crown")
    shown = page.locator("#halo-images figcaption p").all_inner_texts()
    names = [result["name"] for result in expected["answer"]["results"]]
    assert [text.split(". ", 1)[1] for text in shown] == names
    sentence = page.locator("#halo-images .halo-certainty p").inner_text()
    assert sentence.startswith(expected["answer"]["meaning"].split(":")[0])
    first = page.locator("#halo-images img").first
    assert first.get_attribute("alt").startswith("Result 1: ")
    assert first.evaluate("i => i.complete && i.naturalWidth > 0")
    assert page.locator("#halo-words .halo-word").count() == 8
    page.locator("#halo-kept input").nth(2).uncheck()
    page.wait_for_selector("#halo-kept-certainty .halo-certainty")
    assert "a small bird with a black crown" in page.locator("#halo-kept-certainty").inner_text()
    page.locator("#halo-examples input").last.check()
    box = page.locator("#halo-caption textarea, #halo-caption input").first
    page.wait_for_function("e => !e.value.includes('red bird')", arg=box.element_handle())


def test_it_declines_and_says_what_would_help(visit):
    visit.set_decline(50)
    visit.search_words("a bird with a short bill")
    declined = visit.page.locator(".halo-declined")
    text = declined.inner_text()
    assert "Too ambiguous to answer" in text
    assert "what would narrow it down" in text
    assert "add “" in text
    assert visit.page.locator("#halo-images .halo-results").count() == 0


def test_an_image(visit, served):
    page = visit.page
    visit.open_tab("Image → captions")
    visit.search_image(1)
    assert page.locator("#halo-captions .halo-results li").count() == 8
    # A copy: the gallery's own folder is not served.
    assert served[2] in page.locator("#halo-image img").get_attribute("src")
    visit.erase()
    alternatives = [i.get_attribute("alt") for i in page.locator("#halo-erased img").all()]
    assert len(alternatives) == 3
    assert "without the region" in alternatives[1]
    before = visit.content("#halo-erased")
    page.locator("#halo-erased img").first.click(position={"x": 10, "y": 10})
    visit.changed("#halo-erased", before)
    left = page.get_by_label(re.compile("number input for Left"))
    assert left.input_value() == "0"


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


def test_when_to_trust_it(visit):
    visit.open_trust()
    text = visit.page.locator("#halo-trust").inner_text()
    assert "Text → image: answering every query" in text
    visit.page.get_by_label("Images find captions").check()
    visit.page.wait_for_selector("#halo-trust :text('Image → text')")


def test_all_is_drawn_on_dark_ground(browser, served, measured):
    with Visit(browser, served[0], "dark") as visit:
        light = "getComputedStyle(document.querySelector('{}')).{}.match(/\\d+/g)[0] > 150"
        assert not visit.page.evaluate(light.format("body", "backgroundColor"))
        assert visit.page.evaluate(light.format(".halo-results p", "color"))
        visit.open_map()
        visit.open_trust()
        assert visit.page.evaluate(light.format("#halo-risk .xtick text", "fill"))
        assert visit.problems == []


def test_by_the_keyboard_alone(browser, served):
    with Visit(browser, served[0]) as visit:
        page, keys = visit.page, visit.page.keyboard
        for _ in range(12):
            keys.press("Tab")
            if page.evaluate("document.activeElement.closest('#halo-caption') !== null"):
                break
        else:
            pytest.fail("the caption cannot be reached by Tab")
        before = visit.content("#halo-images")
        keys.press("Control+A")
        keys.type("a yellow bird with black wings")
        keys.press("Enter")
        visit.changed("#halo-images", before)
        for _ in range(12):
            keys.press("Shift+Tab")
            if page.evaluate("document.activeElement.getAttribute('role') === 'tab'"):
                break
        else:
            pytest.fail("the tabs cannot be reached by Shift+Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", "nothing shows where the focus is"


def test_errors_are_sentences_and_text_is_text(browser, served, tmp_path):
    with Visit(browser, served[0]) as visit:
        page = visit.page
        page.on("dialog", lambda dialog: visit.problems.append("a script ran"))
        visit.search_words("a <img src=x onerror=alert(1)> bird")
        assert "onerror" in page.locator("#halo-words").inner_text()
        assert page.locator("img[src=x]").count() == 0
        box = page.locator("#halo-caption textarea, #halo-caption input").first
        box.fill("   ")
        box.press("Enter")
        page.wait_for_selector("text=Type a caption first")
        wrong = tmp_path / "notes.png"
        wrong.write_text("no image")
        visit.open_tab("Image → captions")
        page.locator("#halo-image input[type=file]").set_input_files(wrong)
        page.wait_for_selector("text=That file is not an image that can be read")
        assert visit.problems == []


def test_models_of_sets_and_of_points(browser, sets, points, photo):
    for gallery in (sets, points):
        built = page.build(gallery)
        address = page.launch(built, wait=False, quiet=True).rstrip("/")
        try:
            with Visit(browser, address) as visit:
                if gallery is points:
                    assert answers.POINTS in visit.page.locator("#halo-images").inner_text()
                    assert not visit.page.locator("#halo-words").is_visible()
                    visit.open_tab("When to trust it")
                    visit.page.wait_for_selector("text=no uncertainty to rank its queries by")
                else:
                    visit.open_tab("Elements")
                    upload = visit.page.locator("#halo-elements-image input[type=file]")
                    upload.set_input_files(photo)
                    visit.page.wait_for_selector("#halo-elements img")
                    assert visit.page.locator("#halo-elements img").count() == 3
                    assert "cosine" in visit.page.locator("#halo-elements").inner_text()
                visit.open_map()
                assert visit.problems == []
        finally:
            built.close(verbose=False)
