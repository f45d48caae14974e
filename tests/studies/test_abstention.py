"""The benchmark of abstention: its questions, its figures, and anyone's file."""

import numpy as np
import pytest

from studies.abstention import __main__ as command
from studies.abstention import questions, scoring
from studies.abstention.questions import KINDS
from studies.abstention.rivals import _stays
from studies.abstention.told import Asked
from zoo.confidence import QueryScores
from zoo.errors import InputError


def test_paraphrases_and_unknown_words():
    rng = np.random.default_rng(0)
    caption = "A small dog runs over grass and a man sits near the street ."
    said = questions.paraphrased(caption, rng).split()
    assert said[:2] == ["a", "guy"]  # the halves changed places, and so did words
    assert "and" in said
    assert not {"small", "dog", "grass", "man", "street"} & set(said)
    strange = questions.of_unknown_words(caption, rng).split()
    kept = [word for word in strange if word in questions.FUNCTION_WORDS]
    assert kept == ["a", "and", "a", "the"]
    assert not {"small", "dog", "runs", "grass"} & set(strange)
    assert len(strange) == len(caption.split()) - 1  # the full stop


def test_captions_are_spread_over_images():
    owner = np.repeat(np.arange(10), 5)
    rows = questions.rows_of(["x"] * 50, owner, 20, seed=1)
    assert np.bincount(owner[rows], minlength=10).tolist() == [2] * 10
    assert len(set(rows)) == 20


def truth(count=200, seed=0):
    rng = np.random.default_rng(seed)
    right = np.concatenate([rng.random(count) < 0.5, np.zeros(count, bool)])
    right = np.concatenate([right, rng.random(count) < 0.5, np.zeros(count, bool)])
    group = np.tile(np.arange(count) // 2, 4)
    return {"kind": np.repeat(KINDS, count), "right": right, "group": group}


def test_an_oracle_and_a_coin():
    known = truth()
    present = np.isin(known["kind"], ("answerable", "paraphrased")).astype(float)
    found = scoring.with_intervals(known, known["right"].astype(float), present, draws=50)
    for name in ("nAUC", "nAUC paraphrased", "AUROC removed", "AUROC unknown words"):
        assert found[name] == pytest.approx((1, 1, 1))
    assert found["calibration error"][0] == 0
    coin = np.random.default_rng(1).normal(size=800)
    found = scoring.with_intervals(known, coin, coin, draws=100)
    for name, value in (("nAUC", 0), ("AUROC removed", 0.5), ("AUROC unknown words", 0.5)):
        assert found[name][1] < value < found[name][2]
    assert np.isnan(found["calibration error"][0])  # it is no probability


def test_areas_by_hand():
    assert scoring.auroc(np.array([3.0, 1.0]), np.array([2.0, 1.0])) == 0.625
    right = np.array([True, False, True, False])
    # Surest first: wrong, right, wrong, right.
    confidence = np.array([0.3, 0.9, 0.1, 0.2])
    assert scoring.area_of_risk(confidence, right) == pytest.approx((1 + 1 / 2 + 2 / 3 + 1 / 2) / 4)
    assert scoring.area_of_risk(np.ones(4), right) == pytest.approx(0.5)


def test_draws_take_whole_groups():
    group = np.array([5, 5, 9, 7, 7, 7])
    for rows in scoring.resamples(group, 20):
        counts = {one: np.sum(group[rows] == one) / np.sum(group == one) for one in (5, 7, 9)}
        assert sum(counts.values()) == 3
        assert all(count == int(count) for count in counts.values())


def test_anyones_file_is_scored_by_one_command(tmp_path, capsys):
    known = truth()
    np.savez(tmp_path / "truth.npz", **known)
    scoring.write_scores(tmp_path / "mine.csv", known["right"].astype(float))
    np.save(tmp_path / "coin.npy", np.random.default_rng(0).random(800))
    files = [str(tmp_path / name) for name in ("mine.csv", "coin.npy")]
    against = ["--against", str(tmp_path / "coin.npy")]
    assert command.main(["score", str(tmp_path), *files, "--draws", "20", *against]) == 0
    printed = capsys.readouterr().out
    assert "| mine | **1.000** [1.000, 1.000]" in printed
    assert "| mine − coin | +" in printed
    assert "| coin − coin | +0.000 [+0.000, +0.000]" in printed


def test_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("confidence\n1\n2\n")
    with pytest.raises(InputError, match=r"scores.csv: expected 3 rows .*found \(2, 1\)"):
        scoring.read_scores(path, 3)
    path.write_text("confidence\n1\nnan\n")
    with pytest.raises(InputError, match="expected finite numbers"):
        scoring.read_scores(path, 2)
    path.write_text("confidence\n1\nmany\n")
    with pytest.raises(InputError, match="cannot be read as scores"):
        scoring.read_scores(path, 2)
    with pytest.raises(InputError, match=r"gone\.npy: cannot be read"):
        scoring.read_scores(tmp_path / "gone.npy", 2)


def test_a_clear_first_answer_is_stable():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(6, 16))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    answers = points[:, None] + rng.normal(0, 0.3, (6, 20, 16))
    answers[:3, 0] = points[:3]  # three questions with a clear answer
    scores = -np.sum((points[:, None] - answers) ** 2, axis=-1)
    order = np.argsort(-scores, axis=1)
    answers = np.take_along_axis(answers, order[..., None], axis=1)
    found = QueryScores.of_matrix(scores)
    asked = Asked(found, points, answers, np.zeros(6), np.zeros(6))
    assert (_stays(asked, 1e-4) == 1).all()
    shaken = _stays(asked, 0.5)
    assert shaken[:3].mean() > shaken[3:].mean()
