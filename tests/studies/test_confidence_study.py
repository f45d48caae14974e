"""The study of signals and calibrated probabilities, by hand, of several runs, and as a command."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from studies import confidence as command
from studies import publishing
from studies.confidence_study import confidence_study, study_table, summarise_studies
from synthetic_run import encoded, records
from zoo.confidence import Confidence, QueryScores, abstention_auc
from zoo.embeddings.spaces import SPACES
from zoo.errors import InputError
from zoo.evaluation.calibration import SHRINKAGE
from zoo.similarities import ClosedFormSampledDistance, Cosine

SIMILARITY = ClosedFormSampledDistance()


def split(seed, kind="gaussian", images=120, labels=6):
    shown = records(images=images, labels=labels, seed=seed)
    return encoded(dataclasses.replace(shown, name=f"random {seed}"), seed=0, kind=kind)


@pytest.fixture(scope="module")
def test():
    return split(2)


@pytest.fixture(scope="module")
def study(test):
    return confidence_study(test, SIMILARITY, split(1, images=160), divisions=1)


def test_signals_and_the_row_of_the_validation_split_by_hand(study, test):
    logits = np.asarray(SIMILARITY(test.images, test.captions), float).T
    matches = test.records.caption_labels[:, None] == test.records.image_labels[None]
    correct = matches[np.arange(len(logits)), logits.argmax(1)]
    best, second = -np.sort(-logits, axis=1)[:, :2].T
    found = study["t2i"]
    assert found["recall@1"] == pytest.approx(correct.mean())
    by_hand = {
        "uncertainty": -test.caption_uncertainty,
        "best_score": best,
        "margin": best - second,
        "best_minus_mean": best - logits.mean(1),
        "z_score": (best - logits.mean(1)) / logits.std(1),
    }
    for name, values in by_hand.items():
        assert found["signals"][name]["nauc"] == pytest.approx(
            abstention_auc(values, correct), abs=2e-3
        )
    seen = split(1, images=160)
    shown = np.asarray(SIMILARITY(seen.images, seen.captions), float).T
    own = seen.records.image_labels[shown.argmax(1)] == seen.records.caption_labels
    penalty = SHRINKAGE / len(own)
    space = SPACES["csd"]
    scores, shown = (
        QueryScores.of_matrix(rows, vectors=space.gallery(one.images))
        for rows, one in ((logits, test), (shown, seen))
    )
    confidence = Confidence.fit(shown, own, seen.caption_uncertainty, penalty=penalty)
    assert "agreement_10" in confidence.names  # which helps here
    probability = confidence.probability(scores, test.caption_uncertainty)
    row = found["calibrated"]["validation"]
    assert row["nauc"] == pytest.approx(abstention_auc(probability, correct), abs=5e-3)
    assert row["nauc_of_signals"]["best_score"] == pytest.approx(
        found["signals"]["best_score"]["nauc"]
    )


def test_a_table_of_several_runs(study):
    other = json.loads(json.dumps(study))
    other["i2t"]["signals"]["margin"]["nauc"] += 0.2
    together = summarise_studies([study, other])["i2t"]
    margin = study["i2t"]["signals"]["margin"]["nauc"]
    found = together["signals"]["margin"]["nauc"]
    assert found == {
        "mean": pytest.approx(margin + 0.1),
        "deviation": pytest.approx(0.1 * np.sqrt(2)),
        "runs": 2,
    }
    table = study_table([study, other])
    assert f"| first − second | {margin + 0.1:.2f} ± 0.14 |".replace("-", "−") in table
    assert table.count("without uncertainty") == 3


def test_points_and_a_split_that_cannot_be_calibrated():
    few = split(3, kind="point", images=12)
    study = confidence_study(split(2, kind="point"), Cosine(), few, divisions=1)
    assert "uncertainty" not in study["i2t"]["signals"]
    assert "at least 20 queries" in study["i2t"]["calibrated"]["validation"]["why_not"]
    assert "without uncertainty" not in study_table([study])


def test_the_command_measures_runs_and_writes_both_files(tmp_path, monkeypatch, capsys):
    splits = {"test": split(2), "validation": split(1)}
    model, asked = SimpleNamespace(similarity=SIMILARITY), []

    def opened(name, data_dir, split="test", held_out=None):
        asked.append((split, held_out))
        return model, SimpleNamespace(records=splits[split].records, source=split)

    monkeypatch.setattr(command, "open_run", opened)
    monkeypatch.setattr(publishing, "data_of", lambda name: {})
    monkeypatch.setattr(command, "encode", lambda model, shown, source: splits[source])
    flags = ["--divisions=1", "--held-out=val2", f"--out={tmp_path / 'study'}"]
    command.main(["one", "other", *flags])
    table = (tmp_path / "study" / "confidence.md").read_text()
    assert table in capsys.readouterr().out
    written = json.loads((tmp_path / "study" / "confidence.json").read_text())
    assert set(written["runs"]) == {"one", "other"}
    nauc = written["runs"]["one"]["i2t"]["calibrated"]["half_of_test"]["nauc"]
    assert written["all"]["i2t"]["calibrated"]["half_of_test"]["nauc"] == {
        "mean": pytest.approx(nauc),
        "deviation": pytest.approx(0),
        "runs": 2,
    }
    assert asked[:2] == [("test", "val2"), ("validation", None)]
    with pytest.raises(InputError, match="--divisions must be at least 1; received 0"):
        command.main(["one", "--divisions=0"])
    with pytest.raises(InputError, match="--ranking"):
        command.main(["one", "--ranking=cosinus"])
