"""The main job from end to end, on a small set of toy birds."""

import shutil
from types import SimpleNamespace

import pytest

import pcme_coco
import pcme_cub
import zoo
from zoo import cli, data, training
from zoo.models.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("run_eagerly")
PHASES = ("--warm-up-epochs=1", "--fine-tuning-epochs=2")
SMALL = [
    "--backbone=tiny",
    "--image-size=32",
    "--dim=8",
    "--word-dim=8",
    "--batch-size=8",
    "--steps-per-epoch=1",
    "--log-variance-bias=-4",
    "--learning-rate=0.002",
    "--max-words=12",
]


def arguments(drawn_birds, out, *more):
    return [f"--data-dir={drawn_birds}", f"--out={out}", *SMALL, *more]


@pytest.fixture(scope="module")
def finished(drawn_birds, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "whole"
    pcme_cub.main(arguments(drawn_birds, out, *PHASES))
    return RunFolder.existing(out)


@pytest.mark.slow
def test_a_run_leaves_everything_a_reader_needs(finished):
    metrics = finished.metrics
    assert set(metrics["retrieval"]) == {"match_probability", "euclidean"}
    assert 0 <= metrics["retrieval"]["euclidean"]["i2t_r_precision"] <= 100
    assert set(metrics["uncertainty"]) == {"i2t", "t2i"}
    history = training.read_history(finished.history_path)
    assert history["phase"] == ["warm_up"] + 2 * ["fine_tuning"]
    assert {path.stem for path in finished.plots.iterdir()} == {
        "confidence_ellipses",
        "image_to_text",
        "recall_by_uncertainty",
        "risk_coverage",
        "text_to_image",
        "training_curves",
    }
    model = zoo.from_preset(finished.path)
    assert model.encode_captions(["a red bird"]).event_shape == (8,)
    assert model.tokenize(["a bird"]).shape == (1, 12)


@pytest.mark.slow
def test_a_finished_run_is_shown_and_not_repeated(finished, drawn_birds, capsys):
    before = finished.model_path.stat().st_mtime_ns
    pcme_cub.main(arguments(drawn_birds, finished.path, *PHASES))
    assert "is finished" in capsys.readouterr().out
    assert finished.model_path.stat().st_mtime_ns == before


def test_warm_up_trains_heads_and_both_grus(drawn_birds, tmp_path):
    """Figure 3 (a), section 3.1.1: the bi-GRU belongs to the head; CNN and word vectors wait."""
    flags = ["--warm-up-epochs=1", "--fine-tuning-epochs=1", "--no-cache-features"]
    settings = cli.parse(pcme_cub.Settings, arguments(drawn_birds, tmp_path / "run", *flags))
    train = data.open(pcme_cub.describe_data(settings), "train")
    model, trained = pcme_cub.build(settings, train), {}

    def run_phase(model, phase, *_, **__):
        trained[phase] = {id(variable) for variable in model.trainable_variables}

    run = SimpleNamespace(model=model, train=train, validation=None, run_phase=run_phase)
    pcme_cub.train_phases(settings, run)
    words = model.caption_encoder.get_layer("backbone").get_layer("words")
    frozen = [*model.image_encoder.get_layer("backbone").trainable_variables, *words.weights]
    every = {id(one) for one in model.trainable_variables}
    assert trained["warm_up"] == every - {id(one) for one in frozen}
    grus = [one for one in model.trainable_variables if "gru" in one.path]
    assert {id(one) for one in grus} < trained["warm_up"]
    assert len({"variance" in one.path for one in grus}) == 2, "the mean's and the variance's"
    assert trained["fine_tuning"] == every


def test_pcme_on_coco_takes_pairs_and_parts_of_the_originals(drawn_birds, tmp_path):
    flags = ["--backbone=tiny", f"--data-dir={tmp_path}", f"--out={tmp_path / 'run'}"]
    settings = cli.parse(pcme_coco.Settings, [*flags, *SMALL])
    (tmp_path / "photos").mkdir()
    table = ["image,caption"]
    for photo in sorted((drawn_birds / "images").glob("*/*.jpg"))[:12]:
        shutil.copy(photo, tmp_path / "photos")
        table.append(f"photos/{photo.name},a bird {photo.stem}")
    (tmp_path / "pairs.csv").write_text("\n".join(table))
    pairs = {"loader": "pairs", "root": str(tmp_path), "image_size": 32}
    train = data.open(pairs, "train")
    streams = {}

    def run_phase(model, phase, stream, *_, **__):
        streams[phase] = stream

    model = pcme_cub.build(settings, train)
    run = SimpleNamespace(model=model, train=train, validation=None, run_phase=run_phase)
    pcme_cub.train_phases(settings, run)
    for stream in streams.values():
        assert stream.augmentation.crop.area == (0.08, 1.0)
        assert stream.augmentation.flip
        (batch,) = stream().take(1)
        assert batch["images"].shape == (8, 32, 32, 3)
    rate = model.optimizer.learning_rate
    assert float(rate) == pytest.approx(0.1 * settings.learning_rate), "fine-tuning's"


def test_the_papers_command_trains_as_the_released_code(monkeypatch):
    """config/cub/pcme_cub.yaml, engine/trainer.py, datasets/_transforms.py."""
    small = ["--backbone=tiny", "--image-size=32", "--dim=8", "--word-dim=6", "--no-cache-features"]
    flags = [*small, "--data-dir=data", "--image-weights=none", "--steps-per-epoch=4"]
    settings = cli.parse(pcme_cub.Settings, flags)
    words = ["a red bird", "a bird", "a bird", "a bird", "a red", "red"]
    records = SimpleNamespace(captions=words, class_names=["one"])
    train = SimpleNamespace(records=records, source=None)
    found = {}
    monkeypatch.setattr(
        pcme_cub.training,
        "run_phases",
        lambda run, phases, **given: found.update(phases=phases, **given),
    )
    model = pcme_cub.build(settings, train)
    pcme_cub.train_phases(settings, SimpleNamespace(model=model))
    assert model.tokenizer.get_vocabulary(include_special_tokens=False) == ["a", "bird"], "4 times"
    warm_up, tuning = (phase.rate(phase.epochs, 4) for phase in found["phases"])
    assert float(warm_up(40)) == pytest.approx(0.9045e-4, rel=1e-3), "T_max: 50 over 10 epochs"
    assert float(tuning(200)) == pytest.approx(0.0, abs=1e-9)
    noise = found["batches"](train, 0).augmentation
    assert (noise.word_dropping, noise.word_deleting) == (0.1, 0.1)
    assert found["optimizer"](model, 1.0).global_clipnorm == 2.0
    assert settings.select == "last", "val_epochs: 50 of 50"
    assert cli.parse(pcme_coco.Settings, flags).select == "best"


def test_a_truncated_photo_is_named_and_can_be_skipped(drawn_birds, tmp_path, error_of):
    root = tmp_path / "broken"
    shutil.copytree(drawn_birds, root)
    photo = sorted((root / "images").glob("*/*.jpg"))[0]
    photo.write_bytes(photo.read_bytes()[:100])
    (line,) = error_of(cli.run, pcme_cub.main, arguments(root, tmp_path / "run")).splitlines()
    assert photo.name in line
    settings = cli.parse(pcme_cub.Settings, arguments(root, tmp_path / "other", "--skip-bad"), "")
    description = pcme_cub.describe_data(settings)
    splits = [data.open(description, name) for name in ("train", "validation", "test")]
    skipped = [item for split in splits for item in split.records.skipped]
    assert sum("bad images" in item.kind for item in skipped) == 1


def test_the_backbone_is_that_of_the_weights(tmp_path):
    weights = tmp_path / "mobilenetv2_imagenet_notop.weights.h5"
    weights.write_bytes(b"not HDF5")
    settings = cli.parse(pcme_cub.Settings, [f"--image-weights={weights}"], "")
    assert zoo.encoders.backbone_of_file(settings.image_weights) == "mobilenet_v2"
