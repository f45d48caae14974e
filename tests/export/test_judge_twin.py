"""One judge: Python, the command line, the server, an export, the demo and the live page agree."""

import asyncio
import io
import json

import httpx
import numpy as np
import pytest
import tensorflow as tf

import packaged
import zoo
from demo import sources
from demo.service import Service
from export.confidence_signatures import ServedJudge
from export.signatures import Signatures
from halo_zoo.search import main as search
from node import judged_in_node, needs_node
from tools import live, live_facts
from zoo import evaluation, report
from zoo.confidence.caption_bank import packaged_bank
from zoo.confidence.scores import DEPTH
from zoo.report import opening
from zoo.retriever import server
from zoo.retriever.preambles import as_asked

COUNTS = 150, 500  # of `make test`, and of `make test-slow`
AT_ONCE = 40  # of more questions the share that has an answer is estimated
NUMBERS = ("wanted", "number", "low", "high")
PREAMBLES = ("", "a ", "photos of ", "show me pictures with ", "do we have any ", "find all my ")


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
        np.testing.assert_allclose(numbers_of(one), numbers_of(expected), atol=1e-5, rtol=1e-5)
        assert (one["fits"] is None) == (answer.fits is None)
        if answer.fits is not None:
            np.testing.assert_allclose(one["fits"], answer.fits, atol=1e-5)


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
    assert all(verdicts.count(one) >= 15 * share for one in zoo.retriever.VERDICTS)
    assert sum(answer.asked is not None for answer in photos.answers) >= 100 * share
    assert len({answer.reason for answer in photos.answers}) >= 50 * share
    assert sum(answer.wanted is None for answer in photos.answers) >= 200 * share


@pytest.mark.slow
def test_the_command_line_and_the_server_answer_as_python(photos, tmp_path, capsys, monkeypatch):
    photos.retriever.save(tmp_path / "index")
    typed = "\n".join(photos.texts[::5]).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed)))
    capsys.readouterr()
    flags = ["--queries", "-", "--json", "-k", str(DEPTH)]  # asked one at a time
    search(["query", str(tmp_path / "index"), *flags, "--model", live.PRESET])
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
@needs_node
def test_the_live_page_answers_as_python(photos):
    facts, arrays = live_facts.facts_of(photos.retriever, photos.images)
    asked = [as_asked(text) for text in photos.texts]
    embedded = photos.retriever.tower("captions").of_texts(asked)
    found = judged_in_node(facts, arrays, photos.texts, embedded)
    assert [one["asked"] for one in found] == asked
    for one, answer in zip(found, photos.answers, strict=True):
        fits = [item["fit"] for item in one["found"][:DEPTH]]
        one["fits"] = None if answer.fits is None else fits
        assert one["fitting"] == answer.fitting
        if answer.fits is not None:
            assert one["firstK"] == answer.first_k()
    assert_same(found, photos.answers)


def exported(retriever, asked):
    """What an export's signatures say of texts, as arrays by name."""
    model, probes, judge = retriever.model, retriever.probes, retriever.judge
    served = ServedJudge(judge, probes.items("t2i"))
    functions = Signatures(model, judges={"t2i": served}, known=probes.known).functions
    encoded = functions["encode_captions"].get_concrete_function()(captions=tf.constant(asked))
    queries = {name: encoded[name].numpy() for name in ("mean", "log_variance")}
    found = retriever.index.search(queries, DEPTH)
    scores = retriever.index.query_scores(queries, *found, copies=judge.copies)
    given = {
        **encoded,
        "top_scores": scores.top,
        "mean_score": scores.mean,
        "score_variance": scores.variance,
        "second_score": scores.second,
    }
    ranks = sum(name.startswith("agreement") for name in judge.confidence.names)
    given["agreement"] = scores.agreement[:, :ranks]
    function = functions["confidence_t2i"].get_concrete_function()
    specs = function.structured_input_signature[0]
    said = function(*(tf.cast(given[spec.name], tf.float32) for spec in specs))
    return {name: values.numpy() for name, values in {**encoded, **said}.items()}


