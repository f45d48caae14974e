"""The numbers and the verdict that an export gives are those of `zoo.confidence.judge.Judge`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from export.confidence_signatures import ServedJudge, readable, reference_scores
from export.short_questions import PriorFunction
from export.signatures import Signatures
from probe_world import world
from zoo.confidence import Confidence, Fits, calibrate_on
from zoo.confidence.caption_bank import packaged_bank
from zoo.confidence.features import Logistic
from zoo.confidence.fits import priors
from zoo.confidence.judge import Asked, Judge
from zoo.confidence.scores import DEPTH
from zoo.search import Index

ITEMS, QUERIES = world(0, 420)
INDEX = Index.build({"mean": ITEMS[:120]}, "cosine")
CONFIDENCE = calibrate_on(INDEX, QUERIES[120:], ITEMS[120:], groups=np.arange(300))
ASKED = {"mean": np.concatenate([QUERIES[:60], world(1, 60)[1]])}
SCORES = INDEX.query_scores(ASKED, copies=CONFIDENCE.copies)
RNG = np.random.default_rng(0)
REFERENCE = RNG.uniform(0.3, 0.6, 120)
PRIOR = np.where(np.arange(120) % 3 == 0, RNG.normal(-3, 2, 120), np.nan)
PRESENCE = Logistic(
    np.array([0.6, 0.1, -2.0, 5.0, 0.0]), np.ones(5), np.array([4.0, 3, 0.5, -0.4, 0.3]), 0.2
)
FITS = Fits(
    np.array([9.0, -6.0]), np.array([6.0, 0.7, -1.0]), PRESENCE, absent_below=-0.5, words_below=0.1
)
JUDGES = {
    "words and captions": Judge(CONFIDENCE, FITS, gallery=CONFIDENCE.gallery),
    "captions alone": Judge(CONFIDENCE, dataclasses.replace(FITS, words=None)),
    "no presence": Judge(CONFIDENCE, dataclasses.replace(FITS, presence=None)),
    "a class": Judge(CONFIDENCE, by_class=True),
    "the wanted item alone": Judge(CONFIDENCE),
}


def signature(model, judge, direction="t2i"):
    """It alone is traced, of all that the export has."""
    functions = Signatures(model, judges={direction: ServedJudge(judge)}).functions
    return functions[f"confidence_{direction}"].get_concrete_function()


def given(function):
    """The inputs of the signature, of all questions."""
    ranks = sum(name.startswith("agreement") for name in CONFIDENCE.names)
    values = {
        "top_scores": SCORES.top,
        "mean_score": SCORES.mean,
        "score_variance": SCORES.variance,
        "second_score": SCORES.second,
        "agreement": SCORES.agreement[:, :ranks],
        "reference_score": REFERENCE,
        "prior": PRIOR,
    }
    specs = function.structured_input_signature[0]
    return {spec.name: tf.constant(values[spec.name], tf.float32) for spec in specs}


@pytest.mark.parametrize("kind", JUDGES)
def test_it_says_what_the_judge_says(pcme, kind):
    judge = JUDGES[kind]
    function = signature(pcme.model, judge)
    found = {name: one.numpy() for name, one in function(**given(function)).items()}
    expected = []  # of 50 questions or more the share that has an answer would be estimated
    for part in np.split(np.arange(120), 3):
        expected += judge(SCORES.take(part), asked=Asked(PRIOR[part], REFERENCE[part]))
    verdicts = [one.verdict for one in expected]
    assert found["verdict"].astype(str).tolist() == verdicts
    assert len(set(verdicts)) >= 2
    for row, one in enumerate(expected):
        if one.wanted is not None:
            assert found["wanted"][row] == pytest.approx(one.wanted, abs=1e-5)
        assert found["first_k"][row] == one.length(0.1)
        for name, value in zip(("low", "high"), one.interval or (), strict=False):
            assert found[name][row] == pytest.approx(value, abs=1e-5)
        if one.fits is not None:
            np.testing.assert_allclose(found["fits"][row], one.fits, atol=1e-5)
            assert found["number"][row] == pytest.approx(one.number, rel=1e-5)
    assert ("fits" in found) == (expected[0].fits is not None)


def test_a_calibration_without_probes_has_no_signature(pcme):
    of_rows = Confidence.fit(RNG.normal(size=(60, 30)), np.arange(60) % 2 == 0)
    assert not readable(of_rows)
    judges = {"t2i": ServedJudge(Judge(of_rows))}
    assert "confidence_t2i" not in Signatures(pcme.model, judges=judges).functions
    for direction, there in (("i2t", True), ("t2i", False)):
        judges = {direction: ServedJudge(JUDGES["a class"])}
        module = Signatures(pcme.model, image_only=True, judges=judges)
        assert (f"confidence_{direction}" in module.functions) == there


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mean_score": np.nan}, "`mean_score` must be finite"),
        ({"score_variance": -1.0}, "`score_variance` must not be negative"),
        ({"top_scores": np.nan}, "`top_scores` must be finite"),
        ({"agreement": np.nan}, "`agreement` must be finite"),
        ({"reference_score": np.inf}, "`reference_score` must be finite"),
    ],
)
def test_bad_scores_are_refused(pcme, wrong, said):
    function = signature(pcme.model, JUDGES["words and captions"], "i2t")
    specs = function.structured_input_signature[0]
    values = [tf.fill((1, *spec.shape[1:]), wrong.get(spec.name, 1.0)) for spec in specs]
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        function(*values)


def test_one_row_does_not_stand_for_many(pcme):
    function = signature(pcme.model, JUDGES["a class"], "i2t")
    specs = function.structured_input_signature[0]
    values = [tf.ones((3 if n else 1, *spec.shape[1:])) for n, spec in enumerate(specs)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have as many rows as"):
        function(*values)


def test_words_have_the_banks_prior():
    bank = packaged_bank()
    texts = [*bank.stems[::60], "dogs", "Two dogs on the Beach!", "a man's glasses", "zorps", ""]
    texts += ["women", "the ladies", "boxes and dishes", "one two three four", "the", "dog dogs"]
    texts += ["a dog.", "A DOG . ", "un café à Paris", "birthday cake with candles and fruit"]
    expected = priors(texts, bank)
    assert 5 < np.isnan(expected).sum() < 12
    found = PriorFunction(bank)(tf.constant(texts)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_reference_is_the_mean_of_the_ten_best():
    rng = np.random.default_rng(3)
    items, asked = ({"mean": rng.normal(size=(n, 8)).astype("float32")} for n in (30, 4))
    scores = asked["mean"] @ items["mean"].T
    best = np.sort(scores, axis=1)[:, -10:].mean(axis=1)

    def product(images, captions):
        return tf.matmul(images["mean"], captions["mean"], transpose_b=True)

    halves = {"mean": tf.constant(items["mean"])}
    for direction in ("t2i", "i2t"):
        found = reference_scores(product, direction, halves, asked)
        np.testing.assert_allclose(found, best, rtol=1e-5)
    assert len(SCORES.top[0]) == DEPTH
