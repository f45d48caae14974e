"""The recipes of VSE++, VSRN and their Gaussian versions from end to end, on a few toy scenes."""

import json

import numpy as np
import pytest

import crop_ambiguity
import gaussian_vsepp_coco
import gaussian_vsrn_flickr30k
import vse_coco
import vsrn_flickr30k
import zoo
from zoo import cli, training
from zoo.data import coco, toy_scenes
from zoo.errors import InputError
from zoo.files import RunFolder

SMALL = ["--smoke", "--image-size=32", "--dim=8", "--word-dim=8", "--batch-size=8", "--max-words=9"]


@pytest.fixture(scope="module", autouse=True)
def scenes(tmp_path_factory):
    """A small set in place of the embedded one."""
    root = tmp_path_factory.mktemp("scenes") / "toy"
    toy_scenes.generate(root, num_images=60, num_species=6, image_size=48, region_dim=16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_scenes, "generate", lambda root_of_recipes: root)
        yield root


@pytest.fixture(scope="module")
def annotations(scenes, tmp_path_factory):
    """The files of ECCV Caption for the test scenes: CxC adds the next scene's first caption."""
    folder = tmp_path_factory.mktemp("annotations")
    layout = scenes / "coco"
    records = coco.load(
        layout / "annotations" / "dataset_coco.json", layout, split="test", verbose=False
    ).records
    np.save(folder / "coco_test_ids.npy", np.sort(records.caption_ids))
    captions = {int(image): [] for image in records.image_ids}
    for caption, image in zip(records.caption_ids, records.caption_image, strict=True):
        captions[int(records.image_ids[image])].append(int(caption))
    images = list(captions)
    more = {
        image: [*captions[image], captions[images[(i + 1) % len(images)]][0]]
        for i, image in enumerate(images)
    }
    for name, matches in (("original", captions), ("cxc", more), ("eccv", more)):
        inverse = {}
        for image, own in matches.items():
            for caption in own:
                inverse.setdefault(caption, []).append(image)
        for kind, table in (("image_to_caption", matches), ("caption_to_image", inverse)):
            (folder / f"{name}_{kind}.json").write_text(json.dumps(table))
    return folder


@pytest.fixture(scope="module")
def gaussian(annotations, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "gaussian_vsepp"
    gaussian_vsepp_coco.main([*SMALL, f"--out={out}", f"--annotations-dir={annotations}"])
    return RunFolder.existing(out)


@pytest.mark.slow
def test_gaussian_vsepp_and_rpc2(gaussian):
    history = training.read_history(gaussian.history_path)
    assert list(history["phase"]) == ["sum_of_hinges", "semi_hard"]
    metrics = gaussian.metrics
    assert set(metrics["retrieval"]) == {"kl", "euclidean"}
    assert {"cxc_i2t_r_precision", "cxc_t2i_r_precision"} <= set(metrics["coco"])
    assert {"uncertainty", "ambiguity_spearman", "true_matches", "seconds"} <= set(metrics)
    model = zoo.from_preset(gaussian.path)
    variance = np.asarray(model.encode_captions(["a red bird"]).variance())
    assert variance.shape == (1, 8)
    assert ((variance >= 0.1) & (variance <= 10)).all()


@pytest.mark.slow
def test_rpc2_is_shown(gaussian, capsys):
    gaussian_vsepp_coco.main([*SMALL, f"--out={gaussian.path}"])
    printed = capsys.readouterr().out
    assert "is finished" in printed
    assert "RPC2" in printed


@pytest.mark.slow
def test_crop_ambiguity_of_that_run(gaussian, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HALO_CACHE", str(tmp_path / "cache"))
    flags = [
        f"--model={gaussian.path}",
        f"--out={tmp_path / 'crops'}",
        "--thresholds",
        "0.2",
        "0.9",
    ]
    results = crop_ambiguity.main(flags)
    few, all_of_them = results["selection_accuracy"]
    assert few["triplets"] <= all_of_them["triplets"] == results["images"] > 3
    assert 0 <= all_of_them["images"] <= 1
    assert {path.name for path in (tmp_path / "crops" / "plots").iterdir()} == {
        "crops.png",
        "selection_accuracy.png",
    }
    assert "Selection accuracy" in capsys.readouterr().out


@pytest.mark.slow
def test_vsrn_tells_captions_while_it_trains(tmp_path):
    out = tmp_path / "run"
    vsrn_flickr30k.main([*SMALL, "--captioning-weight=0.1", f"--out={out}"])
    run = RunFolder.existing(out)
    assert (training.read_history(run.history_path)["captioning"] > 0).all()
    model = zoo.from_preset(out)
    assert not model.auxiliaries
    assert model.image_encoder.input_shape == (None, 12, 16)
    assert "true_matches" in run.metrics
    with pytest.raises(InputError, match="Gaussian model of pictures"):
        crop_ambiguity.main([f"--model={out}", f"--out={tmp_path / 'crops'}"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "flags"),
    [
        (vse_coco, ["--features=regions", "--mining=sum"]),
        (gaussian_vsrn_flickr30k, ["--similarity=min_kl"]),
    ],
)
def test_the_other_recipes(recipe, flags, tmp_path):
    results = recipe.main([*SMALL, *flags, f"--out={tmp_path / 'run'}"])
    assert 0 <= results["true_matches"]["i2t_r_precision"] <= 100


def test_epochs_must_be_in_order(capsys):
    with pytest.raises(SystemExit):
        cli.parse(vse_coco.Settings, ["--epochs=3", "--drop-epoch=2", "--warm-up-epochs=4"])
    assert "--warm-up-epochs" in capsys.readouterr().err