def assert_exported(said, answers):
    """The export's numbers are the answers'; the verdict may differ by one on a threshold."""
    verdicts = np.where(said["unknown"], b"not understood", said["verdict"]).astype(str)
    assert np.mean(verdicts == [answer.verdict for answer in answers]) >= 0.998
    for row, answer in enumerate(answers):
        if answer.fits is None:
            continue
        np.testing.assert_allclose(said["fits"][row], answer.fits, atol=1e-5)
        low, high = answer.interval or (np.nan, np.nan)
        expected = (answer.wanted, answer.number, low, high)
        for name, value in zip(NUMBERS, expected, strict=True):
            if value is not None:
                assert said[name][row] == pytest.approx(value, abs=1e-5, rel=1e-5, nan_ok=True), (
                    name
                )
        assert said["first_k"][row] == answer.first_k()


@pytest.mark.slow
def test_an_export_answers_as_python(photos):
    asked = [as_asked(text) for text in photos.texts]
    assert_exported(exported(photos.retriever, asked), photos.answers)


@pytest.mark.slow
def test_the_demo_answers_as_python(photos, tmp_path):
    gallery, _ = sources.load(live.PRESET, cache=tmp_path)
    service = Service(gallery, None)
    for answer in photos.answers[::25]:
        found = service.find_images(answer.question, results=DEPTH)
        said = found["answer"]
        assert (said["verdict"], said["reason"]) == (answer.verdict, answer.reason)
        assert found["asked"] == (answer.asked or answer.question)
        if answer.verdict in ("likely", "unsure"):
            fits = [one["fits"] for one in said["results"]]
            np.testing.assert_allclose(fits, answer.fits, atol=1e-5)
            assert said["fitting"] == answer.fitting
        else:
            assert said["probability"] is None
            assert all(one["fits"] is None for one in said["results"])


# Of classes, whose items alone fit.


@pytest.fixture(scope="module")
def birds():
    model, test = evaluation.open_run("toy_birds_pfe")
    encoded = evaluation.encode(model, test.records, test.source)
    return model, encoded, zoo.Retriever.build(model, encoded.images)


@pytest.fixture(scope="module")
def answers(birds):
    _, encoded, retriever = birds
    rows = np.random.default_rng(0).permutation(encoded.records.num_captions)[:196]
    texts = [encoded.records.captions[row] for row in rows]
    texts += ["a bird", "dog", "red crown", "zorp with a wibble"]
    return asked_at_once(lambda part: retriever.ask(part, DEPTH), texts)


def test_an_export_judges_classes_as_python(birds, answers):
    said = exported(birds[2], [as_asked(answer.question) for answer in answers])
    assert len({answer.verdict for answer in answers}) == 4
    assert_exported(said, answers)


def test_the_reports_examples_are_the_retrievers_answers(birds):
    model, encoded, retriever = birds
    probes = evaluation.probes_of("toy_birds_pfe")
    run = report.ReportedRun("birds", encoded, model.similarity, model=model, probes=probes)
    examples = opening.examples(run, 40)
    for example in examples:
        answer = retriever.ask(example.question, 3)
        assert (example.verdict, example.reason) == (answer.verdict, answer.reason)
        assert example.probability == pytest.approx(answer.probability, abs=1e-5)
        fits = [None] * 3 if answer.fits is None else answer.fits.tolist()
        assert [one.fits for one in example.found] == pytest.approx(fits, abs=1e-5)


def test_the_demo_judges_classes_as_python(answers, tmp_path):
    gallery, _ = sources.load("toy_birds_pfe", cache=tmp_path)
    service = Service(gallery, None)
    for answer in answers[-24:]:
        said = service.find_images(answer.question, results=DEPTH)["answer"]
        assert (said["verdict"], said["reason"]) == (answer.verdict, answer.reason)
        if answer.verdict in ("likely", "unsure"):
            assert said["probability"] == pytest.approx(answer.probability, abs=1e-5)


def test_pictures_that_ask_captions_are_judged_alike(birds):
    model, encoded, _ = birds
    captions = zoo.Retriever.build(model, encoded.captions, side="captions")
    pictures = {name: values[:100] for name, values in encoded.images.items()}
    found = captions.ask([{name: one[row] for name, one in pictures.items()} for row in range(100)])
    confidence = evaluation.calibrated(captions.probes, model.similarity, encoded, "i2t")
    scores = captions.index.query_scores(pictures, copies=confidence.copies)
    probability = confidence.probability(scores)
    there = np.array([answer.wanted is not None for answer in found])
    expected = [answer.wanted for answer in found if answer.wanted is not None]
    assert there.mean() > 0.9
    np.testing.assert_allclose(probability[there], expected, atol=1e-5)
