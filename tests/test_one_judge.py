"""One judge: Python, the command line, the server, the demo and the report agree."""

import asyncio
import io
import json
import re

import httpx
import numpy as np
import pytest

import halo_search
import packaged
import zoo
from demo import sources
from demo.service import Service
from halo_search.cli.search import main as search
from halo_search.confidence.scores import DEPTH
from halo_search.confidence.words import packaged_bank
from halo_search.server import application as server
from studies.opened import some_of
from zoo import evaluation

pytestmark = pytest.mark.usefixtures("packaged_once")

COUNTS = 150, 500  # of `make test`, and of `make test-slow`
AT_ONCE = 100  # questions in one list; a single one is answered alike, to
NEAR = {"atol": 1e-6, "rtol": 1e-6}
PREAMBLES = ("", "a ", "photos of ", "show me pictures with ", "do we have any ", "find all my ")


# Of reasons, with their numbers and words left out.
SENTENCES = {
    "About … photos here probably fit, the first among them.",
    "It is unclear whether the first photo fits.",
    "It is rare or absent here: no photo is likely to fit.",
    "I don't know the word ….",
    "The question lies far from all that was learned.",
}


def sentence_of(reason):
    return re.sub(r"\d[\d,]*|“[^”]*”", "…", reason)


def asked_at_once(ask, texts):
    parts = (texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE))
    return [answer for part in parts for answer in ask(part)]


def numbers_of(answer):
    """The probabilities and numbers of an answer in JSON values, NaN where there is none."""
    low, high = answer["interval"] or (None, None)
    found = [answer["probability"], answer["wanted"], answer["number"], low, high]
    return np.array([np.nan if one is None else one for one in found], float)


def assert_same(found, answers):
    """Verdict, reason and numbers of answers in JSON values, and a probability per result."""
    assert len(found) == len(answers)
    for one, answer in zip(found, answers, strict=True):
        expected = answer.to_dict()
        assert (one["verdict"], one["reason"]) == (answer.verdict, answer.reason), answer.question
        np.testing.assert_allclose(numbers_of(one), numbers_of(expected), **NEAR)
        assert (one["fits"] is None) == (answer.fits is None)
        if answer.fits is not None:
            np.testing.assert_allclose(one["fits"], answer.fits, **NEAR)


class Photos:
    """The packaged photos, and questions: everyday and strange ones, words and captions."""

    def __init__(self, folder, count):
        self.retriever, self.images = packaged.built()
        if self.retriever.judge.fits is None:
            pytest.skip("the preset's probes do not know what fits")
        texts = [text.split("\t")[0] for text in (folder / "packaged_photos.tsv").open()]
        texts += (folder / "ordinary_photos.txt").read_text().splitlines()
        texts += (folder / "strange.txt").read_text().splitlines()[:60]
        bank = packaged_bank()
        rows = np.random.default_rng(0).permutation(len(bank.stems))[:270]
        words = [bank.stems[row] for row in rows]
        texts += [PREAMBLES[i % 6] + word for i, word in enumerate(words[:150])]
        pairs = zip(words[150:210], words[210:], strict=True)
        texts += [f"a {one} beside the {other}." for one, other in pairs]
        texts = [text.strip() for text in texts if text.strip() and not text.startswith("#")]
        texts = list(dict.fromkeys(texts))[: COUNTS[-1]]
        self.texts = texts[:: len(texts) // count][:count]
        assert len(self.texts) == count
        self.answers = asked_at_once(lambda part: self.retriever.ask(part, DEPTH), self.texts)


@pytest.fixture(
    scope="module", params=[COUNTS[0], pytest.param(COUNTS[1], marks=pytest.mark.very_slow)]
)
def photos(request):
    return Photos(request.config.rootpath / "tests" / "questions", request.param)


@pytest.mark.slow
def test_the_questions_have_all_verdicts_and_reasons(photos):
    verdicts = [answer.verdict for answer in photos.answers]
    share = len(verdicts) / COUNTS[-1]
    assert all(verdicts.count(one) >= 15 * share for one in halo_search.retriever.VERDICTS)
    assert sum(answer.asked is not None for answer in photos.answers) >= 100 * share
    assert {sentence_of(answer.reason) for answer in photos.answers} >= SENTENCES
    assert sum(answer.wanted is None for answer in photos.answers) >= 200 * share


@pytest.mark.slow
def test_the_command_line_and_the_server_answer_as_python(photos, tmp_path, capsys, monkeypatch):
    photos.retriever.save(tmp_path / "index")
    typed = "\n".join(photos.texts[::5])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
    (tmp_path / "list.txt").write_text(typed)
    for queries in ("-", str(tmp_path / "list.txt")):  # one at a time, and all at once
        capsys.readouterr()
        flags = ["--queries", queries, "--json", "-k", str(DEPTH), "--model", packaged.PRESET]
        search(["query", str(tmp_path / "index"), *flags])
        lines = capsys.readouterr().out.splitlines()
        assert_same([json.loads(line) for line in lines], photos.answers[::5])

    async def served(parts):
        transport = httpx.ASGITransport(server.application(photos.retriever))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            bodies = [{"questions": part, "k": DEPTH} for part in parts]
            return [await client.post("/ask", json=body) for body in bodies]

    starts = range(0, len(photos.texts), AT_ONCE)
    parts = [photos.texts[start : start + AT_ONCE] for start in starts]
    found = asyncio.run(served(parts))
    assert_same([one for each in found for one in each.json()["answers"]], photos.answers)


@pytest.mark.slow
def test_the_demo_answers_as_python(photos, tmp_path):
    gallery = sources.load(packaged.PRESET, cache=tmp_path)
    service = Service(gallery)
    for answer in photos.answers[::25]:
        found = service.find_images(answer.question, results=DEPTH)
        assert (found["verdict"], found["reason"]) == (answer.verdict, answer.reason)
        assert found["asked"] == (answer.asked or answer.question)
        fits = {one["item"]: one["fits"] for one in found["results"]}
        if answer.fits is None:
            assert set(fits.values()) == {None}
        else:
            shown = [fits[item] for item in answer.ids.tolist()]
            np.testing.assert_allclose(shown, answer.fits, **NEAR)
            assert list(fits.values()) == sorted(fits.values(), reverse=True)
        assert found["fitting"] == answer.fitting


# Of classes, whose items alone fit.


@pytest.mark.very_slow
def test_pictures_that_ask_captions_are_judged_alike():
    model, test = evaluation.open_run("toy_birds_pfe")
    test = some_of(test, 100)
    encoded = evaluation.encode(model, test.records, test.source)
    captions = zoo.Retriever.build(model, encoded.captions, side="captions")
    pictures = encoded.images
    found = captions.ask([{name: one[row] for name, one in pictures.items()} for row in range(100)])
    confidence = evaluation.calibrated(captions.probes, model.similarity, encoded, "i2t")
    scores = captions.index.query_scores(pictures, copies=confidence.copies)
    probability = confidence.probability(scores)
    there = np.array([answer.wanted is not None for answer in found])
    expected = [answer.wanted for answer in found if answer.wanted is not None]
    assert there.mean() > 0.9
    np.testing.assert_allclose(probability[there], expected, atol=1e-5)
