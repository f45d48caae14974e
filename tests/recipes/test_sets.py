"""The recipes of DivE and PVSE from end to end, on a few toy scenes and birds."""

import types

import numpy as np
import pytest

import dive_coco
import dive_flickr30k
import pvse_cub
import zoo
from zoo import cli, data, evaluation, metrics
from zoo.data.pipeline import augmentation
from zoo.models.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("run_eagerly")

SMALL = [
    "--smoke",
    "--steps-per-epoch=1",
    "--dim=8",
    "--word-dim=8",
    "--max-words=12",
    "--batch-size=8",
    "--captions-per-image=2",
    "--num-slots=2",
    "--num-iterations=1",
]


@pytest.mark.very_slow
def test_dive_on_regions_and_an_ensemble(drawn_scenes, tmp_path):
    flags = [f"--data-dir={drawn_scenes}/regions", "--features=regions", *SMALL]
    one = tmp_path / "one"
    dive_flickr30k.main([*flags, f"--out={one}"])
    results = RunFolder.existing(one).metrics
    assert results["split"].startswith("regions testall: 10 images")
    assert set(results["sets"]) == {"images", "captions"}
    assert results["sets"]["images"]["log_circular_variance"] < 0
    # Another model of the same run settings, as another seed would give it.
    other = RunFolder.open(tmp_path / "other", {})
    model = zoo.from_preset(one)
    for tower in (model.image_encoder, model.caption_encoder):
        tower.set_weights(
            [w + 0.1 * np.cos(np.arange(w.size)).reshape(w.shape) for w in tower.get_weights()]
        )
    other.save_model(model)
    out = tmp_path / "both"
    dive_coco.main([*flags, f"--out={out}", "--ensemble", str(one), str(other.path)])
    found = RunFolder.existing(out).metrics["retrieval"]
    assert set(found) == {str(one), str(other.path), "ensemble"}
    assert found[str(one)] == results["retrieval"]["smooth_chamfer"]
    settings = cli.parse(dive_coco.Settings, flags)
    held_out = data.open(dive_coco.describe_data(settings, "coco"), "test")
    mean = 0
    for path in (one, other.path):
        model = zoo.from_preset(path)
        split = evaluation.encode(model, held_out.records, held_out.source)
        mean = mean + np.asarray(model.similarity(split.images, split.captions)) / 2
    expected = metrics.evaluate_retrieval(mean, split.relevance)
    assert found["ensemble"]["rsum"] == pytest.approx(expected["rsum"])


def test_vse0_is_built_with_all_negatives_and_pvses_optimiser(monkeypatch):
    small = ["--backbone=tiny", "--image-size=32", "--dim=8", "--word-dim=8"]
    settings = cli.parse(pvse_cub.Settings, ["--method=vse0", *small])
    records = types.SimpleNamespace(captions=["a red bird"])
    model = pvse_cub.build(settings, types.SimpleNamespace(records=records))
    found = []
    monkeypatch.setattr(
        pvse_cub.training, "run_phases", lambda *_, optimizer, **__: found.append(optimizer)
    )
    pvse_cub.train_phases(settings, types.SimpleNamespace(model=model))
    optimizer = found[0](model, 1.0)
    assert optimizer.amsgrad, "train.py of PVSE's released code"
    assert (model.name, model.loss.mining) == ("vse0", "sum")


@pytest.fixture(scope="module")
def paper_on_regions():
    """DivE with the paper's settings for regions, and a model of a few numbers."""
    size = ["--dim=8", "--word-dim=6", "--num-iterations=1", "--max-words=4", "--seed=3"]
    settings = cli.parse(dive_coco.Settings, ["--data-dir=data", "--features=regions", *size])
    records = types.SimpleNamespace(captions=["a red bird"])
    source = types.SimpleNamespace(shape=(5, 12))
    train = types.SimpleNamespace(records=records, source=source)
    return settings, dive_coco.build(settings, train), train


def test_dives_rates_are_those_of_train_py(paper_on_regions):
    """0.1 for all image layers, the map of regions too, and for the captions' slots."""
    settings, model, _ = paper_on_regions
    slow = [*model.image_encoder.trainable_variables]
    slow += model.caption_encoder.get_layer("head").get_layer("caption_set").trainable_variables
    slow = {id(variable) for variable in slow}
    expected = [0.1 if id(v) in slow else 1.0 for v in model.trainable_variables]
    assert dive_coco.rates(settings, model) == expected
    assert {1.0, 0.1} == set(expected)


def test_dives_dropout_is_at_the_places_of_the_released_code(paper_on_regions):
    """model_spm.py, agg_block/attention.py: regions, words, sentence, slots (`--dropout 0.1`)."""
    _, model, _ = paper_on_regions
    rates = {}
    for tower in (model.image_encoder, model.caption_encoder):
        for part in ("backbone", "head"):
            for layer in tower.get_layer(part).layers:
                rate = getattr(layer, "rate", getattr(getattr(layer, "attention", 0), "dropout", 0))
                if rate:
                    rates[f"{tower.name} {part} {layer.name}"] = rate
    assert rates == {
        "image_encoder backbone dropout": 0.1,
        "image_encoder head image_set": 0.1,
        "caption_encoder backbone dropout": 0.1,
        "caption_encoder head dropout": 0.1,
        "caption_encoder head caption_set": 0.1,
    }


def test_dives_lost_words_are_half_masked_a_tenth_replaced_the_rest_deleted(
    paper_on_regions, monkeypatch
):
    settings, model, train = paper_on_regions
    made = []
    monkeypatch.setattr(
        dive_coco.training,
        "run_phases",
        lambda run, phases, batches, **_: made.append(batches(train, 0)),
    )
    dive_coco.train_phases(settings, types.SimpleNamespace(model=model))
    assert type(made[0].augmentation) is augmentation.SizeAugmentation
    assert made[0].augmentation.word_dropping == 0.2


def test_a_missing_file_is_one_line(drawn_scenes, tmp_path, error_of):
    flags = [f"--data-dir={drawn_scenes}/coco", "--features=resnext_bert", "--image-weights=none"]
    (line,) = error_of(cli.run, dive_coco.main, [*flags, f"--out={tmp_path}"]).splitlines()
    assert "--bert-vocabulary" in line


def test_the_settings_follow_the_method_and_the_features():
    dive, pvse = (cli.parse(dive_coco.Settings, [f"--method={m}"]) for m in ("dive", "pvse"))
    assert (dive.set_similarity, dive.set_diversity_weight) == ("smooth_chamfer", 0.01)
    assert (pvse.set_similarity, pvse.set_diversity_weight) == ("maximum_pair", 0.1)
    paper = cli.parse(dive_coco.Settings, ["--data-dir=coco", "--image-weights=imagenet"])
    assert (paper.features, paper.epochs, paper.drop_epoch) == ("resnet152", 60, None)
    given = cli.parse(dive_coco.Settings, ["--diversity-weight=0", "--similarity=chamfer"])
    assert (given.set_similarity, given.set_diversity_weight) == ("chamfer", 0.0)
