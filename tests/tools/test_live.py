"""The page that searches in the browser says what `zoo.Retriever` says, of the same photos."""

import contextlib
import functools
import http.server
import json
import pathlib
import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf

import packaged
import zoo
from browser import chromium, find_chromium
from node import in_node, needs_node
from tools import live, live_facts
from zoo.errors import InputError
from zoo.models.presets import PACKAGED

ROOT = pathlib.Path(__file__).parents[2]
SOURCES, QUESTIONS = ROOT / "docs" / "live", ROOT / "tests" / "questions"
AWKWARD = [
    "",
    "the",
    "  A dog, running\ton the BEACH... ",
    "un café à Paris ’tis 42! it's",
    "ＦＵＬＬ width ① ½ ﬁne Straße ΣΊΣΥΦΟΣ ΟΔΟΣ",
    "狗 and 犬, 고양이, кошка на диване, naïve façade",
    "soft\u00adhyphen zero\u200bwidth non\u00a0breaking e\u0301 dog🐕‍🦺s",
    "$5^2 `code` a_b-c/d {x} [y] ~z <w>|v",
    "word" * 40,
    "many words " * 30,
]
needs_preset = pytest.mark.skipif(
    live.PRESET not in zoo.list_presets(), reason="this checkout has no preset of photos"
)


def questions():
    """100 of them: those judged by hand, everyday and strange ones, and awkward texts."""
    judged = (QUESTIONS / "packaged_photos.tsv").read_text().splitlines()
    texts = [line.split("\t")[0] for line in judged if not line.startswith("#")][:60]
    for name, count in (("ordinary_photos", 20), ("strange", 12)):
        lines = (QUESTIONS / f"{name}.txt").read_text().splitlines()
        texts += [line for line in lines if line not in texts][:count]
    return [*texts, *AWKWARD[1:9]]


@needs_node
@needs_preset
def test_the_tokenizer_gives_the_models_ids():
    config = json.loads((PACKAGED / live.PRESET / "config.json").read_text())
    vocabulary = config["config"]["tokenizer"]["config"]["vocabulary"]
    tokenizer = zoo.data.BertTokenizer(vocabulary, 32)
    texts = [*AWKWARD, *questions()]
    for name in ("ordinary_photos", "ordinary_birds", "strange"):
        texts += (QUESTIONS / f"{name}.txt").read_text().splitlines()
    script = "say(value.texts.map(tokenizer(value.vocabulary, 32)));"
    found = in_node(script, {"texts": texts, "vocabulary": vocabulary})
    expected = np.asarray(tokenizer(tf.constant(texts)))
    for text, ids, row in zip(texts, found, expected.tolist(), strict=True):
        assert ids + [0] * (32 - len(ids)) == row, text


@pytest.fixture(scope="module")
def asked():
    """The retriever, its photos' embedding, and what it answers to the questions."""
    retriever, images = packaged.built()
    texts = questions()
    answers = [*retriever.ask(texts[:45], k=170), *retriever.ask(texts[45:90], k=170)]
    answers += retriever.ask(texts[90:], k=170)  # of 50 the share with an answer is estimated
    answers = dict(zip(texts, answers, strict=True))
    return retriever, images, answers


def assert_same(found, answer, text):
    """An answer of the page and a `zoo.retriever.Answer`."""
    assert found["verdict"] == answer.verdict, text
    assert found["reason"] == answer.reason, text
    # Two photos may score the same to 1e-4, as the fifth and the sixth of "a puppy".
    score_of = dict(zip(answer.ids.tolist(), answer.scores.tolist(), strict=True))
    scores = [score_of[one["item"]] for one in found["found"][:5]]
    assert scores == pytest.approx(answer.scores[:5].tolist(), abs=1e-4), text
    assert found["asked"] == answer.asked, text
    if answer.probability is None:
        assert found["probability"] is None, text
        return
    fits = [one["fit"] for one in found["found"]]
    assert fits == pytest.approx(answer.fits.tolist(), abs=0.02), text
    assert found["number"] == pytest.approx(answer.number, rel=0.02), text
    assert (found["wanted"] is None) == (answer.wanted is None), text
    if answer.interval is None:  # of a few words
        assert found["interval"] is None, text
    else:
        assert found["interval"] == pytest.approx(list(answer.interval), abs=0.02), text
    enough = answer.first_k()
    assert found["firstK"] == (None if enough > 170 else pytest.approx(enough, abs=1)), text


