"""DAA's recipes from end to end, and its terms on another recipe, on small toy sets."""

import contextlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import daa_cub
import daa_training
import vse_coco
import zoo
from halo_search.errors import MissingPackageError
from zoo import cli, data, evaluation, losses, metrics, similarities, training
from zoo.models.run_folder import RunFolder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("run_eagerly", "small_sets")]
SMALL = ["--smoke", "--image-size=32", "--dim=8", "--batch-size=8", "--max-words=9"]
SMALL += ["--steps-per-epoch=1"]


def run(recipe, out, *flags):
    recipe.main([*flags, f"--out={out}"])
    return RunFolder.existing(out)


@pytest.fixture(scope="module")
def regions(tmp_path_factory, small_sets):
    """VSE++ on regions, with the term and its metric."""
    flags = ["--smoke", "--features=regions", "--word-dim=8", *SMALL[2:]]
    out = tmp_path_factory.mktemp("runs") / "regions"
    return run(vse_coco, out, *flags, "--daa-weight=5", "--asp")


def test_any_recipe_takes_the_terms_by_one_argument(regions):
    history = training.read_history(regions.history_path)
    assert np.isfinite(history["semantic_precision"]).all()
    for side in ("i2t", "t2i"):
        assert ((history[f"val_{side}_asp"] > 30) & (history[f"val_{side}_asp"] < 100)).all()


def test_asp_is_that_of_the_saved_model(regions):
    split = data.open(regions.data, "test")
    model = zoo.from_preset(regions.path)
    pairs = evaluation.encode(model, split.records, split.source).pairs(similarities.cosine)
    found = metrics.average_semantic_precision(pairs.in_memory(), split.records.semantics.matrix())
    assert set(regions.metrics["asp"]) == {"i2t", "t2i"}
    for side, expected in regions.metrics["asp"].items():
        assert 100 * found[side] == pytest.approx(expected, abs=0.01)


def test_the_model_keeps_its_term(regions):
    model = zoo.from_preset(regions.path)
    (term,) = [term for term in model.auxiliaries if isinstance(term, losses.AuxiliaryRanking)]
    assert (term.weight, term.loss.temperature) == (5.0, 0.01)


def test_without_a_term_nothing_is_counted():
    settings = cli.parse(vse_coco.Settings, [])
    assert "semantics" not in settings.describe_data("coco", "toy_scenes")
    assert settings.ranking_terms() == []


def test_a_run_is_measured_as_its_flags_say(monkeypatch):
    run = SimpleNamespace(finished=False, replicas=contextlib.nullcontext, train=None)
    model = SimpleNamespace(with_auxiliaries=lambda *_: None)
    monkeypatch.setattr(training, "start", lambda *_: run)
    monkeypatch.setattr(daa_training, "build", lambda *_: model)
    monkeypatch.setattr(daa_training, "train_phases", lambda *_: None)
    monkeypatch.setattr(training, "finish", lambda run, **measured: measured)
    measured = daa_cub.main(["--smoke", "--test-similarities", "own", "euclidean"])
    assert measured["similarities"] == ("own", "euclidean")


def test_a_missing_package_is_told_before_the_data_are_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(MissingPackageError, match=r"keras_hub .*\[models\]"):
        daa_cub.main(["--smoke", f"--out={tmp_path / 'run'}"])
    assert not (tmp_path / "run").exists()
