"""`halo report` from end to end, on a recipe's smoke run, and its complaints."""

import json
import re
import shutil

import numpy as np
import pytest

import pcme_2d
import zoo
from halo_zoo import report as command
from zoo import cli, data, evaluation
from zoo.data import toy_birds
from zoo.errors import InputError
from zoo.files import RunFolder
from zoo.report import inputs, markup, of_model, principal_plane, set_algebra, style

SMALL = ["--smoke", "--image-size=16", "--word-dim=4", "--max-words=12", "--num-samples=2"]


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    root = tmp_path_factory.mktemp("birds") / "toy"
    return toy_birds.generate(root, num_classes=16, images_per_class=8, image_size=16)


@pytest.fixture(autouse=True)
def _small_birds_are_the_embedded_ones(birds, monkeypatch):
    monkeypatch.setattr(toy_birds, "generate", lambda root: birds)


@pytest.fixture(scope="module")
def finished(birds, tmp_path_factory):
    """A run as the recipe leaves it, but for the training, which its report does not look at."""
    out = tmp_path_factory.mktemp("runs") / "plane"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_birds, "generate", lambda root: birds)
        settings = cli.parse(pcme_2d.Settings, [*SMALL, f"--out={out}"])
        description = pcme_2d.data(settings)
        run = RunFolder.open(out, settings, data=description)
        run.save_model(pcme_2d.pcme_cub.build(settings, data.open(description, "train")))
        run.finish({"split": data.open(description, "test").records.summary()})
    return run


@pytest.fixture(scope="module")
def reported(finished, birds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_birds, "generate", lambda root: birds)
        model, split = evaluation.open_run(finished.path)
    return of_model(model, split, "plane", items=8, resamples=5)


@pytest.mark.slow
def test_nine_classes_in_two_dimensions(finished, reported):
    assert reported.split.images["mean"].shape == (18, 2)
    assert reported.records.num_classes == 9
    assert finished.config["hardware"]["cpus"] >= 1
    # Seen classes, unseen images: what was held out is not in the training split.
    train, test = (data.open(finished.data, name).records for name in ("train", "test"))
    assert not set(train.image_ids) & set(test.image_ids)
    assert train.num_images == 9 * 5  # of 7
    assert principal_plane(reported.split.images["mean"]).explained is None


@pytest.mark.slow
def test_a_report_is_one_page_that_needs_nothing_else(finished, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(markup, "DPI", 40)  # that there is a picture is enough
    monkeypatch.setattr(style.save, "__defaults__", (40,))
    more = ["--items=4", "--resamples=5"]
    command.main([str(finished.path), "--out", str(tmp_path / "one"), *more])
    text = (tmp_path / "one" / "report.html").read_text()
    assert not re.search(r"(?:src|href)=[\"'](?!data:|#)", text)
    assert not re.search(r"https?://|<script|@import|url\(", text)
    images = re.findall(r"<img alt=\"([^\"]+)\" src=\"data:image/png;base64,", text)
    pngs = {path.stem for path in (tmp_path / "one").glob("*.png")}
    assert len(images) == len(pngs)
    assert {
        "opening",  # of 18 images no confidence is learnt, so there is the curve of captions alone
        "recall_by_uncertainty",
        "risk_coverage",
        "ambiguity",
        "corruption",
        "ellipses",
        "set_algebra",
        "isotropy",
        "words",
        "extremes_1",
        "extremes_2",
        "calibration",
        "confidence_1",
        "confidence_2",
    } == pngs
    numbers = json.loads((tmp_path / "one" / "report.json").read_text())["plane"]
    counts = [n["n"] for section in numbers.values() for n in section.values()]
    assert min(counts) > 0
    fields = {"value", "low", "high", "n", "unit", "of"}
    assert fields == set(numbers["isotropy"].popitem()[1])
    assert fields | {"chance"} == set(numbers["retrieval"].popitem()[1])
    assert str(tmp_path / "one" / "report.html") in capsys.readouterr().out


@pytest.mark.slow
def test_what_is_taken_away_starts_from_the_whole(reported):
    chosen = np.arange(5)
    whole = reported.split.image_uncertainty[:5]
    values = inputs.erased_uncertainty(reported, chosen, (0.0, 0.5))
    np.testing.assert_allclose(values[:, 0], whole, rtol=1e-4)
    assert (values[:, 1] != values[:, 0]).any()
    for mode in inputs.MODES:
        values = inputs.dropped_uncertainty(reported, chosen, mode, (0.0, 1.0))
        np.testing.assert_allclose(values[:, 0], reported.split.caption_uncertainty[:5], rtol=1e-4)
        assert (values[:, 1] != values[:, 0]).any()


@pytest.mark.slow
def test_a_mix_of_an_image_with_itself_is_the_image(reported):
    algebra = set_algebra.make(reported)
    assert (
        reported.records.image_labels[algebra.first]
        != reported.records.image_labels[algebra.second]
    ).all()
    both = algebra.pictures["first"].astype(float) + algebra.pictures["second"]
    np.testing.assert_allclose(algebra.pictures["mix"], both / 2, atol=0.51)
    own = algebra.embeddings["first"]
    same = set_algebra.Algebra(
        algebra.first, algebra.first, dict.fromkeys(algebra.embeddings, own), algebra.pictures
    )
    found = set_algebra.measure(same, principal_plane(reported.split.images["mean"]))
    np.testing.assert_allclose(found["mix_area"], 100.0)
    np.testing.assert_allclose(found["covered"], 100.0)
    np.testing.assert_allclose(found["mix_mass"], 95.0, atol=3.0)
    assert not found["wider_mix"].any()


def test_a_run_of_a_version_that_knew_no_data_says_what_to_write(finished, tmp_path):
    shutil.copytree(finished.path, tmp_path / "old")
    old = RunFolder.existing(tmp_path / "old")
    config = old.config
    description = config.pop("data")
    old.write_json("config.json", config)
    with pytest.raises(InputError, match='add a line beside "settings"'):
        evaluation.open_run(old.path)
    old.write_json("config.json", {**config, "data": description})
    model, split = evaluation.open_run(old.path)
    assert isinstance(model, zoo.models.DualEncoder)
    assert split.records.num_classes == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no such run folder: nowhere"),
        (["toy_birds_pcme"], "--out must name a folder"),
        (["one", "other"], "--out must name a folder"),
        (["nowhere", "--out=x"], "no such run folder: nowhere"),
        (
            ["toy_birds_pcme", "--out=x", "--ranking=nearest"],
            "--ranking must be 'own'",
        ),
        (["toy_birds_pcme", "--out=x", "--items=1"], "--items must be at least 2"),
    ],
)
def test_bad_input_is_one_line_and_code_two(arguments, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        cli.run(command.main, arguments)
    assert stopped.value.code == 2
    errors = capsys.readouterr().err.strip().splitlines()
    assert message in errors[-1]
    assert errors[-1].startswith("error: ")


def test_unknown_flags_and_unfinished_runs(capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        command.main(["run", "--colour"])
    assert stopped.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    folder = RunFolder.open(tmp_path / "run", {}, data={"loader": "toy_birds"})
    with pytest.raises(InputError, match=r"has no model\.keras yet"):
        evaluation.open_run(folder.path)


def test_presets_have_their_data():
    assert zoo.list_presets()["toy_birds_pcme"]["data"] == {"loader": "toy_birds", "image_size": 64}
    assert evaluation.data_of("toy_birds_pcme")["loader"] in data.LOADERS