def test_a_model_that_the_page_cannot_run_is_refused():
    model = zoo.from_preset("toy_birds_pfe")
    photos = np.random.default_rng(0).integers(0, 256, (40, 64, 64, 3), dtype="uint8")
    retriever = zoo.Retriever.build(model, photos)
    with pytest.raises(InputError, match="texts of word pieces that were seen"):
        live_facts.facts_of(retriever, retriever.tower("images").of_arrays(photos))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of docs/live.md alone, with the model in it."""
    markdown = pytest.importorskip("markdown", reason="the extra 'docs' is not installed")
    try:
        package = live.npm_package(ROOT / live.CACHE)
    except InputError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("site")
    text = (ROOT / "docs" / "live.md").read_text(encoding="utf-8")
    body = markdown.markdown(text, extensions=["md_in_html", "tables", "fenced_code"])
    head = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
    (folder / live.PAGE).write_text(head + body, encoding="utf-8")
    shutil.copytree(SOURCES, folder / "live")
    (folder / "images").mkdir()
    shutil.copy(ROOT / "docs" / "images" / "live.jpg", folder / "images")
    live.build(live.PRESET, package, folder / live.BUILT)
    return folder


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The address of a folder on a free port of this machine."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("playwright", reason="playwright is not installed")
    if find_chromium() is None:
        pytest.skip("no chromium on this machine")
    with chromium() as opened:
        yield opened


@pytest.mark.very_slow  # the model is exported and npm is asked for the engine: four minutes
@needs_preset
def test_a_hundred_questions_in_a_browser(site, asked, browser):
    _, _, answers = asked
    built = json.loads((site / live.BUILT / "manifest.json").read_text())
    assert built["bytes"] <= 35e6
    with served(site) as address:
        page = browser.new_page()
        problems, requests = [], []
        page.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{address}/{live.PAGE}")
        first = next(iter(answers))
        page.fill("#halo-live input", first)
        page.press("#halo-live input", "Enter")
        page.wait_for_selector(f'.halo-answer[data-question="{first}"]', timeout=120_000)
        said = page.inner_text(".halo-sentence").replace("\xa0", " ")
        assert said == answers[first].reason
        shown = page.eval_on_selector_all(
            ".halo-results img", "all => all.map((one) => one.src.split('/').at(-1))"
        )
        assert shown[:5] == list(answers[first].names[: min(5, len(shown))])
        told = page.eval_on_selector_all(
            ".halo-results li", "all => all.map((one) => [one.className, one.innerText])"
        )
        for rank, (kind, text) in enumerate(told):
            assert (kind == "halo-past") == (rank >= answers[first].fitting)
            assert f"fits {100 * answers[first].fits[rank]:.0f}\xa0%" in text
        assert page.locator("progress").is_hidden()
        found = page.evaluate(
            """async (texts) => {
              const { manifest, open } = await import("./live/engine.js");
              const built = await manifest();
              const { ask } = await open(built, () => {});
              const answers = [];
              for (const text of texts) {
                const before = performance.now();
                const answer = await ask(text);
                answers.push({ ...answer, took: performance.now() - before });
              }
              return answers;
            }""",
            list(answers),
        )
        page.close()
    assert problems == []
    assert all(url.startswith(address) for url in requests), "another server was asked"
    for said, (text, answer) in zip(found, answers.items(), strict=True):
        assert_same(said, answer, text)
    times = [said["took"] for said in found]
    print(f"{built['bytes'] / 1e6:.1f} MB, {np.median(times):.0f} ms a question")
    assert len(found) == 100


@pytest.mark.very_slow
@needs_preset
@pytest.mark.parametrize(("without", "says"), [("wasm", "no WebAssembly"), ("model", "make live")])
def test_where_it_cannot_run_there_is_a_sentence_and_a_picture(
    site, browser, without, says, tmp_path
):
    folder = shutil.copytree(site, tmp_path / "site", ignore=shutil.ignore_patterns("built"))
    with served(site if without == "wasm" else folder) as address:
        page = browser.new_page()
        if without == "wasm":
            page.add_init_script("delete globalThis.WebAssembly")
        page.goto(f"{address}/{live.PAGE}")
        page.wait_for_function(
            "says => document.querySelector('#halo-live p').textContent.includes(says)", arg=says
        )
        assert page.locator("#halo-live input").count() == 0
        assert page.locator("#halo-live img").evaluate("i => i.complete && i.naturalWidth > 0")
        page.close()


def test_what_npm_brings_is_compared_with_what_is_pinned(tmp_path):
    name = live.PACKAGE.replace("@", "-") + ".tgz"
    (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(InputError, match="expected SHA-512"):
        live.npm_package(tmp_path)
