"""DAA's recipes from end to end, and its terms on another recipe, on small toy sets."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import daa_coco
import daa_cub
import daa_sgraf_flickr30k
import daa_training
import vse_coco
import zoo
from studies import daa_figures
from zoo import cli, data, evaluation, losses, metrics, similarities, training
from zoo.data import batches
from zoo.errors import InputError, MissingPackageError
from zoo.files import RunFolder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("run_eagerly", "small_sets")]
SMALL = ["--smoke", "--image-size=32", "--dim=8", "--batch-size=8", "--max-words=9"]
SMALL += ["--steps-per-epoch=1"]
REGIONS = [*SMALL, "--word-dim=8", "--similarity-dim=4"]


def run(recipe, out, *flags):
    recipe.main([*flags, f"--out={out}"])
    return RunFolder.existing(out)


@pytest.fixture(scope="module")
def birds(tmp_path_factory, small_sets):
    out = tmp_path_factory.mktemp("runs") / "birds"
    return run(daa_cub, out, *SMALL, "--fine-tuning-epochs=2", "--daa-samples=2")


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
    found = metrics.average_semantic_precision(pairs.kept(), split.records.semantics.matrix())
    assert set(regions.metrics["asp"]) == {"i2t", "t2i"}
    for side, expected in regions.metrics["asp"].items():
        assert 100 * found[side] == pytest.approx(expected, abs=0.01)


def test_the_model_keeps_its_term(regions):
    model = zoo.from_preset(regions.path)
    (term,) = [term for term in model.auxiliaries if isinstance(term, losses.AuxiliaryRanking)]
    assert (term.weight, term.loss.temperature) == (5.0, 0.01)


def test_the_cache_is_shared_and_kept(regions, small_sets):
    assert len(list((small_sets / "semantics").glob("semantics-cider-*.npz"))) == 3, "of each split"


@pytest.mark.very_slow  # ASP is asked above, and what each phase trains below
def test_birds_leave_asp_of_every_epoch_and_of_the_end(birds):
    history = training.read_history(birds.history_path)
    assert history["phase"] == ["pre_training", "fine_tuning", "fine_tuning"]
    assert np.isfinite(history["semantic_precision"]).all()
    for side in ("i2t", "t2i"):
        assert ((history[f"val_{side}_asp"] > 30) & (history[f"val_{side}_asp"] < 100)).all()
        assert 40 < birds.metrics["asp"][side] < 100
        by_cosine = birds.metrics["by_similarity"]["cosine"]["asp"][side]
        assert by_cosine != birds.metrics["asp"][side]
        assert by_cosine == pytest.approx(birds.metrics["asp"][side], abs=10)


@pytest.mark.very_slow
def test_a_recipes_own_weight_and_samples(birds):
    model = zoo.from_preset(birds.path)
    (term,) = [term for term in model.auxiliaries if isinstance(term, losses.AuxiliaryRanking)]
    assert (term.weight, term.num_samples) == (300.0, 2)


@pytest.mark.very_slow  # each figure is asked in tests/studies
def test_figures_of_the_paper_from_runs(birds, tmp_path, capsys):
    """Figures 1 (b), 1 (c), 3 and 4; the whole gallery's ASP is the run's own."""
    other = RunFolder.open(tmp_path / "other", {}, data=birds.data)
    other.save_model(zoo.from_preset(birds.path))
    other.history_path.write_bytes(birds.history_path.read_bytes())
    out = tmp_path / "figures"
    runs = [str(birds.path), str(other.path)]
    found = daa_figures.main(
        ["--runs", *runs, f"--out={out}", "--shown=5", "--thresholds", "0", "0.3"]
    )
    assert {path.name for path in out.iterdir()} == {
        "asp.png",
        "asp_at.png",
        "figures.json",
        "positives.png",
        "retrieved.png",
        "written.json",
    }
    for side in ("i2t", "t2i"):
        curve = found["precision_at"]["birds"][side]
        assert 100 * curve["asp"][-1] == pytest.approx(birds.metrics["asp"][side], abs=0.01)
    of_runs = found["retrieved"]["runs"]
    assert of_runs["birds"] == of_runs["other"]  # one model under two names
    assert len(of_runs["birds"]["images"]) == 5
    split = data.open(birds.data, "test")
    caption = split.records.captions.tolist().index(found["retrieved"]["caption"])
    expected = split.records.semantics.matrix().rows(0, split.records.num_images)
    np.testing.assert_allclose(
        of_runs["birds"]["scores"], expected[of_runs["birds"]["images"], caption], rtol=1e-5
    )
    few, more = found["pairs_above"][::-1]
    assert few < more
    assert found["annotated"] > 0
    scenes = RunFolder.open(tmp_path / "scenes", {}, data={"loader": "toy_scenes"})
    scenes.save_model(zoo.from_preset(birds.path))
    with pytest.raises(InputError, match="expected the test split of"):
        daa_figures.main(["--runs", runs[0], str(scenes.path), f"--out={out}"])


def test_pre_training_trains_the_whole_textual_encoder():
    settings = cli.parse(daa_cub.Settings, [*SMALL])
    description = settings.data("cub", "toy_birds", **settings.pictures())
    train = data.open(description, "train")
    model, trained = daa_training.build(settings, train), {}

    def fit(model, phase, *_, **__):
        trained[phase] = {id(variable) for variable in model.trainable_variables}

    run = SimpleNamespace(model=model, train=train, validation=None, fit=fit)
    daa_training.fit(settings, run, batches.class_pairs)
    first, last = trained["pre_training"], trained["fine_tuning"]
    network = {id(one) for one in model.image_encoder.get_layer("backbone").trainable_variables}
    words = {id(one) for one in model.caption_encoder.trainable_variables}
    assert network
    assert not network & first
    assert words < first
    assert last == first | network


@pytest.mark.very_slow  # a run of scenes, with one of the terms, is below
def test_scenes_and_both_terms(tmp_path):
    folder = run(daa_coco, tmp_path / "run", *SMALL, "--smooth-ap-weight=2", "--no-asp")
    history = training.read_history(folder.history_path)
    assert np.isfinite(history["smooth_average_precision"]).all()
    assert "val_i2t_asp" not in history
    assert "asp" not in folder.metrics


@pytest.mark.very_slow  # SGRAF trains in test_sgraf.py, and test_sets.py has an ensemble
def test_sgraf_is_the_mean_of_both(tmp_path):
    sgr = run(daa_sgraf_flickr30k, tmp_path / "sgr", *REGIONS, "--module=sgr")
    assert "uncertainty" not in sgr.metrics
    saf = RunFolder.open(tmp_path / "saf", {})
    saf.save_model(zoo.from_preset(sgr.path))  # only that there are two is asked here
    runs = (sgr, saf)
    both = run(
        daa_sgraf_flickr30k,
        tmp_path / "both",
        *REGIONS,
        "--ensemble",
        *(str(one.path) for one in runs),
    )
    assert list(both.metrics["retrieval"]) == [*(str(one.path) for one in runs), "ensemble"]
    assert set(both.metrics["asp"]) == {"i2t", "t2i"}


def test_without_a_term_nothing_is_counted():
    settings = cli.parse(vse_coco.Settings, [])
    assert "semantics" not in settings.data("coco", "toy_scenes")
    assert settings.ranking_terms() == []


def test_a_missing_package_is_told_before_the_data_are_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(MissingPackageError, match=r"keras_hub .*\[text\]"):
        daa_cub.main(["--smoke", f"--out={tmp_path / 'run'}"])
    assert not (tmp_path / "run").exists()
