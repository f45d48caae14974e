"""Every view in a real Chromium: what it shows, and that nothing else is asked for."""

import contextlib
import re
from urllib.parse import quote

import pytest

from browser import Visit, chromium, find_chromium

pytest.importorskip("gradio", reason="the extra 'demo' is not installed")
from gradio_client import Client, handle_file

from demo.page import build
from proxy import below

pytest.importorskip("playwright", reason="playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_chromium() is None, reason="no chromium: `apt-get install chromium` as .ci/run does"
    ),
]
RED = "a small red bird with a black crown"


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def visited(browser, served):
    """A function from a link's query to a `Visit` whose page was loaded by that link.

    `open` of that visit shows other views without loading the page again.
    """
    with Visit(browser, served[0]) as visit:

        def load(query=""):
            visit.load(query)
            return visit

        yield load


@pytest.fixture
def private_folder(tmp_path, monkeypatch):
    """Gradio's folder of temporary files, for a page that a test serves."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))


PLACES = {
    "photos": "",
    "answer": f"?q={quote(RED)}",
    "nothing": "?q=zorp",
    "map": "?page=map",
    "own": "?page=own",
    "compare": f"?page=compare&q={quote(RED)}",
    "viewer": f"?q={quote(RED)}",
}


def show(visit, place, link):
    """Shows one of `PLACES`, with all that opens there."""
    visit.open(link)
    if place == "answer":
        for fold in visit.page.locator("details > summary").all():
            if fold.is_visible():
                fold.click()
        visit.page.wait_for_selector(".evidence")
    if place == "viewer":
        visit.page.locator(".tile button").first.click()
        visit.page.wait_for_selector("#viewer .neighbours .tile")


def check(visit):
    assert visit.problems == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert visit.page.evaluate(wide) <= 0, "the page scrolls sideways"
    silent = "[...document.images].filter(i => !i.hasAttribute('alt')).length"
    assert visit.page.evaluate(silent) == 0, "an image without an alternative text"


@pytest.fixture(scope="module")
def answered(service):
    """A question with photos on both sides of the line, and its answer."""
    for caption in service.gallery.captions:
        found = service.find_images(caption, results=18)
        fits = [one["fits"] for one in found["results"]]
        if found["verdict"] in ("likely", "unsure") and fits[0] > 0.4 and fits[-1] < 0.2:
            return caption, found
    raise AssertionError("no such question")


def test_the_first_screen_is_photos_and_few_words(visited):
    visit = visited()
    page = visit.page
    assert page.locator(".grid .tile").count() == 18
    words = "document.body.innerText.split(/\\s+/).filter((one) => /[a-z]/i.test(one)).length"
    assert (
        page.evaluate(words) + len(page.locator("#question").get_attribute("placeholder").split())
        <= 35
    )
    assert page.title() == "Halo Zoo"
    first = page.locator(".tile img").first
    assert first.evaluate("i => i.decode().then(() => i.naturalWidth)") == 256
    check(visit)


def test_an_answer_has_a_line_that_the_slider_moves(visited, answered):
    caption, found = answered
    visit = visited(f"?q={quote(caption)}")
    page = visit.page
    assert page.locator(".verdict p").inner_text() == found["reason"]
    fits = [one["fits"] for one in found["results"]]
    shown = page.locator(".answer .tile .halo text").all_text_contents()
    assert shown == [str(round(100 * one)) if one >= 0.01 else "<1" for one in fits]
    look = page.locator(".answer ol:not(.small) .tile img").evaluate_all(
        "all => all.map((one) => [getComputedStyle(one).opacity, getComputedStyle(one).filter])"
    )
    assert all(style == ["1", "none"] for style in look)
    above = page.locator('ol[aria-label="Likely to fit"] .tile')
    assert above.count() == sum(one >= 0.5 for one in fits)
    visit.requests.clear()
    for least in (20, 5, 80):
        page.locator("#line").fill(str(least))
        assert above.count() == sum(one >= least / 100 for one in fits)
    page.locator("#line").fill("30")
    expected = round(found["expected"][sum(one >= 0.3 for one in fits) - 1])
    assert f"expect {expected} to fit" in page.locator(".bar output").inner_text()
    assert visit.requests == []
    page.wait_for_url("**line=0.3*")
    check(visit)


def test_where_nothing_fits_that_is_said_first(visited):
    visit = visited("?q=a wibble with zorp")
    page = visit.page
    assert page.locator(".verdict h1").inner_text() == "Not understood"
    assert page.locator("#line").count() == 0
    large = page.locator(".answer .tile img").evaluate_all("a => a.map((i) => i.clientHeight)")
    assert len(large) == 12
    assert max(large) < 150
    check(visit)


def test_a_photo_large_by_the_keyboard(visited, answered):
    caption, found = answered
    visit = visited(f"?q={quote(caption)}")
    page, keys = visit.page, visit.page.keyboard
    names = [one["name"] for one in found["results"]]
    tile = page.locator(".tile button").first
    tile.focus()
    keys.press("Enter")
    page.wait_for_selector("#viewer[open]")
    title = page.locator("#viewer h2").first
    assert title.inner_text() == names[0]
    assert "likely to fit" in page.locator("#viewer .fit").inner_text()
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    assert title.inner_text() == names[2]
    keys.press("ArrowLeft")
    page.wait_for_url(f"**photo={found['results'][1]['item']}*")
    page.wait_for_selector("#viewer .neighbours .tile")
    page.wait_for_selector("#viewer .caption-list li")
    address = page.url
    keys.press("Escape")
    page.wait_for_selector("#viewer:not([open])", state="attached")
    assert tile.evaluate("one => one === document.activeElement")
    page.goto(address)  # the link opens the photo
    page.wait_for_selector("#viewer[open]")
    assert title.inner_text() == names[1]
    page.locator("#viewer .neighbours .tile button").first.click()
    check(visit)


def test_why_is_a_picture_with_words_to_leave_out(visited, service):
    visit = visited(f"?q={quote(RED)}")
    page = visit.page
    page.locator(".why > summary").click()
    page.wait_for_selector(".evidence svg")
    probes = service.reasons(RED)["probes"]
    assert f"{probes['num_right']:,} right" in page.locator(".evidence").inner_text()
    chip = page.locator(".why .chip", has_text="red")
    without = service.without_words(RED)["without"][2]["probability"]
    assert f"{round(100 * without)}" in chip.inner_text()
    chip.click()
    page.wait_for_url("**?q=a+small+bird+with+a+black+crown")
    check(visit)


def test_the_map_shows_photos_and_takes_a_question(visited):
    visit = visited("?page=map")
    page = visit.page
    page.wait_for_function("window.haloMap?.tiles.length === 1")
    place = page.evaluate("haloMap.at(haloMap.found.x[3], haloMap.found.y[3])")
    page.locator(".map canvas").hover(position={"x": place[0], "y": place[1]}, force=True)
    page.wait_for_selector(".map-card img")
    before = page.evaluate("haloMap.transform.k")
    page.mouse.wheel(0, -300)
    page.wait_for_function("k => haloMap.transform.k > k", arg=before)
    page.locator(".map canvas").press("0")
    page.locator(".magnifier input").fill("5")
    assert page.locator(".magnifier output").inner_text() == "× 5"
    page.locator("#question").fill(RED)
    page.locator("#question").press("Enter")
    page.wait_for_function("window.haloMap?.question?.results.length > 0")
    assert RED in page.locator(".map-note").inner_text()
    page.wait_for_url("**page=map*")
    check(visit)


def test_own_photos_with_thumbnails_and_progress(visited, gaussians, tmp_path):
    visit = visited("?page=own")
    page = visit.page
    broken = tmp_path / "notes.png"
    broken.write_text("no image")
    bar = "document.querySelector('progress')"
    page.evaluate(
        f"window.seen = []; new MutationObserver(() => window.seen.push({bar}.value))"
        ".observe(document.querySelector('.own'), {attributes: true, subtree: true})"
    )
    files = [*gaussians.image_paths[:4], broken]
    page.locator("#own-files").set_input_files(files)
    page.wait_for_selector(".own .note:has-text('not read')")
    assert "4 photos · 1 file not read" in page.locator(".own .note").inner_text()
    assert page.locator(".own .tile img").count() == 4
    assert page.evaluate("seen.length") > 1
    assert visit.problems == [
        problem for problem in visit.problems if "400" in problem or "own" in problem
    ]
    visit.problems.clear()
    visit.search("a red bird")
    assert page.locator(".answer .tile").count() == 4
    assert "among_own" in page.locator(".answer .tile img").first.get_attribute("src")
    check(visit)
    visit.load("?page=own")
    page.get_by_role("button", name="Delete them now").click()
    page.wait_for_selector(".own .tile", state="detached")
    check(visit)


def test_two_models_side_by_side(visited, served):
    names = served[1].views.names
    points = next(name for name in names if name.startswith("points"))
    visit = visited(f"?page=compare&q={quote(RED)}&other={quote(points)}")
    page = visit.page
    assert page.locator(".columns article").count() == 2
    assert page.locator(".columns .tile").count() == 24
    chosen = page.locator(".selects select").evaluate_all("all => all.map((one) => one.value)")
    assert chosen == [names[0], points]
    page.locator(".selects select").nth(1).select_option(names[1])
    page.wait_for_url(f"**other={quote(names[1]).replace('%20', '+')}*")
    visit.drawn()
    assert page.locator(".selects select").nth(1).input_value() == names[1]
    check(visit)


def test_a_picture_finds_captions(visited, photo):
    visit = visited()
    visit.page.locator("#picture").set_input_files(photo)
    visit.page.wait_for_selector(".caption-list li")
    assert visit.page.locator(".caption-list .halo").count() >= 1
    check(visit)


def test_every_view_fits_a_small_screen(browser, served):
    """Phones, and a window of 1,400 pixels at 200 % zoom."""
    sizes = [(320, 640), (390, 844), (700, 450)]
    with Visit(browser, served[0], "phone") as visit:
        for place, link in PLACES.items():
            visit.page.set_viewport_size(dict(zip(("width", "height"), sizes[0], strict=True)))
            show(visit, place, link)
            for width, height in sizes:
                visit.page.set_viewport_size({"width": width, "height": height})
                is_laid_out = "width => document.documentElement.clientWidth === width"
                visit.page.wait_for_function(is_laid_out, arg=width)
                check(visit)


def test_axe_finds_nothing_serious(visited):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    visit, found = visited(), {}
    try:
        for place, link in PLACES.items():
            show(visit, place, link)
            for scheme, rules in {"light": {}, "dark": {"runOnly": ["color-contrast"]}}.items():
                visit.page.emulate_media(color_scheme=scheme)  # all but colours is equal
                visit.still()
                options = {"resultTypes": ["violations"], **rules}
                for one in axe.run(visit.page, options=options).response["violations"]:
                    if one["impact"] in ("serious", "critical"):
                        nodes = [node["html"][:200] for node in one["nodes"]]
                        found[place, scheme, one["id"]] = nodes
    finally:
        visit.page.emulate_media(color_scheme="light")
    assert found == {}


def test_by_the_keyboard_alone(visited):
    visit = visited()
    page, keys = visit.page, visit.page.keyboard
    keys.press("/")
    assert page.evaluate("document.activeElement.id") == "question"
    keys.type("a yellow bird with black wings")
    keys.press("Enter")
    page.wait_for_selector(".verdict h1")
    for _ in range(14):
        keys.press("Tab")
        if page.evaluate("document.activeElement.closest('.tile') !== null"):
            break
    else:
        pytest.fail("Tab reaches no photo")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "nothing shows where the focus is"


def test_errors_are_sentences_and_text_is_text(visited, gaussians, monkeypatch):
    evil = "<img src=x onerror=alert(1)>\"'&"
    monkeypatch.setattr(gaussians, "image_names", [evil] * len(gaussians.image_names))
    visit = visited()
    page = visit.page
    visit.search(f"a {evil} bird")
    page.locator(".tile button").first.click()
    assert page.locator("#viewer h2").first.inner_text() == evil
    page.keyboard.press("Escape")
    page.locator(".why > summary").click()
    page.wait_for_selector(".why .chip")
    assert page.locator("img[src=x]").count() == 0
    assert visit.problems == []
    visit.search("word " * 70)
    assert "too long for a caption" in page.locator(".error").inner_text()
    assert re.search(r"\bstatus\b", page.locator("#status").get_attribute("role"))


def test_it_works_behind_a_proxy_below_a_path(browser, gaussians, photo, private_folder):
    """Page, pictures, upload, and named functions with their events."""
    page = build(gaussians)
    address = page.launch(wait=False, quiet=True, root_path="/below").rstrip("/")
    with contextlib.closing(page), below(address, "/below") as place:
        with Visit(browser, place) as visit:
            visit.load(f"?q={quote(RED)}")
            first = visit.page.locator(".answer .tile img").first
            assert first.evaluate("i => i.decode().then(() => i.naturalWidth)") == 256
            visit.open("?page=own")
            visit.page.locator("#own-files").set_input_files(photo)
            visit.page.wait_for_selector(".own .note:has-text('1 photo')")
            visit.open("?page=map")
            visit.page.wait_for_function("window.haloMap?.tiles.length === 1")
            assert visit.problems == []
        client = Client(f"{place}/", verbose=False)
        answer = client.predict(caption=RED, results=2, api_name="/find_images")
        assert len(answer["results"]) == 2
        found = client.predict(image=handle_file(photo), results=3, api_name="/find_captions")
        assert len(found["results"]) == 3


def test_a_photo_shows_what_the_elements_of_its_set_look_at(browser, sets, private_folder):
    page = build(sets)
    with contextlib.closing(page):
        address = page.launch(wait=False, quiet=True).rstrip("/")
        with Visit(browser, address) as visit:
            visit.load()
            visit.page.locator(".tile button").first.click()
            parts = visit.page.locator("#viewer .attention button")
            parts.nth(2).wait_for()
            assert parts.count() == 3
            sizes = parts.locator("img").evaluate_all(
                "all => Promise.all(all.map((i) => i.decode().then(() => i.naturalWidth)))"
            )
            assert sizes == [448] * 3
            large = visit.page.locator("#viewer .large")
            before = large.get_attribute("src")
            parts.nth(1).click()
            assert "photo/attention/0?element=1" in large.get_attribute("src")
            parts.nth(1).click()
            assert large.get_attribute("src").endswith(before)
            check(visit)
