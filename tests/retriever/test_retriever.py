"""The whole way of an answer: build, ask, grow, save, load; verdicts with their reasons."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import zoo
from halo_search.confidence import Probes
from halo_search.errors import InputError
from halo_search.index import Index
from halo_search.retriever import VERDICTS, Answer
from halo_search.retriever.calibration import Calibration, probes_of_pairs
from zoo import evaluation

PRESET = "toy_birds_pfe"


@pytest.fixture(scope="module")
def birds():
    """The preset with its encoded test split."""
    model, test = evaluation.open_run(PRESET)
    return model, evaluation.encode(model, test.records, test.source)


@pytest.fixture(scope="module")
def retriever(birds):
    model, encoded = birds
    return zoo.Retriever.build(model, encoded.images)


@pytest.fixture(scope="module")
def answers(birds, retriever):
    """To 400 captions, with whether each first answer is right."""
    records = birds[1].records
    rows = np.random.default_rng(0).permutation(records.num_captions)[:400]
    found = retriever.ask([records.captions[row] for row in rows])
    labels = records.image_labels[[answer.ids[0] for answer in found]]
    return found, labels == records.caption_labels[rows]


def test_what_is_said_is_what_is_right(answers):
    found, right = answers
    said = [i for i, answer in enumerate(found) if answer.probability is not None]
    assert len(said) >= 0.98 * len(found)  # held-out captions are understood
    probability = np.array([found[i].probability for i in said])
    assert abs(probability.mean() - right[said].mean()) < 0.08
    likely = np.array([answer.verdict == "likely" for answer in found])
    assert right[likely].mean() > 0.7 > right[~likely].mean()
    assert {answer.verdict for answer in found} <= set(VERDICTS)
    assert all(answer.reason.endswith(".") for answer in found)


def test_one_question_is_answered_as_among_many(retriever, answers):
    for answer in answers[0][:5]:
        alone = retriever.ask(answer.question)
        assert isinstance(alone, Answer)
        np.testing.assert_array_equal(alone.ids, answer.ids)
        assert alone.probability == pytest.approx(answer.probability, abs=1e-6)
        assert (alone.verdict, alone.first_k(0.1)) == (answer.verdict, answer.first_k(0.1))


def test_a_short_question_is_vague(retriever):
    answer = retriever.ask("a bird")
    assert answer.verdict == "unsure"
    assert answer.reason == "It is unclear whether the first photo fits."
    assert 0 < answer.probability < 0.3
    assert answer.fitting == 0


def test_an_answer_is_json(retriever):
    answer = retriever.ask("a bird with a red crown", k=4)
    found = json.loads(json.dumps(answer.to_dict()))
    assert found["ids"] == answer.ids.tolist()
    assert found["first_k"] == answer.first_k(0.1)
    assert found["fits"] == pytest.approx(answer.fits.tolist())
    assert found["probability"] == found["fits"][0]
    keys = "question asked verdict reason probability interval wanted fitting number"
    assert set(found) == {*keys.split(), "first_k", "ids", "scores", "fits"}


def test_a_person_reads_a_probability_in_every_row(retriever):
    answer = retriever.ask("a bird with a red crown", k=200)
    first, *rows = str(answer).splitlines()
    assert first.startswith(f"{answer.verdict} {answer.probability:.2f}: {answer.reason}")
    shown = [row.split()[1] for row in rows]
    assert shown == [f"{fit:.2f}" for fit in answer.fits]
    assert len(set(shown)) > 2


def test_more_results_are_given_than_a_judge_reads(retriever):
    assert len(set(retriever.ask("a bird with a red crown", k=30).ids)) == 30


def test_a_preamble_is_taken_off_and_told(retriever):
    bare, typed = retriever.ask(["a red bird", "Show me photos of a red bird, please"], k=3)
    assert typed.question == "Show me photos of a red bird, please"
    assert (typed.asked, bare.asked) == ("a red bird", None)
    assert typed.ids.tolist() == bare.ids.tolist()
    assert (typed.verdict, typed.probability) == (bare.verdict, bare.probability)
    assert "(asked: a red bird)" in str(typed)
    assert "(asked" not in str(bare)
    assert typed.to_dict()["asked"] == bare.to_dict()["asked"] == "a red bird"


def test_a_judgement_of_embeddings_reads_their_texts(retriever):
    texts = ["a bird with a red crown", "a truck with an engine"]
    judgements = retriever.judged(retriever.tower("captions").of_texts(texts), "captions", texts)
    answers = retriever.ask(texts)
    assert [judgement.verdict for judgement in judgements] == [answer.verdict for answer in answers]
    assert judgements[1].verdict == "not understood"


def test_save_and_load(retriever, tmp_path, answers):
    retriever.save(tmp_path / "birds")
    again = zoo.Retriever.load(tmp_path / "birds")
    for answer in answers[0][:3]:
        found = again.ask(answer.question)
        assert found.to_dict().keys() == answer.to_dict().keys()
        assert found.probability == pytest.approx(answer.probability, abs=1e-6)
    again.save(tmp_path / "birds")  # in place of the first
    assert len(zoo.Retriever.load(tmp_path / "birds")) == len(retriever)
    with pytest.raises(InputError, match="expected what `build` wrote"):
        zoo.Retriever.load(tmp_path)


def test_what_ranks_is_the_similarity_of_the_index(birds):
    model, encoded = birds
    index = Index.build(encoded.images, "cosine")
    assert zoo.Retriever(model, index).similarity is index.similarity


def test_it_is_calibrated_again_when_it_has_grown(birds):
    model, encoded = birds
    half = {name: values[:240] for name, values in encoded.images.items()}
    few = {name: values[240:246] for name, values in encoded.images.items()}
    rest = {name: values[246:] for name, values in encoded.images.items()}
    retriever = zoo.Retriever.build(model, half)
    first = retriever.confidence
    asked = "a small bird with a red crown"
    before = retriever.ask(asked)
    retriever.note = "photos were trained on"
    retriever.add(few)
    assert retriever.confidence is first  # a few percent change nothing but promises
    assert not retriever.judge.is_same_gallery
    assert retriever.note == "photos were trained on", "what was there is there still"
    assert retriever.ask(asked).first_k(0.1) >= before.first_k(0.1)
    retriever.add(rest)
    assert retriever.confidence is not first
    assert retriever.confidence.gallery.size == 480
    retriever.remove(np.arange(200))
    assert retriever.confidence.gallery.size == 280


def test_probes_of_ones_own(birds):
    model, encoded = birds
    retriever = zoo.Retriever.build(model, encoded.images)
    own = {name: values[:200] for name, values in encoded.images.items()}
    rows = np.searchsorted(encoded.records.caption_image, np.arange(200))
    queries = {name: values[rows] for name, values in encoded.captions.items()}
    confidence = retriever.calibrate(queries, own, groups=np.arange(200))
    assert retriever.confidence is confidence
    assert "uncertainty" not in confidence.names
    with pytest.raises(ValueError, match="`groups` must be of shape"):
        retriever.calibrate(queries, own, groups=np.arange(3))


def test_without_probes_there_is_no_number(birds):
    model, encoded = birds
    few = Probes.of(
        {name: values[:15] for name, values in encoded.images.items()},
        {name: values[:15] for name, values in encoded.captions.items()},
        np.zeros(15),
        np.zeros(15),
    )
    retriever = zoo.Retriever.build(model, encoded.images, probes=few)
    answer = retriever.ask("a red bird")
    assert answer.probability is None
    assert answer.verdict == "unsure"
    assert answer.reason == "A calibration needs at least 20 probes; received 15."
    assert answer.first_k(0.1) is None
    retriever.calibration = Calibration(retriever.index, retriever.gallery_model)
    assert "the model has no probes" in retriever.ask("a red bird").reason
    assert retriever.ask("zorp").verdict == "not understood"


def test_pictures_ask_a_gallery_of_captions_and_files_have_names(birds, tmp_path):
    model, _ = birds
    texts = ["a red bird", "a blue bird with a long bill", "a black bird"]
    captions = zoo.Retriever.build(model, texts, side="captions")
    picture = Image.new("RGB", (70, 50), (200, 30, 30))
    picture.save(tmp_path / "red.png")
    captions.save(tmp_path / "captions")
    assert json.loads((tmp_path / "captions" / "search.json").read_text())["captions"] is True
    first, second = captions.ask([tmp_path / "red.png", tmp_path / "red.png"])
    assert set(first.names) == set(texts)
    found = captions.ask(picture)
    assert first.scores[0] == pytest.approx(found.scores[0], abs=1e-3)
    np.testing.assert_array_equal(second.ids, captions.ask(np.asarray(picture)).ids)
    photos = zoo.Retriever.build(model, tmp_path)
    assert photos.ask("a red bird").names == ["red.png"]
    assert photos.ask(tmp_path / "red.png").reason.startswith("This gallery is calibrated for cap")
    texts = model.encode_captions(["a red bird", "a blue bird"])
    assert [len(answer.ids) for answer in photos.ask(texts)] == [1, 1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda r: r.ask(["a bird", np.zeros((9, 9, 3))]), ValueError, "must be of one kind"),
        (lambda r: r.ask(Path("nowhere.png")), InputError, "nowhere.png"),
        (lambda r: r.ask(np.zeros((1, 3))), ValueError, "must be a Gaussian; received a point"),
        (lambda r: zoo.Retriever.build(r.model, []), ValueError, "at least one item"),
        (lambda r: zoo.Retriever.build(r.model, ["a"], side="x"), ValueError, "`side` must be"),
        (lambda r: zoo.Retriever.build("no_such", ["a"]), InputError, "must be one of"),
    ],
)
def test_bad_input_is_refused(retriever, call, error, message):
    with pytest.raises(error, match=message):
        call(retriever)


@pytest.mark.parametrize("side", ["images", "captions"])
def test_own_pairs_keep_what_the_models_probes_know(side):
    queries, own = ({"mean": np.random.default_rng(n).normal(size=(3, 4))} for n in (0, 1))
    told = dataclasses.make_dataclass("Told", ["slope", "strangers"])
    before = SimpleNamespace(known={"t2i": "known"}, fits={"t2i": told(3.0, "of its own items")})
    found = probes_of_pairs(side, queries, own, [5, 5, 9], before)
    assert (found.known, found.fits) == (before.known, {"t2i": told(3.0, None)})
    asked = found.captions if side == "images" else found.images
    np.testing.assert_allclose(asked["mean"], queries["mean"], rtol=1e-3)
    groups = None if found.caption_images is None else found.caption_images.tolist()
    assert groups == ([0, 0, 1] if side == "images" else None)
