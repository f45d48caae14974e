"""A folder of pictures with a table of captions, from the table to the report."""

import contextlib
import io
import json
import sys

import keras
import numpy as np
import pytest
from PIL import Image

import own_pairs_gru
import zoo
from zoo import cli
from zoo.files import RunFolder

pytestmark = pytest.mark.usefixtures("run_eagerly")
SMALL = ["--backbone=tiny", "--image-size=32", "--dim=8", "--word-dim=8", "--max-words=8"]
SMALL += ["--pooling=mean"]


def drawn(folder):
    folder.mkdir()
    rng = np.random.default_rng(0)
    rows = ["image,caption"]
    for index in range(24):
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(
            folder / f"{index}.jpg"
        )
        rows += [f"{index}.jpg,picture number {index}", f"{index}.jpg,noise of seed {index}"]
    (folder / "pairs.csv").write_text("\n".join(rows))
    return folder


@pytest.fixture
def photos(tmp_path):
    return drawn(tmp_path / "photos")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The folders of a run and of its photos, of which one is none, and what the run printed."""
    photos = drawn(tmp_path_factory.mktemp("album") / "photos")
    (photos / "3.jpg").write_bytes(b"not a picture")
    out = tmp_path_factory.mktemp("runs") / "first"
    flags = ["--skip-bad", "--batch-size=16", "--epochs=1", "--steps-per-epoch=1", *SMALL]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        own_pairs_gru.main([f"--data-dir={photos}", f"--out={out}", *flags])
    return out, photos, printed.getvalue()


@pytest.mark.slow
def test_one_command_from_a_table_to_a_report(first):
    out, _, printed = first
    run = RunFolder.existing(out)
    assert run.finished
    assert "Warning: the test has 2 images only" in printed
    assert "times chance" in printed
    assert f"halo search build OTHER_PHOTOS {out}/index --model {out}" in printed
    assert run.model_path.exists()
    (line,) = (out / "skipped.jsonl").read_text().splitlines()[:1]
    assert "3.jpg" in json.loads(line)["where"]


def test_a_folder_without_a_table_is_named(tmp_path, capsys):
    places = [f"--data-dir={tmp_path}", f"--out={tmp_path / 'run'}", "--backbone=tiny"]
    with pytest.raises(SystemExit) as stop:
        cli.run(own_pairs_gru.main, places)
    assert stop.value.code == 2
    assert "pairs.csv" in capsys.readouterr().err


def test_weights_that_cannot_be_fetched_name_the_flag_that_then_works(
    photos, tmp_path, capsys, monkeypatch
):
    """The flag was refused: the folder "holds a run with other settings", though untrained."""

    def offline(*args, **kwargs):
        raise Exception("URL fetch failure: no network")

    monkeypatch.setattr(keras.utils, "get_file", offline)
    monkeypatch.setattr("keras.src.utils.file_utils.get_file", offline)
    flags = [f"--data-dir={photos}", f"--out={tmp_path / 'run'}", "--image-size=32", "--dim=8"]
    with pytest.raises(SystemExit) as stop:
        cli.run(own_pairs_gru.main, flags)
    assert stop.value.code == 2
    assert "--image-weights FILE" in capsys.readouterr().err
    reached = []
    monkeypatch.setattr(
        own_pairs_gru.pcmepp_coco, "build", lambda *_: reached.append(1) or sys.exit(7)
    )
    with pytest.raises(SystemExit) as stop:
        own_pairs_gru.main([*flags, "--image-weights=none"])
    assert (stop.value.code, reached) == (7, [1])
    assert RunFolder.existing(tmp_path / "run").settings["image_weights"] is None


def test_a_table_with_semicolons_and_names_of_its_own(photos, tmp_path):
    text = (photos / "pairs.csv").read_text().replace("image,caption", "file,text")
    (photos / "pairs.csv").write_text(text.replace(",", ";"))
    flags = ["--image-column=file", "--caption-column=text", "--separator=;"]
    settings = cli.parse(own_pairs_gru.Settings, [f"--data-dir={photos}", *flags])
    described = settings.data("pairs", "toy_scenes", **own_pairs_gru.options(settings))
    assert zoo.data.open({**described, "image_size": 16}, "train").records.num_images == 20
    plain = cli.parse(own_pairs_gru.Settings, [f"--data-dir={photos}"])
    assert "separator" not in plain.data("pairs", "toy_scenes", **own_pairs_gru.options(plain))


@pytest.mark.very_slow  # another run
def test_a_finished_run_is_trained_further(first, tmp_path):
    out, photos, _ = first
    second = tmp_path / "second"
    more = [f"--data-dir={photos}", f"--start-from={out}", "--epochs=1", "--steps-per-epoch=1"]
    results = own_pairs_gru.main([*more, "--skip-bad", "--batch-size=16", f"--out={second}"])
    runs = [RunFolder.existing(folder) for folder in (out, second)]
    assert [run.settings["dim"] for run in runs] == [8, 8], "the model's own size"
    assert runs[1].settings["mean_epochs"] == 0
    assert results["split"] == runs[0].metrics["split"]
    rows = [run.history_path.read_text().splitlines() for run in runs]
    assert [len(lines) - 1 for lines in rows] == [1, 1]


def test_defaults_follow_the_backbone(photos, capsys):
    settings = cli.parse(own_pairs_gru.Settings, [f"--data-dir={photos}"])
    assert (settings.network, settings.weights) == ("mobilenet_v2", "imagenet")
    assert settings.cache_features
    assert settings.mean_epochs + settings.frozen_epochs == settings.epochs == 30
    named = [f"--data-dir={photos}", "--image-weights=resnet50_notop.h5", "--epochs=6"]
    settings = cli.parse(own_pairs_gru.Settings, named)
    assert settings.network == "resnet50"
    assert (settings.mean_epochs, settings.frozen_epochs) == (2, 4)
    own = [f"--data-dir={photos}", "--backbone=vit_b_32"]
    with pytest.raises(SystemExit):
        cli.parse(own_pairs_gru.Settings, own)
    assert "--image-weights must be a local file of CLIP's" in capsys.readouterr().err
    clip = [*own, "--image-weights=clip.safetensors"]
    settings = cli.parse(own_pairs_gru.Settings, [*clip, "--bpe=merges.txt.gz"])
    assert settings.is_clip
    assert not settings.cache_features
    assert (settings.frozen_epochs, settings.caption_rate) == (2, 0.1)
