import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from halo_search.confidence import Probes
from synthetic_run import encoded, records
from zoo.evaluation import calibrate_run, calibration, retrieval
from zoo.evaluation.calibration import Answers, calibrated, fitted, said_of
from zoo.evaluation.printing import sentence, show_results
from zoo.evaluation.probes import bank_of_training, make_probes
from zoo.metrics.confidence import abstention_auc
from zoo.models.run_folder import RunFolder
from zoo.similarities import ClosedFormSampledDistance

SIMILARITY = ClosedFormSampledDistance()


def split(seed, kind="gaussian", images=120, name="test", labels=4, centres=0):
    shown = records(images=images, labels=labels, seed=seed)
    return encoded(dataclasses.replace(shown, name=name), seed=centres, kind=kind)


@pytest.fixture
def run(tmp_path, monkeypatch):
    # The test's classes are others, as those of a gallery that probes are asked in front of.
    validation = split(1, name="validation", images=160, labels=20, centres=1)
    test = split(2, images=160, labels=20, centres=2)
    ready = {"validation": validation, "test": test}
    monkeypatch.setattr(retrieval, "encode", lambda model, shown, source: ready[shown.name])
    splits = [SimpleNamespace(records=one.records, source=None) for one in (validation, test)]
    folder = RunFolder.open(tmp_path / "run", {}, data={"loader": "toy_birds"})
    return SimpleNamespace(
        folder=folder,
        model=SimpleNamespace(similarity=SIMILARITY),
        validation=splits[0],
        test=splits[1],
        encoded=test,
    )


def matrix(encoded, direction):
    logits = np.asarray(SIMILARITY(encoded.images, encoded.captions), float)
    matches = encoded.records.image_labels[:, None] == encoded.records.caption_labels[None]
    return (logits, matches) if direction == "i2t" else (logits.T, matches.T)


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_answers_in_blocks_are_those_of_the_whole_matrix(direction, monkeypatch):
    shown = split(2)
    monkeypatch.setattr(calibration, "_IN_BLOCK", 2000)
    answers = Answers.of(shown, SIMILARITY, direction)
    logits, matches = matrix(shown, direction)
    best = np.where(matches, logits, -np.inf).max(axis=1)
    np.testing.assert_allclose(answers.scores.mean, logits.mean(axis=1), rtol=1e-4)
    np.testing.assert_allclose(answers.scores.variance, logits.var(axis=1), rtol=1e-3)
    np.testing.assert_array_equal(answers.correct, best == logits.max(axis=1))
    assert answers.num_items == logits.shape[1]
    side = shown.image_uncertainty if direction == "i2t" else shown.caption_uncertainty
    np.testing.assert_allclose(answers.uncertainty, side, rtol=1e-5)  # log det is a logarithm
    np.testing.assert_array_equal(answers.signals["uncertainty"], -answers.uncertainty)
    ahead = logits.max(axis=1) - logits.mean(axis=1)
    np.testing.assert_allclose(answers.signals["best_minus_mean"], ahead, rtol=1e-4, atol=1e-4)
    few = Answers.of(shown, SIMILARITY, direction, most=30, seed=1)
    place = np.searchsorted(np.sort(answers.scores.mean), few.scores.mean - 1e-3)
    assert len(few) == 30
    np.testing.assert_allclose(np.sort(answers.scores.mean)[place], few.scores.mean, rtol=1e-4)


def test_queries_without_a_match_are_left_out_and_none_is_an_error():
    shown = split(2)
    own = shown.records
    labels = np.where(np.arange(120) < 5, 99, own.image_labels)
    lonely = SimpleNamespace(image_labels=labels, caption_labels=own.caption_labels)
    answers = Answers.of(dataclasses.replace(shown, records=lonely), SIMILARITY, "i2t")
    assert len(answers) == 115
    lonely.caption_labels = np.full(360, 98)
    with pytest.raises(ValueError, match="no query has a match"):
        Answers.of(dataclasses.replace(shown, records=lonely), SIMILARITY, "t2i")


def test_a_run_keeps_its_probes_and_says_what_they_are_worth(run, capsys):
    arguments = (run.folder, run.model, run.validation, run.test, run.encoded)
    found = calibrate_run(*arguments)
    probes = Probes.load(run.folder.probes_path)
    for direction in ("i2t", "t2i"):
        kept = calibrated(probes, SIMILARITY, run.encoded, direction)
        answers = Answers.of(run.encoded, SIMILARITY, direction, copies=kept.copies)
        probability = said_of(kept, answers)
        one = found[direction]
        assert one["nauc"] == pytest.approx(abstention_auc(probability, answers.correct))
        assert one["nauc"] > max(one["nauc_of"].values()) - 0.15
        assert set(one["nauc_of"]) == {"uncertainty", "best_score", "best_minus_mean"}
        assert 0 <= one["calibration_error"] < 0.2
        assert one["said"] == pytest.approx(probability.mean())
        assert one["right"] == pytest.approx(answers.correct.mean())
        k = one["smallest_k"]
        assert k["coverage"] == pytest.approx(np.mean(answers.ranks <= k["k"]))
        assert k["coverage"] > 0.8
        assert kept.num_queries == one["calibration_queries"]
    # Twice the same, and as JSON.
    assert json.dumps(calibrate_run(*arguments)) == json.dumps(found)
    run.folder.finish({"confidence": found, "retrieval": {}, "split": "", "chance": None})
    lines = [sentence(*item) for item in run.folder.metrics["confidence"].items()]
    assert all("uncertainty alone" in line and "calibration error" in line for line in lines)
    show_results({**_results(), "confidence": run.folder.metrics["confidence"]})
    printed = capsys.readouterr().out
    assert all(line in printed for line in lines)


@pytest.mark.parametrize(("direction", "side"), [("t2i", "images"), ("i2t", "captions")])
def test_the_gallery_is_the_side_that_answers(direction, side, monkeypatch):
    shown, asked = split(2), []
    monkeypatch.setattr(calibration, "gallery_of", lambda items, _, of: asked.append((items, of)))
    probes = SimpleNamespace(calibrate=lambda *_, **__: "calibrated")
    assert calibrated(probes, SIMILARITY, shown, direction) == "calibrated"
    assert asked[0][0] is getattr(shown, side)
    assert asked[0][1] == side


def _results():
    retrieval = {"csd": {"i2t_recall@1": 50.0, "t2i_recall@1": 50.0}}
    return {"retrieval": retrieval, "split": "birds", "chance": None}


def test_what_cannot_be_calibrated_is_said_and_loses_no_run(run, monkeypatch):
    stale = run.folder.probes_path
    stale.write_text("of an attempt that was stopped")
    few = split(1, images=8, name="few")
    monkeypatch.setattr(retrieval, "encode", lambda *_: few)
    run.validation = SimpleNamespace(records=few.records, source=None)
    found = calibrate_run(run.folder, run.model, run.validation, run.test, run.encoded)
    assert "at least 20 probes; received 8" in found["i2t"]["why_not"]
    assert "was not calibrated: a calibration needs" in sentence("i2t", found["i2t"])
    assert stale.read_bytes() != b"of an attempt that was stopped"


def test_a_validation_split_that_is_the_test_split_calibrates_nothing(run):
    found = calibrate_run(run.folder, run.model, run.test, run.test, run.encoded)
    assert found["t2i"]["why_not"] == "the validation split is the test split"
    assert not list(run.folder.path.glob("probes*"))


def test_the_agreement_is_read_where_the_answers_vectors_are_known():
    answers = Answers.of(split(2), SIMILARITY, "t2i")
    confidence = fitted(answers)
    assert {"agreement_5", "agreement_10"} <= set(confidence.names)
    scores = dataclasses.replace(answers.scores, agreement=None, is_copy=None)
    unseen = fitted(dataclasses.replace(answers, scores=scores))
    assert "agreement_5" not in unseen.names
    with pytest.raises(ValueError, match="how like the first answer the next ones are"):
        confidence.probability(scores, answers.uncertainty)


def test_probes_of_classes_are_captions_drawn_at_random():
    probes = make_probes(None, split(2), captions=60)  # of 120 photos, three captions each
    assert len(probes.caption_images) == 60
    assert 20 < np.count_nonzero(probes.caption_images < 60) < 40


def test_the_bank_of_training_is_of_photos_drawn_at_random_with_their_own_captions(monkeypatch):
    shown = records(images=60, labels=60)
    texts = ["a cat" if owner < 30 else "a dog" for owner in shown.caption_image]
    train = SimpleNamespace(
        records=dataclasses.replace(shown, captions=texts),
        source=SimpleNamespace(select=lambda rows: np.eye(60)[rows]),
    )

    def encode(model, some, pictures):
        captions = {"mean": pictures[some.caption_image]}
        return SimpleNamespace(images={"mean": pictures}, captions=captions)

    monkeypatch.setattr("zoo.evaluation.probes.encode", encode)
    monkeypatch.setattr("zoo.evaluation.probes.MOST_BANK", 30)
    bank = bank_of_training(None, train)
    photos = bank.images.argmax(axis=1)
    assert len(photos) == 30
    assert 5 < np.count_nonzero(photos < 30) < 25
    assert bank.holding("cat").tolist() == np.flatnonzero(photos < 30).tolist()
    assert bank.holding("dog").tolist() == np.flatnonzero(photos >= 30).tolist()
